//! SENTINEL MYID: replies with the ID of this Sentinel.

use bytes::Bytes;

use super::sentinel;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "sentinel|myid",
    group: Group::Sentinel,
    since: "2.8.4",
    summary: "The name of this Sentinel among others.",
    arity: 2,
    flags: Flags::ADMIN,
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let _ = args;
    Ok(Reply::bulk(sentinel(ctx).my_id()))
}
