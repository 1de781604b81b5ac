//! SORT_RO key [BY pattern] [LIMIT offset count] [GET pattern ...] [ASC | DESC] [ALPHA]: SORT
//! without STORE.

use bytes::Bytes;

use super::sorting::SortOptions;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec, access},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "sort_ro",
    group: Group::Generic,
    since: "7.0.0",
    summary: "Sorts the elements of a list, set or sorted set.",
    arity: -2,
    flags: Flags::READONLY.union(Flags::MOVABLEKEYS),
    keys: Keys::Found(keys),
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let may_follow = access::may_follow(ctx, &SPEC, args);
    let sorted = SortOptions::parse(ctx, args, false, may_follow)?.sorted(ctx, &args[1])?;
    Ok(Reply::Array(sorted.into_iter().map(Reply::from).collect()))
}

/// Only the key itself. COMMAND INFO warns that patterns name further keys.
fn keys(_: &[Bytes]) -> Vec<usize> {
    vec![1]
}
