//! MODULE LIST: the modules, of which there are none.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "module|list",
    group: Group::Server,
    since: "4.0.0",
    summary: "Lists the modules.",
    arity: 2,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(_: &mut Ctx<'_>, _: &[Bytes]) -> Result<Reply, Error> {
    Ok(Reply::Array(Vec::new()))
}
