//! SDIFF key [key ...]: the members of the first set that are in no other set.

use bytes::Bytes;

use super::combining::{Operation, answer};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "sdiff",
    group: Group::Set,
    since: "1.0.0",
    summary: "The members of the first set that no other has.",
    arity: -2,
    flags: Flags::READONLY,
    keys: Keys::ALL,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    answer(ctx, Operation::Difference, &args[1..])
}
