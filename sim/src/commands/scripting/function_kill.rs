//! FUNCTION KILL: ends an endless function, unless it has written.

use bytes::Bytes;

use super::kill::{Kind, kill};

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "function|kill",
    group: Group::Scripting,
    since: "7.0.0",
    summary: "Ends the running function.",
    arity: 2,
    flags: Flags::NOSCRIPT.union(Flags::ALLOW_BUSY),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, _: &[Bytes]) -> Result<Reply, Error> {
    kill(ctx, Kind::Function)
}
