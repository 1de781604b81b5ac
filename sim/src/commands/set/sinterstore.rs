//! SINTERSTORE destination key [key ...]: stores the members common to all sets; replies with their
//! number.

use bytes::Bytes;

use super::combining::{Operation, store};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "sinterstore",
    group: Group::Set,
    since: "1.0.0",
    summary: "Stores the members common to all sets.",
    arity: -3,
    flags: Flags::WRITE.union(Flags::DENYOOM),
    keys: Keys::ALL,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    store(ctx, Operation::Intersection, &args[1], &args[2..])
}
