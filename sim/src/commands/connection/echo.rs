//! ECHO message: replies with the message.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "echo",
    group: Group::Connection,
    since: "1.0.0",
    summary: "Answers its argument.",
    arity: 2,
    flags: Flags::LOADING.union(Flags::STALE).union(Flags::FAST),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(_: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    Ok(Reply::from(&args[1]))
}
