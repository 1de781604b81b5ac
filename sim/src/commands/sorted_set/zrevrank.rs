//! ZREVRANK key member [WITHSCORE]: the number of members before this one, from the highest score
//! down.

use bytes::Bytes;

use super::answering::ranked;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "zrevrank",
    group: Group::SortedSet,
    since: "2.0.0",
    summary: "The rank of a member of a sorted set, by descending score.",
    arity: -3,
    flags: Flags::READONLY.union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    ranked(ctx, args, |set| set.rank(&args[2]).map(|rank| set.len() - 1 - rank), "zrevrank")
}
