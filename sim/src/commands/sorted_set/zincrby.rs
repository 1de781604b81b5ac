//! ZINCRBY key increment member: adds to the score of a member; replies with the new score.

use bytes::Bytes;

use super::adding::{Options, add};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec, double},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "zincrby",
    group: Group::SortedSet,
    since: "1.2.0",
    summary: "Adds to the score of a member of a sorted set.",
    arity: 4,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let options = Options { increments: true, ..Options::default() };
    add(ctx, &args[1], &[(double(&args[2])?, args[3].clone())], options)
}
