//! GEORADIUS_RO key longitude latitude radius unit [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT count
//! [ANY]] [ASC | DESC]: the places in a circle.

use bytes::Bytes;

use super::{query::Form, searching::search};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "georadius_ro",
    group: Group::Geo,
    since: "3.2.10",
    summary: "The places in a circle.",
    arity: -6,
    flags: Flags::READONLY,
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    search(ctx, args, Form::Coordinates { may_store: false })
}
