//! Arguments shared by LMPOP, ZMPOP and their blocking forms.

use bytes::Bytes;

use super::{Error, ranged};

/// Parses `numkeys key [key ...] WHERE [COUNT count]`. Returns the keys, the end to pop from, as
/// `end` parses it, and the number of elements.
///
/// # Errors
/// The error of the first wrong argument.
pub(super) fn many_keys<T>(
    args: &[Bytes],
    end: impl Fn(&[u8]) -> Result<T, Error>,
) -> Result<(&[Bytes], T, i64), Error> {
    let keys = ranged(&args[0], 1, i64::MAX, Error::NUMKEYS)?;
    let words = usize::try_from(keys).ok().and_then(|keys| args[1..].split_at_checked(keys));
    let (keys, [word, options @ ..]) = words.ok_or(Error::SYNTAX)? else { return Err(Error::SYNTAX) };
    let from = end(word)?;
    let count = match options {
        [] => 1,
        [option, count, rest @ ..] if option.eq_ignore_ascii_case(b"count") => {
            let count = ranged(count, 1, i64::MAX, Error::COUNT)?;
            if !rest.is_empty() {
                return Err(Error::SYNTAX);
            }
            count
        }
        _ => return Err(Error::SYNTAX),
    };
    Ok((keys, from, count))
}
