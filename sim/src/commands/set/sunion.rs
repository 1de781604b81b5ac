//! SUNION key [key ...]: the members of any of the sets.

use bytes::Bytes;

use super::combining::{Operation, answer};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "sunion",
    group: Group::Set,
    since: "1.0.0",
    summary: "The members of any of the sets.",
    arity: -2,
    flags: Flags::READONLY,
    keys: Keys::ALL,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    answer(ctx, Operation::Union, &args[1..])
}
