//! Categories by which access lists name commands. Most follow from a command's flags and group;
//! the rest is listed here.

use super::{Flags, Group, Spec};

bitflags::bitflags! {
    /// A set of categories, in the order in which ACL CAT lists them.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct Categories: u32 {
        /// Works on keys of any type.
        const KEYSPACE = 1;
        /// Reads keys.
        const READ = 1 << 1;
        /// Writes keys.
        const WRITE = 1 << 2;
        /// Sets.
        const SET = 1 << 3;
        /// Sorted sets.
        const SORTEDSET = 1 << 4;
        /// Lists.
        const LIST = 1 << 5;
        /// Hashes.
        const HASH = 1 << 6;
        /// Strings.
        const STRING = 1 << 7;
        /// Bitmaps.
        const BITMAP = 1 << 8;
        /// HyperLogLogs.
        const HYPERLOGLOG = 1 << 9;
        /// Geographic positions.
        const GEO = 1 << 10;
        /// Streams.
        const STREAM = 1 << 11;
        /// Publish and subscribe.
        const PUBSUB = 1 << 12;
        /// For administrators.
        const ADMIN = 1 << 13;
        /// O(1) or O(log n).
        const FAST = 1 << 14;
        /// Not fast.
        const SLOW = 1 << 15;
        /// May block.
        const BLOCKING = 1 << 16;
        /// Can harm a server or its users.
        const DANGEROUS = 1 << 17;
        /// Handles connections.
        const CONNECTION = 1 << 18;
        /// Transactions.
        const TRANSACTION = 1 << 19;
        /// Scripts.
        const SCRIPTING = 1 << 20;
    }
}

impl Categories {
    /// Finds a category by name, in any case.
    pub fn named(name: &[u8]) -> Option<Categories> {
        let mut all = Categories::all().iter_names();
        all.find(|(known, _)| known.as_bytes().eq_ignore_ascii_case(name)).map(|(_, category)| category)
    }

    /// Returns the names in lower case.
    pub fn names(self) -> impl Iterator<Item = String> {
        self.iter_names().map(|(name, _)| name.to_ascii_lowercase())
    }

    /// Returns the categories of a command. A container lacks that of its group, as it does nothing
    /// by itself; COMMAND is the exception.
    pub fn of(spec: &Spec) -> Categories {
        let has = |flag| spec.flags.contains(flag);
        let container = !spec.subcommands.is_empty() && spec.name != "command";
        let own = match spec.name {
            "sort" | "sort_ro" => {
                Categories::SET | Categories::SORTEDSET | Categories::LIST | Categories::DANGEROUS
            }
            "wait" | "waitaof" => Categories::CONNECTION,
            "keys" | "restore" | "migrate" | "flushall" | "flushdb" | "restore-asking" | "swapdb" => {
                Categories::KEYSPACE | Categories::DANGEROUS
            }
            "dbsize" => Categories::KEYSPACE,
            "info" => Categories::DANGEROUS,
            "lastsave" | "role" => Categories::ADMIN | Categories::DANGEROUS,
            "asking" | "readonly" | "readwrite" => Categories::CONNECTION,
            name if name == "command" || name.starts_with("command|") => Categories::CONNECTION,
            _ if container => Categories::empty(),
            _ => of_group(spec.group),
        };
        let reads = has(Flags::READONLY) && spec.group != Group::Scripting;
        let by_flags = [
            (reads, Categories::READ),
            (has(Flags::WRITE), Categories::WRITE),
            (has(Flags::ADMIN), Categories::ADMIN | Categories::DANGEROUS),
            (has(Flags::PUBSUB), Categories::PUBSUB),
            (has(Flags::FAST), Categories::FAST),
            (!has(Flags::FAST), Categories::SLOW),
            (has(Flags::BLOCKING), Categories::BLOCKING),
        ];
        by_flags.into_iter().filter(|(is, _)| *is).fold(own, |all, (_, more)| all | more)
    }
}

fn of_group(group: Group) -> Categories {
    match group {
        Group::Bitmap => Categories::BITMAP,
        Group::Connection => Categories::CONNECTION,
        Group::Generic => Categories::KEYSPACE,
        Group::Geo => Categories::GEO,
        Group::Hash => Categories::HASH,
        Group::HyperLogLog => Categories::HYPERLOGLOG,
        Group::List => Categories::LIST,
        Group::Scripting => Categories::SCRIPTING,
        Group::Set => Categories::SET,
        Group::SortedSet => Categories::SORTEDSET,
        Group::Stream => Categories::STREAM,
        Group::String => Categories::STRING,
        Group::Transactions => Categories::TRANSACTION,
        Group::Cluster | Group::Pubsub | Group::Sentinel | Group::Server => Categories::empty(),
    }
}
