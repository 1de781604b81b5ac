//! Arguments to values, with Redis's rules and error texts.

use super::Error;
use crate::keyspace;

/// A 64-bit integer: decimal digits with an optional minus, no spaces, no plus, no leading zeros.
///
/// # Errors
/// [`Error::NOT_INTEGER`].
pub fn integer(text: &[u8]) -> Result<i64, Error> {
    keyspace::integer(text).ok_or(Error::NOT_INTEGER)
}
