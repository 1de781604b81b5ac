//! Parses arguments, with Redis's rules and error texts.

use std::ops::Range;

use super::Error;
use crate::keyspace;

/// Parses a 32-bit integer, like a database number.
///
/// # Errors
/// [`Error::NOT_INTEGER`], or another text for an integer that is too large.
pub fn int32(text: &[u8]) -> Result<i32, Error> {
    let value = integer_in(text, i32::MIN.into(), i32::MAX.into())?;
    Ok(i32::try_from(value).expect("it is in range"))
}

/// Parses a 64-bit integer: decimal digits with an optional minus, no spaces, no plus, no leading
/// zeros.
///
/// # Errors
/// [`Error::NOT_INTEGER`].
pub fn integer(text: &[u8]) -> Result<i64, Error> {
    keyspace::integer(text).ok_or(Error::NOT_INTEGER)
}

/// Parses an integer between `min` and `max`.
///
/// # Errors
/// [`Error::NOT_INTEGER`], or that it is out of range.
pub fn integer_in(text: &[u8], min: i64, max: i64) -> Result<i64, Error> {
    let value = integer(text)?;
    if (min..=max).contains(&value) { Ok(value) } else { Err(Error::not_between(min, max)) }
}

/// Parses an integer between `min` and `max`, with the same error for every mistake.
///
/// # Errors
/// `error`.
pub fn ranged(text: &[u8], min: i64, max: i64, error: Error) -> Result<i64, Error> {
    keyspace::integer(text).filter(|value| (min..=max).contains(value)).ok_or(error)
}

/// Returns the indices from `start` to `stop`, both included, of a sequence of `len` elements.
/// Negative indices count from its end; the range is cut to the sequence.
pub fn index_range(start: i64, stop: i64, len: usize) -> Range<usize> {
    let from_end = |index: i64| {
        let index = i128::from(index) + if index < 0 { len as i128 } else { 0 };
        usize::try_from(index.clamp(-1, len as i128)).ok()
    };
    let start = from_end(start).unwrap_or(0);
    let end = from_end(stop).map_or(0, |stop| (stop + 1).min(len));
    if start < end { start..end } else { 0..0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_count_from_either_end_and_stay_inside() {
        for (start, stop, expected) in [
            (0, -1, 0..5),
            (1, 2, 1..3),
            (-2, -1, 3..5),
            (-100, 100, 0..5),
            (3, 1, 0..0),
            (5, 9, 0..0),
            (0, -6, 0..0),
            (i64::MIN, i64::MAX, 0..5),
            (i64::MAX, i64::MIN, 0..0),
        ] {
            assert_eq!(index_range(start, stop, 5), expected, "{start} to {stop}");
        }
        assert_eq!(index_range(0, -1, 0), 0..0);
    }
}
