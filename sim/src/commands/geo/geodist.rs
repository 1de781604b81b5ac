//! GEODIST key member member [M | KM | FT | MI]: the distance between two places.

use bytes::Bytes;

use super::{
    earth::{distance, unit},
    grid::Cell,
};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    keyspace::SortedSet,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "geodist",
    group: Group::Geo,
    since: "3.2.0",
    summary: "The distance between two places.",
    arity: -4,
    flags: Flags::READONLY,
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let metres = match &args[4..] {
        [] => 1.0,
        [name] => unit(name)?,
        _ => return Err(Error::SYNTAX),
    };
    let Some(set) = ctx.read::<SortedSet>(&args[1])? else { return Ok(Reply::Null) };
    let place = |member: &Bytes| set.score(member).map(|score| Cell::of_score(score).middle());
    Ok(match (place(&args[2]), place(&args[3])) {
        (Some(from), Some(to)) => distance(from.distance(to) / metres),
        _ => Reply::Null,
    })
}
