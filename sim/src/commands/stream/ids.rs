//! Parses and writes entry ids in commands, and the ends of ranges.

use std::fmt::Display;

use bytes::Bytes;

use crate::{
    commands::Error,
    generation::Generation,
    keyspace::{StreamId, integer},
};

const INVALID: Error = Error::of("ERR Invalid stream ID specified as stream command argument");
/// Longer words are not ids.
const LEN_MAX: usize = 127;

/// The id argument of XADD.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// `*`: the server makes the id.
    Auto,
    /// `5-*`: the server makes the sequence number.
    Numbered(u64),
    /// A complete id.
    Exactly(StreamId),
}

/// Parses `ms` or `ms-seq`; `seq` is the default sequence number.
pub(super) fn id(text: &[u8], seq: u64) -> Result<StreamId, Error> {
    match parse(text, seq)? {
        Wanted::Exactly(id) => Ok(id),
        _ => Err(INVALID),
    }
}

/// Parses the same, or `-` and `+` for the lowest and the highest possible id.
pub(super) fn id_or_end(text: &[u8], seq: u64) -> Result<StreamId, Error> {
    match as_c(text)? {
        b"-" => Ok(StreamId::ZERO),
        b"+" => Ok(StreamId::MAX),
        _ => id(text, seq),
    }
}

/// Parses an id for XADD, except `*`. Redis 6.2 makes no sequence number for a given time.
pub(super) fn wanted(text: &[u8], generation: Generation) -> Result<Wanted, Error> {
    parse(text, 0).and_then(|wanted| match wanted {
        Wanted::Numbered(_) if generation == Generation::Redis62 => Err(INVALID),
        wanted => Ok(wanted),
    })
}

/// Parses the beginning of a range; `(` excludes the id itself.
pub(super) fn start(text: &[u8]) -> Result<StreamId, Error> {
    match excluded(text) {
        Some(text) => id(text, 0)?.next().ok_or(Error::of("ERR invalid start ID for the interval")),
        None => id_or_end(text, 0),
    }
}

/// Parses the end of a range; `(` excludes the id itself.
pub(super) fn end(text: &[u8]) -> Result<StreamId, Error> {
    match excluded(text) {
        Some(text) => id(text, u64::MAX)?.previous().ok_or(Error::of("ERR invalid end ID for the interval")),
        None => id_or_end(text, u64::MAX),
    }
}

/// Writes an id or another value as an argument.
pub(super) fn word(value: impl Display) -> Bytes {
    Bytes::from(value.to_string())
}

fn excluded(text: &[u8]) -> Option<&[u8]> {
    text.strip_prefix(b"(").filter(|id| !id.is_empty())
}

/// Returns the text up to the first zero byte: Redis reads no further.
fn as_c(text: &[u8]) -> Result<&[u8], Error> {
    if text.len() > LEN_MAX {
        return Err(INVALID);
    }
    Ok(text.split(|byte| *byte == 0).next().unwrap_or_default())
}

fn parse(text: &[u8], seq: u64) -> Result<Wanted, Error> {
    let text = as_c(text)?;
    let mut parts = text.splitn(2, |byte| *byte == b'-');
    let ms = number(parts.next().unwrap_or_default()).ok_or(INVALID)?;
    Ok(match parts.next() {
        None => Wanted::Exactly(StreamId { ms, seq }),
        Some(b"*") => Wanted::Numbered(ms),
        Some(seq) => Wanted::Exactly(StreamId { ms, seq: number(seq).ok_or(INVALID)? }),
    })
}

/// Parses an unsigned 64-bit number. Parses a non-canonical one like C's `strtoull`: blanks before
/// it, a sign, leading zeros, and a minus that negates it.
fn number(text: &[u8]) -> Option<u64> {
    if let Some(value) = integer(text) {
        return u64::try_from(value).ok();
    }
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t'..=b'\r');
    let text = &text[text.iter().take_while(|byte| blank(byte)).count()..];
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let value: u64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    Some(if negative { value.wrapping_neg() } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_as_redis_reads_them() {
        for (text, expected) in [
            (&b"5"[..], Some((5, 7))),
            (b"5-3", Some((5, 3))),
            (b"18446744073709551615-18446744073709551615", Some((u64::MAX, u64::MAX))),
            (b" +05-007", Some((5, 7))),
            (b"1--05", Some((1, u64::MAX - 4))),
            (b"5\0-9", Some((5, 7))),
            (b"18446744073709551616", None),
            (b"1--5", None),
            (b"5-", None),
            (b"-5", None),
            (b"", None),
            (b"5-*", None),
            (b"a-1", None),
            (b"-", None),
            (&[b'0'; 128], None),
        ] {
            let expected = expected.map(|(ms, seq)| StreamId { ms, seq });
            assert_eq!(id(text, 7).ok(), expected, "{}", String::from_utf8_lossy(text));
        }
    }

    #[test]
    fn ranges_may_leave_their_ends_out() {
        assert_eq!(start(b"(5"), Ok(StreamId { ms: 5, seq: 1 }));
        assert_eq!(end(b"(5"), Ok(StreamId { ms: 5, seq: u64::MAX - 1 }));
        assert_eq!(end(b"(5-0"), Ok(StreamId { ms: 4, seq: u64::MAX }));
        assert!(end(b"(0-0").is_err() && start(b"(+").is_err() && start(b"(").is_err());
        assert_eq!((start(b"-"), end(b"+")), (Ok(StreamId::ZERO), Ok(StreamId::MAX)));
    }
}
