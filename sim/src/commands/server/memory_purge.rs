//! MEMORY PURGE: does nothing, because there is no memory to release.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "memory|purge",
    group: Group::Server,
    since: "4.0.0",
    summary: "Gives free memory back.",
    arity: 2,
    flags: Flags::empty(),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(_: &mut Ctx<'_>, _: &[Bytes]) -> Result<Reply, Error> {
    Ok(Reply::OK)
}
