//! Shared code of the pops: LPOP and RPOP, LMPOP and BLMPOP, BLPOP and BRPOP.

use bytes::Bytes;

use super::ends::{end, popped};
use crate::{
    blob::Blob,
    commands::{Ctx, Error, Wait, many_keys, ranged},
    generation::Feature,
    keyspace::{End, List},
    resp::Reply,
};

/// Runs LPOP and RPOP: replies with one element, or with a list of up to `count`.
pub(super) fn pop(ctx: &mut Ctx<'_>, args: &[Bytes], from: End, name: &'static str) -> Result<Reply, Error> {
    if args.len() > 3 {
        return Err(Error::arity(name));
    }
    let key = &args[1];
    let count = args.get(2).map(|count| ranged(count, 0, i64::MAX, Error::NOT_POSITIVE)).transpose()?;
    let Some(count) = count else {
        let element = ctx.modify::<List>(key)?.and_then(|list| list.pop(from));
        if element.is_some() {
            popped(ctx, key, from, 1);
        }
        return Ok(element.into());
    };
    // Redis 6.2 looks at the count before the key.
    let is_old = !ctx.node.config.generation.has(Feature::CountedPops);
    if is_old && count == 0 {
        return Ok(Reply::NullArray);
    }
    if ctx.modify::<List>(key)?.is_none() {
        return Ok(if is_old { Reply::Null } else { Reply::NullArray });
    }
    let elements = take(ctx, key, from, count)?;
    Ok(Reply::Array(elements.into_iter().map(Reply::from).collect()))
}

/// Pops up to `count` elements from an end and reports it. Empty if the list does not exist.
fn take(ctx: &mut Ctx<'_>, key: &Bytes, from: End, count: i64) -> Result<Vec<Blob>, Error> {
    let Some(list) = ctx.modify::<List>(key)? else { return Ok(Vec::new()) };
    let count = usize::try_from(count).unwrap_or(usize::MAX).min(list.len());
    let elements: Vec<Blob> = std::iter::from_fn(|| list.pop(from)).take(count).collect();
    if !elements.is_empty() {
        popped(ctx, key, from, elements.len());
    }
    Ok(elements)
}

fn pop_command(from: End) -> Bytes {
    Bytes::from_static(match from {
        End::Left => b"LPOP",
        End::Right => b"RPOP",
    })
}

/// Runs BLPOP and BRPOP: pops from the first key with an element, or blocks the client.
pub(super) fn pop_or_wait(ctx: &mut Ctx<'_>, args: &[Bytes], from: End) -> Result<Reply, Error> {
    let (timeout, keys) = args[1..].split_last().expect("the arity has a timeout");
    let wait = Wait::parse(ctx, timeout)?;
    // Unlike here, BLMPOP and the pops of sorted sets count as changes of the client after a wait.
    ctx.take_as_pushed_to();
    for key in ctx.candidates(keys) {
        if let Some(element) = take(ctx, &key, from, 1)?.pop() {
            ctx.propagate_as(vec![vec![pop_command(from), key.clone()]]);
            return Ok(Reply::Array(vec![Reply::from(key), Reply::from(element)]));
        }
    }
    Ok(ctx.wait(args, keys, wait, Reply::NullArray))
}

/// Runs LMPOP, and BLMPOP with a timeout: pops up to COUNT elements from the first key that has
/// any. `args` begin with the number of keys; `whole` is the complete command.
pub(super) fn pop_from_many(
    ctx: &mut Ctx<'_>,
    whole: &[Bytes],
    args: &[Bytes],
    timeout: Option<&Bytes>,
) -> Result<Reply, Error> {
    let (keys, from, count) = many_keys(args, end)?;
    // The timeout is checked last.
    let wait = timeout.map(|timeout| Wait::parse(ctx, timeout)).transpose()?;
    for key in ctx.candidates(keys) {
        let elements = take(ctx, &key, from, count)?;
        if !elements.is_empty() {
            let taken = Bytes::from(elements.len().to_string());
            ctx.propagate_as(vec![vec![pop_command(from), key.clone(), taken]]);
            let elements = elements.into_iter().map(Reply::from).collect();
            return Ok(Reply::Array(vec![Reply::from(key), Reply::Array(elements)]));
        }
    }
    Ok(match wait {
        Some(wait) => ctx.wait(whole, keys, wait, Reply::NullArray),
        None => Reply::NullArray,
    })
}
