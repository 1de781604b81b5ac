//! LMOVE source destination LEFT | RIGHT LEFT | RIGHT: moves an element from an end of one list to
//! an end of another.

use bytes::Bytes;

use super::{ends::end, moving::shift};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "lmove",
    group: Group::List,
    since: "6.2.0",
    summary: "Moves an element from list to list.",
    arity: 5,
    flags: Flags::WRITE.union(Flags::DENYOOM),
    keys: Keys::Range { first: 1, last: 2, step: 1 },
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let ends = [end(&args[3])?, end(&args[4])?];
    Ok(shift(ctx, [&args[1], &args[2]], ends)?.into())
}
