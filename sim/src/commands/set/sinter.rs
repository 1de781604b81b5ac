//! SINTER key [key ...]: the members common to all sets.

use bytes::Bytes;

use super::combining::{Operation, answer};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "sinter",
    group: Group::Set,
    since: "1.0.0",
    summary: "The members common to all sets.",
    arity: -2,
    flags: Flags::READONLY,
    keys: Keys::ALL,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    answer(ctx, Operation::Intersection, &args[1..])
}
