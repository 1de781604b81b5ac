//! XRANGE key start end [COUNT count]: the entries between two ids.

use bytes::Bytes;

use super::ranging::range;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "xrange",
    group: Group::Stream,
    since: "5.0.0",
    summary: "The entries between two ids.",
    arity: -4,
    flags: Flags::READONLY,
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    range(ctx, args, false)
}
