//! ZRANGE key start stop [BYSCORE | BYLEX] [REV] [LIMIT offset count] [WITHSCORES]: the members in
//! a range of ranks, scores or members.

use bytes::Bytes;

use super::ranging::{Form, Query};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "zrange",
    group: Group::SortedSet,
    since: "1.2.0",
    summary: "The members of a sorted set in a range.",
    arity: -4,
    flags: Flags::READONLY,
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let form = Form { by: None, reversed: None, stores: false };
    Query::parse(&args[2..], form)?.answer(ctx, &args[1])
}
