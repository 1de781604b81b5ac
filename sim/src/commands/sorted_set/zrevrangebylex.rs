//! ZREVRANGEBYLEX key max min [LIMIT offset count]: the members in a range of members, in
//! descending order.

use bytes::Bytes;

use super::ranging::{By, Form, Query};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "zrevrangebylex",
    group: Group::SortedSet,
    since: "2.8.9",
    summary: "The members of a sorted set in a range of members, in descending order.",
    arity: -4,
    flags: Flags::READONLY,
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let form = Form { by: Some(By::Lex), reversed: Some(true), stores: false };
    Query::parse(&args[2..], form)?.answer(ctx, &args[1])
}
