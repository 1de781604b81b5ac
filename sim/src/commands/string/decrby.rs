//! DECRBY key decrement: subtracts from an integer.

use bytes::Bytes;

use super::incrby::add;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec, integer},
    generation::Generation,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "decrby",
    group: Group::String,
    since: "1.0.0",
    summary: "Subtracts from an integer.",
    arity: 3,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let decrement = integer(&args[2])?;
    let increment = match decrement.checked_neg() {
        Some(increment) => increment,
        // Its negation is the same number.
        None if ctx.node.config.generation == Generation::Redis62 => decrement,
        None => return Err(Error::of("ERR decrement would overflow")),
    };
    add(ctx, &args[1], increment)
}
