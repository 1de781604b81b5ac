//! GEORADIUSBYMEMBER key member radius unit [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT count [ANY]]
//! [ASC | DESC]
//! [STORE key | STOREDIST key]: the places in a circle around one of them.

use bytes::Bytes;

use super::{
    query::{Form, keys_around_member},
    searching::search,
};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "georadiusbymember",
    group: Group::Geo,
    since: "3.2.0",
    summary: "The places in a circle around one of them, or stores them.",
    arity: -5,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::MOVABLEKEYS),
    keys: Keys::Found(keys_around_member),
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    search(ctx, args, Form::Member { may_store: true })
}
