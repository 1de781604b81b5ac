//! The arguments that LMPOP, ZMPOP and their blocking forms have in common.

use bytes::Bytes;

use super::{Error, ranged};

/// Reads `numkeys key [key ...] WHERE [COUNT count]`: the keys, the end to pop from, which `end`
/// reads, and how many elements.
///
/// # Errors
/// What is wrong with the first argument that is.
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
