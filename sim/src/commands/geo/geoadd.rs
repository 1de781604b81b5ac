//! GEOADD key [NX | XX] [CH] longitude latitude member [longitude latitude member ...]: adds places
//! to a sorted set.

use bytes::Bytes;

use super::{
    earth::Place,
    grid::{Area, Cell, FINEST},
};
use crate::{
    commands::{
        Ctx, Error, Flags, Group, Keys, Spec,
        sorted_set::adding::{Options, add},
    },
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "geoadd",
    group: Group::Geo,
    since: "3.2.0",
    summary: "Adds places to a sorted set.",
    arity: -5,
    flags: Flags::WRITE.union(Flags::DENYOOM),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let mut options = Options::default();
    let mut words = &args[2..];
    while let [word, rest @ ..] = words {
        match word.to_ascii_lowercase().as_slice() {
            b"nx" => options.new_only = true,
            b"xx" => options.present_only = true,
            b"ch" => options.count_changed = true,
            _ => break,
        }
        words = rest;
    }
    let written = &args[2..args.len() - words.len()];
    let (places, rest) = words.as_chunks::<3>();
    if places.is_empty() || !rest.is_empty() || options.new_only && options.present_only {
        return Err(Error::SYNTAX);
    }
    let mut pairs = Vec::with_capacity(places.len());
    for [longitude, latitude, member] in places {
        let cell = Cell::of(Place::parse(longitude, latitude)?, &Area::MAP, FINEST);
        pairs.push((cell.bits, member));
    }
    let scored: Vec<(f64, Bytes)> =
        pairs.iter().map(|(bits, member)| (*bits as f64, (*member).clone())).collect();
    let dirty_before = ctx.effects.dirty;
    let reply = add(ctx, &args[1], &scored, options)?;
    if ctx.effects.dirty != dirty_before {
        // Propagate the equivalent ZADD.
        let mut command = vec![Bytes::from_static(b"zadd"), args[1].clone()];
        command.extend_from_slice(written);
        command.extend(pairs.iter().flat_map(|(bits, member)| [bits.to_string().into(), (*member).clone()]));
        ctx.propagate_as(vec![command]);
    }
    Ok(reply)
}
