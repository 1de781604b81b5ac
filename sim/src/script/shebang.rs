//! The first line of a script, `#!lua flags=no-writes,allow-stale`: it declares flags.

use crate::resp::{quotable, split_words};

bitflags::bitflags! {
    /// Flags that a script declares.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct Flags: u32 {
        /// The script calls no command that writes.
        const NO_WRITES = 1;
        /// The script may run when memory is full.
        const ALLOW_OOM = 1 << 1;
        /// The script may run on a replica whose data is stale.
        const ALLOW_STALE = 1 << 2;
        /// The script cannot run in a cluster.
        const NO_CLUSTER = 1 << 3;
        /// The script's keys may be in several slots.
        const ALLOW_CROSS_SLOT_KEYS = 1 << 4;
        /// The script has no such line: the rules of its commands apply one by one.
        const COMPAT = 1 << 5;
    }
}

/// The flags that a script can declare, by name.
const NAMED: [(&str, Flags); 5] = [
    ("no-writes", Flags::NO_WRITES),
    ("allow-oom", Flags::ALLOW_OOM),
    ("allow-stale", Flags::ALLOW_STALE),
    ("no-cluster", Flags::NO_CLUSTER),
    ("allow-cross-slot-keys", Flags::ALLOW_CROSS_SLOT_KEYS),
];

impl Flags {
    /// Finds the flag with this name in a shebang line; `None` if it is unknown.
    pub fn named(name: &[u8]) -> Option<Flags> {
        NAMED.iter().find(|(known, _)| known.as_bytes() == name).map(|(_, flag)| *flag)
    }

    /// Returns the names of these flags, as FUNCTION LIST prints them.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        NAMED.iter().filter(move |(_, flag)| self.contains(*flag)).map(|(name, _)| *name)
    }
}

/// Error: the line exists but is invalid. The text is the error reply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ShebangError(pub String);

/// Returns the flags that a script declares. `None` if its first line is invalid.
pub fn declared(body: &[u8]) -> Option<Flags> {
    read(body).ok().map(|(flags, _)| flags)
}

/// Parses the line, if the script has one. Returns the flags and the rest of the script, which
/// begins with the line's newline, so that line numbers do not change.
pub(super) fn read(body: &[u8]) -> Result<(Flags, &[u8]), ShebangError> {
    if !body.starts_with(b"#!") {
        return Ok((Flags::COMPAT, body));
    }
    let Some(end) = body.iter().position(|&b| b == b'\n') else {
        return Err(ShebangError("ERR Invalid script shebang".into()));
    };
    let words = split_words(&body[..end]).filter(|words| !words.is_empty());
    let words = words.ok_or_else(|| ShebangError("ERR Invalid engine in script shebang".into()))?;
    let (engine, options) = words.split_first().expect("there is one at least");
    if engine != "#!lua" {
        return Err(ShebangError(format!("ERR Unexpected engine in script shebang: {}", quotable(engine))));
    }
    let mut flags = Flags::empty();
    for option in options {
        let Some(names) = option.strip_prefix(b"flags=") else {
            return Err(ShebangError(format!("ERR Unknown lua shebang option: {}", quotable(option))));
        };
        for name in names.split(|&b| b == b',').filter(|_| !names.is_empty()) {
            flags |= Flags::named(name).ok_or_else(|| {
                ShebangError(format!("ERR Unexpected flag in script shebang: {}", quotable(name)))
            })?;
        }
    }
    Ok((flags, &body[end..]))
}
