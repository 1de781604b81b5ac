//! The first line of a script, `#!lua flags=no-writes,allow-stale`: what the script promises and asks for.

use super::convert::lossy;

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

/// The line is there, and wrong. The text is the error reply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ShebangError(pub String);

/// Reads the line, if there is one; answers the flags and the rest of the script, which begins with the line's break so
/// that lines keep their numbers.
pub(super) fn read(body: &[u8]) -> Result<(Flags, &[u8]), ShebangError> {
    if !body.starts_with(b"#!") {
        return Ok((Flags::COMPAT, body));
    }
    let Some(end) = body.iter().position(|&b| b == b'\n') else {
        return Err(ShebangError("ERR Invalid script shebang".into()));
    };
    let line = &body[..end];
    let mut words = line.split(|&b| b == b' ').filter(|word| !word.is_empty());
    let engine = words.next().unwrap_or_default();
    if engine != b"#!lua" {
        return Err(ShebangError(format!("ERR Unexpected engine in script shebang: {}", lossy(engine))));
    }
    let mut flags = Flags::empty();
    for word in words {
        let Some(names) = word.strip_prefix(b"flags=") else {
            return Err(ShebangError(format!("ERR Unknown lua shebang option: {}", lossy(word))));
        };
        for name in names.split(|&b| b == b',').filter(|name| !name.is_empty()) {
            flags |= match name {
                b"no-writes" => Flags::NO_WRITES,
                b"allow-oom" => Flags::ALLOW_OOM,
                b"allow-stale" => Flags::ALLOW_STALE,
                b"no-cluster" => Flags::NO_CLUSTER,
                b"allow-cross-slot-keys" => Flags::ALLOW_CROSS_SLOT_KEYS,
                _ => {
                    return Err(ShebangError(format!(
                        "ERR Unexpected flag in script shebang: {}",
                        lossy(name)
                    )));
                }
            };
        }
    }
    Ok((flags, &body[end..]))
}
