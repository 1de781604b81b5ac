//! ZRANGESTORE destination source min max [BYSCORE | BYLEX] [REV] [LIMIT offset count]: stores the
//! members in a range; replies with their number.

use bytes::Bytes;

use super::{
    ranging::{Form, Query},
    storing::store,
};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "zrangestore",
    group: Group::SortedSet,
    since: "6.2.0",
    summary: "Stores the members of a sorted set in a range.",
    arity: -5,
    flags: Flags::WRITE.union(Flags::DENYOOM),
    keys: Keys::Range { first: 1, last: 2, step: 1 },
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let form = Form { by: None, reversed: None, stores: true };
    let query = Query::parse(&args[3..], form)?;
    let selected = query.select(ctx, &args[2])?;
    Ok(store(ctx, &args[1], selected, "zrangestore"))
}
