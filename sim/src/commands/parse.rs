//! Arguments to values, with Redis's rules and error texts.

use super::Error;

/// A 64-bit integer: decimal digits with an optional minus, no spaces, no plus, no leading zeros.
///
/// # Errors
/// [`Error::NOT_INTEGER`].
pub fn integer(text: &[u8]) -> Result<i64, Error> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let canonical = match digits {
        [] => false,
        [b'0'] => text.len() == 1,
        [first, ..] => *first != b'0' && digits.iter().all(u8::is_ascii_digit),
    };
    if !canonical {
        return Err(Error::NOT_INTEGER);
    }
    std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).ok_or(Error::NOT_INTEGER)
}
