//! GEOPOS key [member ...]: the longitudes and latitudes of places.

use bytes::Bytes;

use super::grid::Cell;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    keyspace::SortedSet,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "geopos",
    group: Group::Geo,
    since: "3.2.0",
    summary: "The longitudes and latitudes of places.",
    arity: -2,
    flags: Flags::READONLY,
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let generation = ctx.node.config.generation;
    let set = ctx.read::<SortedSet>(&args[1])?;
    let place = |member: &Bytes| {
        let score = set.and_then(|set| set.score(member));
        score.map_or(Reply::NullArray, |score| Cell::of_score(score).middle().reply(generation))
    };
    Ok(Reply::Array(args[2..].iter().map(place).collect()))
}
