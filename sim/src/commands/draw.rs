//! Random selection of elements of a collection, as in HRANDFIELD, SRANDMEMBER and ZRANDMEMBER.

use std::collections::{BTreeMap, BTreeSet};

use super::{Ctx, Error, Origin, parse::integer_in};
use crate::{env::Env, resp::Reply};

/// Maximum number of elements that one command draws with repetition. Redis has no limit, so that a
/// client may bring it down.
const REPEATS_MAX: u64 = 1 << 20;

/// Minimum bytes of an element in a reply: those of an empty string.
const ELEMENT_MIN: u64 = 6;

/// As in Redis: to draw more than 1/3 of the elements, list them all first.
const ALL_FACTOR: usize = 3;

/// Parses the count of such a command, which may be negative.
pub(super) fn random_count(text: &[u8]) -> Result<i64, Error> {
    integer_in(text, -i64::MAX, i64::MAX)
}

/// Closes the client if it would never get the whole reply: it asks for more elements than one
/// command draws, and their size exceeds its hard output limit. A server would close it in the
/// middle of the reply.
pub(super) fn cut_short(ctx: &mut Ctx<'_>, count: i64) -> Option<Reply> {
    let limit = ctx.node.output_limit(ctx.conn).hard;
    let least = count.unsigned_abs().saturating_mul(ELEMENT_MIN);
    let is_client = matches!(ctx.origin, Origin::Client | Origin::Exec);
    if count >= 0 || count.unsigned_abs() <= REPEATS_MAX || limit == 0 || least < limit || !is_client {
        return None;
    }
    ctx.node.overrun(ctx.conn);
    Some(Reply::Silence)
}

/// Draws indices below `len`, which must not be 0. A positive `count` draws up to `count` different
/// ones; a negative one draws exactly its absolute value, with repetition.
pub(super) fn draw(env: &mut Env, len: usize, count: i64) -> Result<Vec<usize>, Error> {
    if count < 0 {
        return Ok((0..repeats(count)?).map(|_| env.random_below(len)).collect());
    }
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    if count >= len {
        return Ok((0..len).collect());
    }
    // The first steps of a Fisher-Yates shuffle of all indices; the map holds only the moved ones.
    let mut moved = BTreeMap::new();
    let drawn = (0..count).map(|at| {
        let from = at + env.random_below(len - at);
        let here = moved.remove(&at).unwrap_or(at);
        if from == at { here } else { moved.insert(from, here).unwrap_or(from) }
    });
    Ok(drawn.collect())
}

/// Draws elements of a hash table, which have no index: `random` draws one, and `all` lists them
/// for a large count.
pub(super) fn draw_elements<T: Clone + Ord>(
    env: &mut Env,
    len: usize,
    count: i64,
    mut random: impl FnMut(&mut Env) -> Option<T>,
    all: impl FnOnce() -> Vec<T>,
) -> Result<Vec<T>, Error> {
    if count < 0 {
        return Ok((0..repeats(count)?).map_while(|_| random(env)).collect());
    }
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    if count.saturating_mul(ALL_FACTOR) > len {
        let all = all();
        return Ok(draw(env, len, count as i64)?.into_iter().map(|at| all[at].clone()).collect());
    }
    // At most 1/3 of the elements is drawn already, so few draws are repeats.
    let (mut seen, mut drawn) = (BTreeSet::new(), Vec::with_capacity(count));
    while drawn.len() < count {
        let Some(element) = random(env) else { break };
        if seen.insert(element.clone()) {
            drawn.push(element);
        }
    }
    Ok(drawn)
}

fn repeats(count: i64) -> Result<u64, Error> {
    let count = count.unsigned_abs();
    if count > REPEATS_MAX { Err(Error::OUT_OF_RANGE) } else { Ok(count) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_ones_are_drawn_and_each_as_often_as_the_others() {
        let mut env = Env::new(7);
        for len in [1, 2, 3, 10, 100] {
            for count in [0, 1, 2, 3, 9, 10, 33, 34, 99, 100, 101, i64::MAX] {
                let expected = (len as u64).min(count.unsigned_abs()) as usize;
                let indices = draw(&mut env, len, count).expect("a count");
                let elements = draw_elements(
                    &mut env,
                    len,
                    count,
                    |env| Some(env.random_below(len)),
                    || (0..len).collect(),
                );
                for drawn in [indices, elements.expect("a count")] {
                    let different: BTreeSet<usize> = drawn.iter().copied().collect();
                    assert_eq!((drawn.len(), different.len()), (expected, expected), "{count} of {len}");
                    assert!(drawn.iter().all(|index| *index < len));
                }
            }
        }
        let mut often = [0u32; 5];
        (0..5_000)
            .for_each(|_| draw(&mut env, 5, 2).expect("a count").into_iter().for_each(|at| often[at] += 1));
        assert!(often.iter().all(|times| (1_800..2_200).contains(times)), "{often:?}");
    }
}
