//! GEOHASH key [member ...]: the geohashes of places as 11 characters in the standard alphabet.

use bytes::Bytes;

use super::grid::{Area, Cell, FINEST};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    keyspace::SortedSet,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "geohash",
    group: Group::Geo,
    since: "3.2.0",
    summary: "The geohashes of places.",
    arity: -2,
    flags: Flags::READONLY,
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

const LETTERS: &[u8; 32] = b"0123456789bcdefghjkmnpqrstuvwxyz";
/// Letters that the 52 bits determine; two bits are unused.
const DECIDED: u32 = 10;

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let set = ctx.read::<SortedSet>(&args[1])?;
    let geohash = |member: &Bytes| {
        let place = Cell::of_score(set?.score(member)?).middle();
        let bits = Cell::of(place, &Area::WHOLE, FINEST).bits;
        let letter = |at: u32| LETTERS[(bits >> (2 * FINEST - 5 * (at + 1))) as usize & 31];
        // Redis once made the eleventh letter from missing bits. It is a constant today.
        Some((0..DECIDED).map(letter).chain([LETTERS[0]]).collect::<Bytes>())
    };
    Ok(Reply::Array(args[2..].iter().map(|member| geohash(member).into()).collect()))
}
