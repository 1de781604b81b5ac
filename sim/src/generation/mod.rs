//! The generations of servers that a node can imitate, and the features in which they differ.
//!
//! A node is Redis 8.2, the newest, unless its configuration names another generation. Each feature
//! in [`FEATURES`] is present from a version of Redis or of Valkey on. Valkey is a fork of Redis
//! 7.2, and has all features of that version.

mod feature;

use std::fmt;

pub use feature::{FEATURES, Feature, Since};

/// A generation of servers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Generation {
    /// Redis 6.2.
    Redis62,
    /// Redis 7.0.
    Redis70,
    /// Redis 8.2.
    #[default]
    Redis82,
    /// Valkey 8.1.
    Valkey81,
    /// Valkey 9.1.
    Valkey91,
}

/// The error for a global variable that does not exist. Redis 6.2 raises it in a script of its own.
const NO_GLOBAL: &str = "Script attempted to access nonexistent global variable";

/// The error of Redis 6.2 for a new global variable, which it raises there, too.
const NEW_GLOBAL: &str = "Script attempted to create global variable";

/// The first version of snapshots that is Valkey's own.
pub(crate) const VALKEY_RDB: u16 = 80;

/// The first major version of Valkey that reads such snapshots.
const VALKEY_RDB_SINCE: u8 = 9;

impl Generation {
    /// All generations, from the oldest Redis to the newest Valkey.
    pub const ALL: [Generation; 5] = [
        Generation::Redis62,
        Generation::Redis70,
        Generation::Redis82,
        Generation::Valkey81,
        Generation::Valkey91,
    ];

    /// Returns the name in files and on the command line, such as `valkey-9.1`.
    pub fn name(self) -> &'static str {
        match self {
            Generation::Redis62 => "redis-6.2",
            Generation::Redis70 => "redis-7.0",
            Generation::Redis82 => "redis-8.2",
            Generation::Valkey81 => "valkey-8.1",
            Generation::Valkey91 => "valkey-9.1",
        }
    }

    /// Returns the generation of this name.
    ///
    /// ```
    /// use lockstorm_sim::generation::Generation;
    ///
    /// assert_eq!(Generation::named("valkey-9.1"), Some(Generation::Valkey91));
    /// assert_eq!(Generation::named("redis-5.0"), None);
    /// ```
    pub fn named(name: &str) -> Option<Generation> {
        Generation::ALL.into_iter().find(|generation| generation.name() == name)
    }

    /// Returns the name of the server in HELLO: `redis` or `valkey`.
    pub fn server(self) -> &'static str {
        if self.is_valkey() { "valkey" } else { "redis" }
    }

    /// Returns true for Valkey.
    pub fn is_valkey(self) -> bool {
        matches!(self, Generation::Valkey81 | Generation::Valkey91)
    }

    /// Returns true for servers before Redis 7.2, from which Valkey was forked.
    pub fn is_before_7_2(self) -> bool {
        matches!(self, Generation::Redis62 | Generation::Redis70)
    }

    /// Returns the version that the node reports, with the patch level of the server with which it
    /// was compared.
    pub fn version(self) -> &'static str {
        match self {
            Generation::Redis62 => "6.2.5",
            Generation::Redis70 => "7.0.15",
            Generation::Redis82 => "8.2.3",
            Generation::Valkey81 => "8.1.8",
            Generation::Valkey91 => "9.1.2",
        }
    }

    /// Returns the version of Redis that the node claims to be compatible with. For Redis that is
    /// its own.
    pub fn redis_version(self) -> &'static str {
        if self.is_valkey() { "7.2.4" } else { self.version() }
    }

    /// Returns the version of the snapshots and of the payloads of DUMP that servers of this
    /// generation write.
    pub fn rdb_version(self) -> u16 {
        match self {
            Generation::Redis62 => 9,
            Generation::Redis70 => 10,
            Generation::Valkey81 => 11,
            Generation::Redis82 => 12,
            Generation::Valkey91 => VALKEY_RDB,
        }
    }

    /// Returns the version of the snapshots that servers of this generation send to a replica which
    /// says that it is Valkey of this major version, or says nothing.
    pub fn rdb_version_for_replica(self, major: Option<u8>) -> u16 {
        match self {
            Generation::Valkey91 if major.is_none_or(|major| major < VALKEY_RDB_SINCE) => {
                Generation::Valkey81.rdb_version()
            }
            _ => self.rdb_version(),
        }
    }

    /// Returns true if servers of this generation read snapshots and payloads of this version.
    /// Versions from 12 to 79 are those of Redis alone.
    pub fn reads_rdb_version(self, version: u16) -> bool {
        match self {
            Generation::Valkey91 => (1..=11).contains(&version) || version == VALKEY_RDB,
            _ => (1..=self.rdb_version()).contains(&version),
        }
    }

    /// Returns what a script of Redis 6.2 is told if it may not run a command, behind the place of
    /// its call. `text` is the error of 7.0.
    pub(crate) fn refused_before_tables(text: &str) -> String {
        match text.strip_prefix("ERR ") {
            // The server's own replies, as they are on the wire.
            None => format!("-{text}\r\n"),
            Some("Unknown Redis command called from script") => {
                "Unknown Redis command called from Lua script".into()
            }
            Some("Please specify at least one argument for this redis lib call") => {
                "Please specify at least one argument for redis.call()".into()
            }
            Some("Lua redis lib command arguments must be strings or integers") => {
                "Lua redis() command arguments must be strings or integers".into()
            }
            Some("Wrong number of args calling Redis command from script") => {
                "Wrong number of args calling Redis command From Lua script".into()
            }
            Some("This Redis command is not allowed from script") => {
                "This Redis command is not allowed from scripts".into()
            }
            Some(text) => text.replacen("Script attempted", "Lua script attempted", 1),
        }
    }

    /// Returns the error reply of a script with this name, which failed with `text` at a line of
    /// the source, such as `@user_script`.
    pub(crate) fn placed(self, text: &str, name: &str, source: &str, line: impl fmt::Display) -> String {
        match self {
            Generation::Redis62 => {
                let text = text.strip_prefix("ERR ").unwrap_or(text);
                let place = match text {
                    text if text.contains(NO_GLOBAL) => "@enable_strict_lua:15".to_owned(),
                    text if text.contains(NEW_GLOBAL) => "@enable_strict_lua:8".to_owned(),
                    _ => format!("{source}:{line}"),
                };
                format!("ERR Error running script (call to f_{name}): {place}: {text}")
            }
            Generation::Valkey91 => format!("{text} script: on {source}:{line}."),
            _ => format!("{text} script: {name}, on {source}:{line}."),
        }
    }

    /// Returns true if servers of this generation have the feature.
    pub fn has(self, feature: Feature) -> bool {
        feature.since().includes(self)
    }

    fn release(self) -> (u8, u8) {
        match self {
            Generation::Redis62 => (6, 2),
            Generation::Redis70 => (7, 0),
            Generation::Redis82 => (8, 2),
            Generation::Valkey81 => (8, 1),
            Generation::Valkey91 => (9, 1),
        }
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
