//! ZREVRANGE key start stop [WITHSCORES]: the members in a range of ranks, from the highest score
//! down.

use bytes::Bytes;

use super::ranging::{By, Form, Query};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "zrevrange",
    group: Group::SortedSet,
    since: "1.2.0",
    summary: "The members of a sorted set in a range of ranks, in descending order.",
    arity: -4,
    flags: Flags::READONLY,
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let form = Form { by: Some(By::Rank), reversed: Some(true), stores: false };
    Query::parse(&args[2..], form)?.answer(ctx, &args[1])
}
