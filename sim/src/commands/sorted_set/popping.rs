//! Shared code of the pops: ZPOPMIN and ZPOPMAX, ZMPOP and BZMPOP, BZPOPMIN and BZPOPMAX.

use bytes::Bytes;

use super::answering::{members, nested};
use crate::{
    blob::Blob,
    commands::{Ctx, Error, Wait, integer, many_keys, ranged},
    effect::{Class, Signal},
    generation::Generation,
    keyspace::{Extreme, SortedSet},
    resp::Reply,
};

/// Parses the end to pop from.
fn extreme(word: &[u8]) -> Result<Extreme, Error> {
    match word.to_ascii_lowercase().as_slice() {
        b"min" => Ok(Extreme::Min),
        b"max" => Ok(Extreme::Max),
        _ => Err(Error::SYNTAX),
    }
}

/// Returns the name of the command to propagate.
fn pop_command(from: Extreme) -> Bytes {
    Bytes::from_static(match from {
        Extreme::Min => b"ZPOPMIN",
        Extreme::Max => b"ZPOPMAX",
    })
}

/// Pops up to `count` members and reports it. Empty if the sorted set does not exist.
fn take(ctx: &mut Ctx<'_>, key: &Bytes, from: Extreme, count: i64) -> Result<Vec<(f64, Blob)>, Error> {
    let Some(set) = ctx.modify::<SortedSet>(key)? else { return Ok(Vec::new()) };
    let count = usize::try_from(count).unwrap_or(usize::MAX).min(set.len());
    let taken: Vec<(f64, Blob)> = std::iter::from_fn(|| set.pop(from)).take(count).collect();
    if !taken.is_empty() {
        let event = if from == Extreme::Min { "zpopmin" } else { "zpopmax" };
        ctx.effects.dirty += taken.len() as u64;
        ctx.touch_as(key, Class::SortedSet, event, Some(Signal::Last));
        ctx.replied();
        ctx.drop_if_empty(key);
    }
    Ok(taken)
}

/// Runs ZPOPMIN and ZPOPMAX.
pub(super) fn pop(ctx: &mut Ctx<'_>, args: &[Bytes], from: Extreme) -> Result<Reply, Error> {
    if args.len() > 3 {
        return Err(Error::SYNTAX);
    }
    let is_62 = ctx.node.config.generation == Generation::Redis62;
    let count = args.get(2).map(|count| match is_62 {
        true => integer(count),
        false => ranged(count, 0, i64::MAX, Error::NOT_POSITIVE),
    });
    let count = count.transpose()?;
    // Redis 6.2 does not even look at the key.
    if is_62 && count.is_some_and(|count| count <= 0) {
        return Ok(members(std::iter::empty(), true));
    }
    let taken = take(ctx, &args[1], from, count.unwrap_or(1))?;
    // Without a count, the single member is not nested in either protocol.
    if count.is_none() {
        let first = taken.into_iter().next();
        let both = first.map(|(score, member)| vec![Reply::from(member), Reply::Double(score)]);
        return Ok(Reply::Array(both.unwrap_or_default()));
    }
    Ok(members(taken.iter().map(|(score, member)| (*score, member)), true))
}

/// Runs BZPOPMIN and BZPOPMAX: pops from the first key with a member, or blocks the client.
pub(super) fn pop_or_wait(ctx: &mut Ctx<'_>, args: &[Bytes], from: Extreme) -> Result<Reply, Error> {
    let (timeout, keys) = args[1..].split_last().expect("the arity has a timeout");
    let wait = Wait::parse(ctx, timeout)?;
    for key in ctx.candidates(keys) {
        if let Some((score, member)) = take(ctx, &key, from, 1)?.pop() {
            ctx.propagate_as(vec![vec![pop_command(from), key.clone()]]);
            return Ok(Reply::Array(vec![Reply::from(key), Reply::from(member), Reply::Double(score)]));
        }
    }
    Ok(ctx.wait(args, keys, wait, Reply::NullArray))
}

/// Runs ZMPOP, and BZMPOP with a timeout: pops up to COUNT members from the first key that has any.
/// `args` begin with the number of keys; `whole` is the complete command.
pub(super) fn pop_from_many(
    ctx: &mut Ctx<'_>,
    whole: &[Bytes],
    args: &[Bytes],
    timeout: Option<&Bytes>,
) -> Result<Reply, Error> {
    let (keys, from, count) = many_keys(args, extreme)?;
    // The timeout is checked last.
    let wait = timeout.map(|timeout| Wait::parse(ctx, timeout)).transpose()?;
    for key in ctx.candidates(keys) {
        let taken = take(ctx, &key, from, count)?;
        if !taken.is_empty() {
            let count = Bytes::from(taken.len().to_string());
            ctx.propagate_as(vec![vec![pop_command(from), key.clone(), count]]);
            // Pairs in both protocols.
            let pairs = nested(taken.iter().map(|(score, member)| (*score, member)));
            return Ok(Reply::Array(vec![Reply::from(key), pairs]));
        }
    }
    Ok(match wait {
        Some(wait) => ctx.wait(whole, keys, wait, Reply::NullArray),
        None => Reply::NullArray,
    })
}
