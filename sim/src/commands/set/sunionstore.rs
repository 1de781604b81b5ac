//! SUNIONSTORE destination key [key ...]: stores the members of any of the sets; replies with their
//! number.

use bytes::Bytes;

use super::combining::{Operation, store};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "sunionstore",
    group: Group::Set,
    since: "1.0.0",
    summary: "Stores the members of any of the sets.",
    arity: -3,
    flags: Flags::WRITE.union(Flags::DENYOOM),
    keys: Keys::ALL,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    store(ctx, Operation::Union, &args[1], &args[2..])
}
