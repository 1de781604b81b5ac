//! XREVRANGE key end start [COUNT count]: the entries between two ids, last first.

use bytes::Bytes;

use super::ranging::range;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "xrevrange",
    group: Group::Stream,
    since: "5.0.0",
    summary: "The entries between two ids, the last first.",
    arity: -4,
    flags: Flags::READONLY,
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    range(ctx, args, true)
}
