//! The options of SET and GETEX, and the expiries that SETEX and PSETEX share with them.

use bytes::Bytes;

use crate::commands::{Error, integer};

/// The unit of an expiry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Seconds,
    Milliseconds,
}

/// When a string is to expire, as it was written.
#[derive(Debug)]
pub(super) enum Expiry {
    /// After so long.
    In(Bytes, Unit),
    /// At this time since the epoch.
    At(Bytes, Unit),
}

impl Expiry {
    /// The wall-clock time in milliseconds; `command` is named in the error for one that is not
    /// positive or too large.
    pub(super) fn when_ms(&self, now_ms: i64, command: &str) -> Result<i64, Error> {
        let (Expiry::In(text, unit) | Expiry::At(text, unit)) = self;
        let origin = if self.is_absolute() { 0 } else { now_ms };
        let scale = if *unit == Unit::Seconds { 1000 } else { 1 };
        let when_ms =
            Some(integer(text)?).filter(|n| *n > 0).and_then(|n| n.checked_mul(scale)?.checked_add(origin));
        when_ms.ok_or_else(|| Error::invalid_expire(command))
    }

    /// Whether it is a point in time.
    pub(super) fn is_absolute(&self) -> bool {
        matches!(self, Expiry::At(..))
    }
}

/// Whose options are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    Set,
    Getex,
}

/// The options.
#[derive(Debug, Default)]
pub(super) struct SetOptions {
    /// XX is `true`, NX is `false`.
    pub(super) only_if_exists: Option<bool>,
    /// GET
    pub(super) get: bool,
    /// KEEPTTL
    pub(super) keep_ttl: bool,
    /// PERSIST
    pub(super) persist: bool,
    /// EX, PX, EXAT or PXAT
    pub(super) expiry: Option<Expiry>,
}

impl SetOptions {
    /// Reads the options, which exclude each other in the ways that Redis lays down.
    pub(super) fn parse(options: &[Bytes], of: Of) -> Result<SetOptions, Error> {
        let mut parsed = SetOptions::default();
        // Of the four ways to write an expiry only the first one written may come again.
        let mut way: Option<Vec<u8>> = None;
        let mut rest = options.iter();
        while let Some(option) = rest.next() {
            let option = option.to_ascii_lowercase();
            match (option.as_slice(), of) {
                (b"nx", Of::Set) if parsed.only_if_exists != Some(true) => {
                    parsed.only_if_exists = Some(false)
                }
                (b"xx", Of::Set) if parsed.only_if_exists != Some(false) => {
                    parsed.only_if_exists = Some(true)
                }
                (b"get", Of::Set) => parsed.get = true,
                (b"keepttl", Of::Set) if parsed.expiry.is_none() => parsed.keep_ttl = true,
                (b"persist", Of::Getex) if parsed.expiry.is_none() => parsed.persist = true,
                (b"ex" | b"px" | b"exat" | b"pxat", _)
                    if !parsed.keep_ttl
                        && !parsed.persist
                        && way.as_ref().is_none_or(|way| *way == option) =>
                {
                    let value = rest.next().ok_or(Error::SYNTAX)?.clone();
                    parsed.expiry = Some(match option.as_slice() {
                        b"ex" => Expiry::In(value, Unit::Seconds),
                        b"px" => Expiry::In(value, Unit::Milliseconds),
                        b"exat" => Expiry::At(value, Unit::Seconds),
                        _ => Expiry::At(value, Unit::Milliseconds),
                    });
                    way = Some(option);
                }
                _ => return Err(Error::SYNTAX),
            }
        }
        Ok(parsed)
    }
}
