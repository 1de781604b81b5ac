//! MODULE LOAD path [arg ...]: fails, because this node cannot run the code of modules.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "module|load",
    group: Group::Server,
    since: "4.0.0",
    summary: "Loads a module.",
    arity: -3,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::NO_ASYNC_LOADING).union(Flags::CHANGES_MODULES),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(_: &mut Ctx<'_>, _: &[Bytes]) -> Result<Reply, Error> {
    Err(Error::of("ERR Error loading the extension. Please check the server logs."))
}
