//! The first line of a script, `#!lua flags=no-writes,allow-stale`: what the script promises and
//! asks for.

use crate::resp::{quotable, split_words};

bitflags::bitflags! {
    /// What a script declares about itself.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct Flags: u32 {
        /// It calls no command that writes.
        const NO_WRITES = 1;
        /// It may run when memory is full.
        const ALLOW_OOM = 1 << 1;
        /// It may run on a replica whose data is stale.
        const ALLOW_STALE = 1 << 2;
        /// It cannot run in a cluster.
        const NO_CLUSTER = 1 << 3;
        /// Its keys may lie in several slots.
        const ALLOW_CROSS_SLOT_KEYS = 1 << 4;
        /// It has no such line: the rules of its commands apply one by one.
        const COMPAT = 1 << 5;
    }
}

/// The flags that can be declared, by their names.
const NAMED: [(&str, Flags); 5] = [
    ("no-writes", Flags::NO_WRITES),
    ("allow-oom", Flags::ALLOW_OOM),
    ("allow-stale", Flags::ALLOW_STALE),
    ("no-cluster", Flags::NO_CLUSTER),
    ("allow-cross-slot-keys", Flags::ALLOW_CROSS_SLOT_KEYS),
];

impl Flags {
    /// The flag of a name.
    pub fn named(name: &[u8]) -> Option<Flags> {
        NAMED.iter().find(|(known, _)| known.as_bytes() == name).map(|(_, flag)| *flag)
    }

    /// The names of these flags.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        NAMED.iter().filter(move |(_, flag)| self.contains(*flag)).map(|(name, _)| *name)
    }
}

/// The line is there, and wrong. The text is the error reply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ShebangError(pub String);

/// The flags that a script declares, if its first line is right.
pub fn declared(body: &[u8]) -> Option<Flags> {
    read(body).ok().map(|(flags, _)| flags)
}

/// Reads the line, if there is one; answers the flags and the rest of the script, which begins with
/// the line's break so that lines keep their numbers.
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
