//! Specification of a command: name, arity, flags and keys, as data beside its code.

use bytes::Bytes;

use super::{Ctx, Error};
use crate::{
    generation::{Feature, Generation, Since},
    resp::Reply,
};

bitflags::bitflags! {
    /// Properties that the server must know before it runs a command, named and ordered like in
    /// COMMAND INFO.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Flags: u64 {
        /// May change the data.
        const WRITE = 1;
        /// Reads the data.
        const READONLY = 1 << 1;
        /// May use more memory: refused when memory is full.
        const DENYOOM = 1 << 2;
        /// For administrators.
        const ADMIN = 1 << 3;
        /// Belongs to pub/sub.
        const PUBSUB = 1 << 4;
        /// Not allowed in scripts.
        const NOSCRIPT = 1 << 5;
        /// May block.
        const BLOCKING = 1 << 6;
        /// Allowed while the node loads its data.
        const LOADING = 1 << 7;
        /// Allowed on a replica whose data is stale.
        const STALE = 1 << 8;
        /// MONITOR shows it before it runs, because the commands that it calls follow.
        const SKIP_MONITOR = 1 << 9;
        /// Not logged as slow.
        const SKIP_SLOWLOG = 1 << 10;
        /// Applies to the command after ASKING (Cluster).
        const ASKING = 1 << 11;
        /// O(1) or O(log n).
        const FAST = 1 << 12;
        /// Needs no AUTH.
        const NO_AUTH = 1 << 13;
        /// May have effects for replicas without being a write (PUBLISH, EVAL).
        const MAY_REPLICATE = 1 << 14;
        /// Works without a loaded database, and needs no keys (EVAL).
        const NO_MANDATORY_KEYS = 1 << 15;
        /// Not allowed while a replica loads its master's data and keeps its own.
        const NO_ASYNC_LOADING = 1 << 16;
        /// Not allowed in MULTI.
        const NO_MULTI = 1 << 17;
        /// First, last and step alone do not determine the keys.
        const MOVABLEKEYS = 1 << 18;
        /// Allowed while a script is busy.
        const ALLOW_BUSY = 1 << 19;
        /// Runs other commands (EVAL, EXEC): those are propagated, not this one.
        const NESTS = 1 << 20;
        /// May find any key expired, even one that it does not name.
        const TOUCHES_ARBITRARY_KEYS = 1 << 21;
        /// MULTI does not queue it: it runs right away.
        const NOT_QUEUED = 1 << 22;
        /// Ends a transaction that is being queued.
        const ENDS_TRANSACTION = 1 << 23;
        /// Runs the queued commands (EXEC): it may do all that they may. Refusing it discards them.
        const RUNS_QUEUE = 1 << 24;
        /// Allowed on a RESP2 connection that has subscribed.
        const IN_SUBSCRIBER_MODE = 1 << 25;
        /// Refused like a write while the disk fails, although it does not write (PING).
        const NEEDS_DISK = 1 << 26;
        /// For tests of the server itself: `enable-debug-command` allows it, and DEBUG allows it to
        /// scripts.
        const DEBUGS = 1 << 27;
        /// Changes the modules: `enable-module-command` allows it.
        const CHANGES_MODULES = 1 << 28;
        /// Records the keys that it has read for client-side caching itself.
        const NOTES_OWN_READS = 1 << 29;
        /// Its first argument is a channel.
        const FIRST_IS_CHANNEL = 1 << 30;
        /// All its arguments are channels.
        const ALL_ARE_CHANNELS = 1 << 31;
        /// All its arguments are patterns of channels.
        const ALL_ARE_PATTERNS = 1 << 32;
    }
}

impl Flags {
    /// Returns the names that COMMAND INFO shows. It hides the simulator's own flags.
    pub fn names(self) -> impl Iterator<Item = String> {
        let hidden = Flags::MAY_REPLICATE
            | Flags::NESTS
            | Flags::TOUCHES_ARBITRARY_KEYS
            | Flags::NOT_QUEUED
            | Flags::ENDS_TRANSACTION
            | Flags::RUNS_QUEUE
            | Flags::IN_SUBSCRIBER_MODE
            | Flags::NEEDS_DISK
            | Flags::DEBUGS
            | Flags::CHANGES_MODULES
            | Flags::NOTES_OWN_READS
            | Flags::FIRST_IS_CHANNEL
            | Flags::ALL_ARE_CHANNELS
            | Flags::ALL_ARE_PATTERNS;
        (self - hidden).iter_names().map(|(name, _)| name.to_ascii_lowercase())
    }
}

/// Positions of the keys among a command's arguments.
#[derive(Debug, Clone, Copy)]
pub enum Keys {
    /// The command has no keys.
    None,
    /// Every `step`-th argument from `first` to `last`; a negative `last` counts from the end.
    Range {
        /// Index of the first key; the command's name is 0.
        first: usize,
        /// Index of the last key.
        last: i32,
        /// Distance between keys.
        step: usize,
    },
    /// The argument at `count` is the number of keys, which follow it.
    Counted {
        /// Index of the number of keys.
        count: usize,
    },
    /// The first argument, and the keys that follow the argument at `count`, which is their number.
    FirstAndCounted {
        /// Index of the number of keys.
        count: usize,
    },
    /// A function finds the keys.
    Found(fn(&[Bytes]) -> Vec<usize>),
}

impl Keys {
    /// One key, the first argument.
    pub const FIRST: Keys = Keys::Range { first: 1, last: 1, step: 1 };
    /// Every argument is a key.
    pub const ALL: Keys = Keys::Range { first: 1, last: -1, step: 1 };
}

/// A group of commands, named like on redis.io and in COMMAND DOCS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum Group {
    Bitmap,
    Cluster,
    Connection,
    Generic,
    Geo,
    Hash,
    HyperLogLog,
    List,
    Pubsub,
    Scripting,
    Sentinel,
    Server,
    Set,
    SortedSet,
    Stream,
    String,
    Transactions,
}

impl Group {
    /// Returns the name on the wire. The folder of the group's commands has the same name with
    /// underscores for dashes.
    pub fn name(self) -> &'static str {
        match self {
            Group::Bitmap => "bitmap",
            Group::Cluster => "cluster",
            Group::Connection => "connection",
            Group::Generic => "generic",
            Group::Geo => "geo",
            Group::Hash => "hash",
            Group::HyperLogLog => "hyperloglog",
            Group::List => "list",
            Group::Pubsub => "pubsub",
            Group::Scripting => "scripting",
            Group::Sentinel => "sentinel",
            Group::Server => "server",
            Group::Set => "set",
            Group::SortedSet => "sorted-set",
            Group::Stream => "stream",
            Group::String => "string",
            Group::Transactions => "transactions",
        }
    }
}

/// One command. Each command's file begins with it as the constant `SPEC`.
#[derive(Debug)]
pub struct Spec {
    /// The name in lower case; `config|get` for a subcommand.
    pub name: &'static str,
    /// The group of the command in the documentation, such as `geo`.
    pub group: Group,
    /// The release that added the command: of Redis (`7.0.0`), of Valkey (`valkey 9.0.0`), or both,
    /// separated by a comma.
    pub since: &'static str,
    /// Summary in one line.
    pub summary: &'static str,
    /// Number of arguments including the name (for a subcommand, both names); negative for "at
    /// least".
    pub arity: i32,
    /// Properties to know before it runs.
    pub flags: Flags,
    /// The arguments that are keys.
    pub keys: Keys,
    /// Subcommands, if the command is a container.
    pub subcommands: &'static [&'static Spec],
    /// Executes the command.
    pub run: fn(&mut Ctx<'_>, &[Bytes]) -> Result<Reply, Error>,
}

impl Spec {
    /// Returns true if servers of this generation have the command.
    pub fn is_in(&self, generation: Generation) -> bool {
        Since::parse(self.since).includes(generation)
    }

    /// Returns the subcommands that servers of this generation have.
    pub fn subcommands_in(&self, generation: Generation) -> impl Iterator<Item = &'static Spec> {
        self.subcommands.iter().copied().filter(move |sub| sub.is_in(generation))
    }

    /// Returns the release that added the command to servers of this generation.
    pub fn since(&self, generation: Generation) -> &'static str {
        let mut parts = self.since.split(", ");
        let of = parts.find(|part| Since::parse(part).includes(generation)).unwrap_or(self.since);
        of.strip_prefix("valkey ").unwrap_or(of)
    }

    /// Returns true if the arity in a generation allows `len` words, including the name.
    pub fn accepts(&self, generation: Generation, len: usize) -> bool {
        let arity = self.arity_in(generation);
        let wanted = arity.unsigned_abs() as usize;
        if arity >= 0 { len == wanted } else { len >= wanted }
    }

    /// Returns the arity in a generation; the field has that of the newest.
    pub fn arity_in(&self, generation: Generation) -> i32 {
        if generation.is_before_7_2() { self.arity_of_old(generation) } else { self.arity }
    }

    /// Returns the flags in a generation; the field has those of 7.0.
    pub fn flags_in(&self, generation: Generation) -> Flags {
        let lacks = |feature: Feature| !generation.has(feature);
        match self.name {
            "script|exists" if generation == Generation::Valkey91 => self.flags | Flags::STALE,
            "ping" if lacks(Feature::StaleScripts) => self.flags | Flags::STALE,
            "echo" | "eval" | "evalsha" if lacks(Feature::StaleScripts) => self.flags - Flags::STALE,
            name if name.starts_with("script|") && lacks(Feature::StaleScripts) => self.flags - Flags::STALE,
            "reset" if lacks(Feature::FreeReset) => self.flags - Flags::NO_AUTH,
            _ => self.flags,
        }
    }

    /// Returns the arity before Redis 7.2.
    fn arity_of_old(&self, generation: Generation) -> i32 {
        match self.name {
            "expire" | "pexpire" | "expireat" | "pexpireat" if generation == Generation::Redis62 => 3,
            "script|exists" if generation == Generation::Redis62 => -2,
            "zrank" | "zrevrank" => 3,
            "command|getkeys" | "command|getkeysandflags" => -4,
            "pfdebug" if generation == Generation::Redis62 => -3,
            _ => self.arity,
        }
    }
}
