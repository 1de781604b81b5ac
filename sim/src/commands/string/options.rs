//! Options of SET and GETEX, and the expiries shared with SETEX and PSETEX.

use bytes::Bytes;

use crate::{
    commands::{Error, integer},
    generation::{Feature, Generation},
};

/// Unit of an expiry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Seconds,
    Milliseconds,
}

/// The expiry of a string as the client gave it.
#[derive(Debug)]
pub(super) enum Expiry {
    /// Relative to now.
    In(Bytes, Unit),
    /// At this time since the epoch.
    At(Bytes, Unit),
}

impl Expiry {
    /// Returns the wall-clock time in milliseconds. The error for a time that is not positive or
    /// too large names `command`.
    pub(super) fn when_ms(&self, now_ms: i64, command: &str) -> Result<i64, Error> {
        let (Expiry::In(text, unit) | Expiry::At(text, unit)) = self;
        let origin = if self.is_absolute() { 0 } else { now_ms };
        let scale = if *unit == Unit::Seconds { 1000 } else { 1 };
        let when_ms =
            Some(integer(text)?).filter(|n| *n > 0).and_then(|n| n.checked_mul(scale)?.checked_add(origin));
        when_ms.ok_or_else(|| Error::invalid_expire(command))
    }

    /// Returns true for a point in time.
    pub(super) fn is_absolute(&self) -> bool {
        matches!(self, Expiry::At(..))
    }
}

/// The command whose options are parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    Set,
    Getex,
}

#[derive(Debug, Default)]
pub(super) struct SetOptions {
    /// True for XX, false for NX.
    pub(super) only_if_exists: Option<bool>,
    /// IFEQ: the value that the key must have.
    pub(super) if_equal: Option<Bytes>,
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
    /// Parses the options, with Redis's rules about exclusive ones.
    pub(super) fn parse(options: &[Bytes], of: Of, generation: Generation) -> Result<SetOptions, Error> {
        let mut parsed = SetOptions::default();
        // Of the four expiry options, only the first one given may be repeated.
        let mut way: Option<Vec<u8>> = None;
        let mut rest = options.iter();
        while let Some(option) = rest.next() {
            let option = option.to_ascii_lowercase();
            match (option.as_slice(), of) {
                (b"nx", Of::Set) if parsed.only_if_exists != Some(true) && parsed.if_equal.is_none() => {
                    parsed.only_if_exists = Some(false)
                }
                (b"xx", Of::Set) if parsed.only_if_exists != Some(false) && parsed.if_equal.is_none() => {
                    parsed.only_if_exists = Some(true)
                }
                (b"ifeq", Of::Set)
                    if parsed.only_if_exists.is_none()
                        && parsed.if_equal.is_none()
                        && generation.has(Feature::SetIfEq) =>
                {
                    parsed.if_equal = Some(rest.next().ok_or(Error::SYNTAX)?.clone());
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
        let both = parsed.get && parsed.only_if_exists == Some(false);
        if both && !generation.has(Feature::SetNxGet) {
            return Err(Error::SYNTAX);
        }
        Ok(parsed)
    }
}
