//! ZRANGEBYSCORE key min max [WITHSCORES] [LIMIT offset count]: the members in a range of scores.

use bytes::Bytes;

use super::ranging::{By, Form, Query};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "zrangebyscore",
    group: Group::SortedSet,
    since: "1.0.5",
    summary: "The members of a sorted set in a range of scores.",
    arity: -4,
    flags: Flags::READONLY,
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let form = Form { by: Some(By::Score), reversed: Some(false), stores: false };
    Query::parse(&args[2..], form)?.answer(ctx, &args[1])
}
