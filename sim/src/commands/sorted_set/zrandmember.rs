//! ZRANDMEMBER key [count [WITHSCORES]]: random members, each once; with a negative count each as
//! often as drawn.

use bytes::Bytes;

use super::answering::members;
use crate::{
    commands::{
        Ctx, Error, Flags, Group, Keys, Spec,
        draw::{cut_short, draw, random_count},
    },
    keyspace::SortedSet,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "zrandmember",
    group: Group::SortedSet,
    since: "6.2.0",
    summary: "Random members of a sorted set.",
    arity: -2,
    flags: Flags::READONLY,
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let key = &args[1];
    let count = args.get(2).map(|count| random_count(count)).transpose()?;
    let with_scores = match args {
        [_, _] | [_, _, _] => false,
        [_, _, _, option] if option.eq_ignore_ascii_case(b"withscores") => true,
        _ => return Err(Error::SYNTAX),
    };
    // Twice the count must fit as well.
    if with_scores && count.is_some_and(|count| count.unsigned_abs() > i64::MAX.unsigned_abs() / 2) {
        return Err(Error::OUT_OF_RANGE);
    }
    let Some(len) = ctx.read::<SortedSet>(key)?.map(SortedSet::len) else {
        return Ok(if count.is_some() { Reply::Array(Vec::new()) } else { Reply::Null });
    };
    if let Some(reply) = count.and_then(|count| cut_short(ctx, count)) {
        return Ok(reply);
    }
    let drawn = draw(ctx.env, len, count.unwrap_or(1))?;
    let set = ctx.node.dbs[ctx.db].typed::<SortedSet>(key)?.expect("its length was just asked for");
    let mut chosen = drawn.into_iter().filter_map(|rank| set.get(rank));
    Ok(match count {
        Some(_) => members(chosen, with_scores),
        None => chosen.next().map(|(_, member)| member).into(),
    })
}
