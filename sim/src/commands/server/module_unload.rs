//! MODULE UNLOAD name: fails, because no module is loaded.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "module|unload",
    group: Group::Server,
    since: "4.0.0",
    summary: "Unloads a module.",
    arity: 3,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::NO_ASYNC_LOADING).union(Flags::CHANGES_MODULES),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(_: &mut Ctx<'_>, _: &[Bytes]) -> Result<Reply, Error> {
    Err(Error::of("ERR Error unloading module: no such module with that name"))
}
