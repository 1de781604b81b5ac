//! Drawing elements of a collection at random, as HRANDFIELD, SRANDMEMBER and ZRANDMEMBER do.

use super::{Error, parse::integer_in};
use crate::env::Env;

/// The most elements that one command draws with repetition. Redis knows no limit, and a client may bring it down so.
const REPEATS_MAX: u64 = 1 << 20;

/// Reads the count of such a command, which may be negative.
pub(super) fn random_count(text: &[u8]) -> Result<i64, Error> {
    integer_in(text, -i64::MAX, i64::MAX)
}

/// Draws indices below `len`, which is not 0: as many different ones as there are up to a positive `count`, or exactly as
/// many as a negative `count` says, with repetition.
pub(super) fn draw(env: &mut Env, len: usize, count: i64) -> Result<Vec<usize>, Error> {
    if count < 0 {
        let count = count.unsigned_abs();
        if count > REPEATS_MAX {
            return Err(Error::OUT_OF_RANGE);
        }
        return Ok((0..count).map(|_| env.random_below(len)).collect());
    }
    let mut indices: Vec<usize> = (0..len).collect();
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    if count < len {
        // The first steps of a Fisher-Yates shuffle.
        for at in 0..count {
            indices.swap(at, at + env.random_below(len - at));
        }
        indices.truncate(count);
    }
    Ok(indices)
}
