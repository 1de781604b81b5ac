//! Arguments to values, with Redis's rules and error texts.

use super::Error;
use crate::keyspace;

/// A 32-bit integer, as database numbers are.
///
/// # Errors
/// [`Error::NOT_INTEGER`], or another text for an integer that is too large.
pub fn int32(text: &[u8]) -> Result<i32, Error> {
    let value = integer_in(text, i32::MIN.into(), i32::MAX.into())?;
    Ok(i32::try_from(value).expect("it is in range"))
}

/// A 64-bit integer: decimal digits with an optional minus, no spaces, no plus, no leading zeros.
///
/// # Errors
/// [`Error::NOT_INTEGER`].
pub fn integer(text: &[u8]) -> Result<i64, Error> {
    keyspace::integer(text).ok_or(Error::NOT_INTEGER)
}

/// An integer between `min` and `max`.
///
/// # Errors
/// [`Error::NOT_INTEGER`], or that it is out of range.
pub fn integer_in(text: &[u8], min: i64, max: i64) -> Result<i64, Error> {
    let value = integer(text)?;
    if (min..=max).contains(&value) { Ok(value) } else { Err(Error::not_between(min, max)) }
}
