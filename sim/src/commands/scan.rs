//! Shared parts of SCAN, HSCAN, SSCAN and ZSCAN: the cursor, the options, and the work of one call.

use bytes::Bytes;

use super::{Error, integer};
use crate::{generation::Generation, glob::selects, resp::Reply};

const INVALID: Error = Error::of("ERR invalid cursor");

/// The options of a scan.
#[derive(Debug)]
pub(super) struct ScanOptions {
    /// COUNT: approximate number of elements to visit.
    pub(super) count: usize,
    /// MATCH.
    pattern: Option<Bytes>,
    /// TYPE, only for SCAN.
    pub(super) kind: Option<Bytes>,
}

impl ScanOptions {
    /// Parses `[MATCH pattern] [COUNT count]`.
    pub(super) fn parse(options: &[Bytes]) -> Result<ScanOptions, Error> {
        ScanOptions::parse_typed(options, |_| Err(Error::SYNTAX))
    }

    /// Parses `[MATCH pattern] [COUNT count] [TYPE type]`. `check` may refuse a type.
    pub(super) fn parse_typed(
        options: &[Bytes],
        check: impl Fn(&[u8]) -> Result<(), Error>,
    ) -> Result<ScanOptions, Error> {
        let mut parsed = ScanOptions { count: 10, pattern: None, kind: None };
        let (pairs, rest) = options.as_chunks::<2>();
        for [option, value] in pairs {
            match option.to_ascii_lowercase().as_slice() {
                b"count" => {
                    let count = usize::try_from(integer(value)?).ok().filter(|count| *count > 0);
                    parsed.count = count.ok_or(Error::SYNTAX)?;
                }
                b"match" => parsed.pattern = Some(value.clone()),
                b"type" => {
                    check(value)?;
                    parsed.kind = Some(value.clone());
                }
                _ => return Err(Error::SYNTAX),
            }
        }
        if rest.is_empty() { Ok(parsed) } else { Err(Error::SYNTAX) }
    }

    /// Returns true if the name passes MATCH.
    pub(super) fn wants(&self, name: &[u8]) -> bool {
        self.pattern.as_ref().is_none_or(|pattern| selects(pattern, name))
    }

    /// Continues from `cursor`: calls `step`, which adds elements to a list and returns the next
    /// cursor, until COUNT elements are found. At most ten steps per wanted element, so that a
    /// sparse table does not keep the node busy.
    pub(super) fn sweep<T>(
        &self,
        mut cursor: u64,
        mut step: impl FnMut(u64, &mut Vec<T>) -> u64,
    ) -> (u64, Vec<T>) {
        let mut found = Vec::new();
        for _ in 0..self.count.saturating_mul(10) {
            cursor = step(cursor, &mut found);
            if cursor == 0 || found.len() >= self.count {
                break;
            }
        }
        (cursor, found)
    }
}

/// Parses a cursor with C's `strtoul`, which negates a number behind a minus. From 7.2 on, a number
/// that is written as Redis writes it must not be negative.
pub(super) fn cursor(text: &[u8], generation: Generation) -> Result<u64, Error> {
    let is_old = generation.is_before_7_2();
    if !is_old && integer(text).is_ok_and(|number| number < 0) {
        return Err(INVALID);
    }
    let parse = |digits: &[u8]| match digits {
        [b'0'..=b'9', ..] => std::str::from_utf8(digits).ok()?.parse::<u64>().ok(),
        _ => None,
    };
    // In C, a zero byte ends the text.
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    // Older servers refuse blanks, and take an empty text for the start.
    let text = if is_old { text } else { text.trim_ascii_start() };
    let parsed = match text {
        [] if is_old => Some(0),
        [b'-', digits @ ..] => parse(digits).map(u64::wrapping_neg),
        [b'+', digits @ ..] => parse(digits),
        digits => parse(digits),
    };
    parsed.ok_or(INVALID)
}

/// Makes the reply of every scan: the next cursor, and the elements.
pub(super) fn reply(cursor: u64, found: Vec<Reply>) -> Reply {
    Reply::Array(vec![Reply::bulk(cursor.to_string()), Reply::Array(found)])
}
