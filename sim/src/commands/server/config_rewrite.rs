//! CONFIG REWRITE: an error, because a node has no configuration file.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "config|rewrite",
    group: Group::Server,
    since: "2.8.0",
    summary: "Writes the options to the configuration file.",
    arity: 2,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(_: &mut Ctx<'_>, _: &[Bytes]) -> Result<Reply, Error> {
    Err(Error::of("ERR The server is running without a config file"))
}
