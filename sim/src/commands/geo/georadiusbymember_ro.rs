//! GEORADIUSBYMEMBER_RO key member radius unit [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT count
//! [ANY]] [ASC | DESC]: the places in a circle around one of them.

use bytes::Bytes;

use super::{query::Form, searching::search};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "georadiusbymember_ro",
    group: Group::Geo,
    since: "3.2.10",
    summary: "The places in a circle around one of them.",
    arity: -5,
    flags: Flags::READONLY,
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    search(ctx, args, Form::Member { may_store: false })
}
