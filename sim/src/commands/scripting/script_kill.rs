//! SCRIPT KILL: ends an endless script, unless it has written.

use bytes::Bytes;

use super::kill::{Kind, kill};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "script|kill",
    group: Group::Scripting,
    since: "2.6.0",
    summary: "Ends the running script.",
    arity: 2,
    flags: Flags::NOSCRIPT.union(Flags::ALLOW_BUSY),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, _: &[Bytes]) -> Result<Reply, Error> {
    kill(ctx, Kind::Script)
}
