//! GEORADIUS key longitude latitude radius unit [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT count
//! [ANY]] [ASC | DESC]
//! [STORE key | STOREDIST key]: the places in a circle.

use bytes::Bytes;

use super::{
    query::{Form, keys_around_place},
    searching::search,
};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "georadius",
    group: Group::Geo,
    since: "3.2.0",
    summary: "The places in a circle, or stores them.",
    arity: -6,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::MOVABLEKEYS),
    keys: Keys::Found(keys_around_place),
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    search(ctx, args, Form::Coordinates { may_store: true })
}
