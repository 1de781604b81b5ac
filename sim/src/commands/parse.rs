//! Arguments to values, with Redis's rules and error texts.

use super::Error;
use crate::keyspace;

/// A 32-bit integer, as database numbers are.
///
/// # Errors
/// [`Error::NOT_INTEGER`], or another text for an integer that is too large.
pub fn int32(text: &[u8]) -> Result<i32, Error> {
    let out_of_range = Error::of("ERR value is out of range, value must between -2147483648 and 2147483647");
    i32::try_from(integer(text)?).map_err(|_| out_of_range)
}

/// A 64-bit integer: decimal digits with an optional minus, no spaces, no plus, no leading zeros.
///
/// # Errors
/// [`Error::NOT_INTEGER`].
pub fn integer(text: &[u8]) -> Result<i64, Error> {
    keyspace::integer(text).ok_or(Error::NOT_INTEGER)
}
