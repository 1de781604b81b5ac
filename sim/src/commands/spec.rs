//! What a command *is*: its name, arity, flags and keys, as data beside its code.

use bytes::Bytes;

use super::{Ctx, Error};
use crate::resp::Reply;

bitflags::bitflags! {
    /// What the server must know of a command before it runs, named as COMMAND INFO names them, and
    /// in its order.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Flags: u64 {
        /// May change the data.
        const WRITE = 1;
        /// Reads the data.
        const READONLY = 1 << 1;
        /// May use more memory: refused when it is full.
        const DENYOOM = 1 << 2;
        /// For administrators.
        const ADMIN = 1 << 3;
        /// Belongs to pub/sub.
        const PUBSUB = 1 << 4;
        /// Not allowed in scripts.
        const NOSCRIPT = 1 << 5;
        /// May wait.
        const BLOCKING = 1 << 6;
        /// Allowed while the data is being loaded.
        const LOADING = 1 << 7;
        /// Allowed on a replica whose data is stale.
        const STALE = 1 << 8;
        /// Shown to MONITOR before it runs, unlike the others: the commands that it calls follow.
        const SKIP_MONITOR = 1 << 9;
        /// Not logged as slow.
        const SKIP_SLOWLOG = 1 << 10;
        /// Acts on the command after ASKING (Cluster).
        const ASKING = 1 << 11;
        /// O(1) or O(log n).
        const FAST = 1 << 12;
        /// Needs no AUTH.
        const NO_AUTH = 1 << 13;
        /// May leave effects for replicas without being a write (PUBLISH, EVAL).
        const MAY_REPLICATE = 1 << 14;
        /// Works without a database being loaded or keys being mandatory (EVAL).
        const NO_MANDATORY_KEYS = 1 << 15;
        /// Not allowed while a replica loads its master's data beside its own.
        const NO_ASYNC_LOADING = 1 << 16;
        /// Not allowed in MULTI.
        const NO_MULTI = 1 << 17;
        /// The keys cannot be determined from first, last and step alone.
        const MOVABLEKEYS = 1 << 18;
        /// Allowed while a script is busy.
        const ALLOW_BUSY = 1 << 19;
        /// Runs other commands (EVAL, EXEC): those are propagated, not the command itself.
        const NESTS = 1 << 20;
        /// May find any key expired, without naming it.
        const TOUCHES_ARBITRARY_KEYS = 1 << 21;
        /// Not queued by MULTI: it runs at once.
        const NOT_QUEUED = 1 << 22;
        /// Ends a transaction that is being queued.
        const ENDS_TRANSACTION = 1 << 23;
        /// Runs the queued commands: it may do what they may, and to refuse it is to discard them
        /// (EXEC).
        const RUNS_QUEUE = 1 << 24;
        /// Allowed on a RESP2 connection that has subscribed.
        const IN_SUBSCRIBER_MODE = 1 << 25;
        /// Refused like a write while the disk fails, although it is none (PING).
        const NEEDS_DISK = 1 << 26;
        /// For tests of the server itself: allowed by `enable-debug-command`, and to scripts by
        /// DEBUG.
        const DEBUGS = 1 << 27;
        /// Changes the modules: allowed by `enable-module-command`.
        const CHANGES_MODULES = 1 << 28;
        /// Notes by itself which keys it has read for client-side caching.
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
    /// The names that COMMAND INFO shows. Some flags are the server's own business.
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

/// Where the keys of a command are among its arguments.
#[derive(Debug, Clone, Copy)]
pub enum Keys {
    /// It has none.
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
    /// As many keys as the argument at `count` says, right after it.
    Counted {
        /// Index of the number of keys.
        count: usize,
    },
    /// The first argument, and as many keys as the argument at `count` says, right after it.
    FirstAndCounted {
        /// Index of the number of keys.
        count: usize,
    },
    /// Neither: a function finds them.
    Found(fn(&[Bytes]) -> Vec<usize>),
}

impl Keys {
    /// One key, the first argument.
    pub const FIRST: Keys = Keys::Range { first: 1, last: 1, step: 1 };
    /// Every argument is a key.
    pub const ALL: Keys = Keys::Range { first: 1, last: -1, step: 1 };
}

/// A group of commands, as redis.io and COMMAND DOCS name them.
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
    /// The name on the wire, which is also the folder of the group's commands but for its dashes.
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

/// One command. The constant `SPEC` on top of each command's file.
#[derive(Debug)]
pub struct Spec {
    /// The name in lower case; `config|get` for a subcommand.
    pub name: &'static str,
    /// The group it belongs to.
    pub group: Group,
    /// The version of Redis it came with.
    pub since: &'static str,
    /// A summary, in one line of our own.
    pub summary: &'static str,
    /// The number of arguments with the name (for a subcommand, with both names); negative for "at
    /// least".
    pub arity: i32,
    /// What the server must know beforehand.
    pub flags: Flags,
    /// Where its keys are.
    pub keys: Keys,
    /// Its subcommands, if it is a container of them.
    pub subcommands: &'static [&'static Spec],
    /// What it does.
    pub run: fn(&mut Ctx<'_>, &[Bytes]) -> Result<Reply, Error>,
}

impl Spec {
    /// Whether a command of `len` words, its name among them, has the right number.
    pub fn accepts(&self, len: usize) -> bool {
        let wanted = self.arity.unsigned_abs() as usize;
        if self.arity >= 0 { len == wanted } else { len >= wanted }
    }
}
