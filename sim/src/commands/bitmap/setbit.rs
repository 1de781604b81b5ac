//! SETBIT key offset bit: sets or clears a bit of a string, which grows as needed; replies with the
//! old bit.

use bytes::Bytes;

use super::bits;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec, ranged},
    effect::Class,
    generation::Feature,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "setbit",
    group: Group::Bitmap,
    since: "2.2.0",
    summary: "Sets or clears a bit of a string.",
    arity: 4,
    flags: Flags::WRITE.union(Flags::DENYOOM),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let key = &args[1];
    let offset = bits::offset(ctx, &args[2], None)?;
    let on = ranged(&args[3], 0, 1, Error::of("ERR bit is not an integer or out of range"))? == 1;
    let (was, changes) = bits::edit(ctx, key, offset, |bytes, grows| {
        let was = bits::get(bytes, offset);
        let mask = 1 << (7 - offset % 8);
        let byte = &mut bytes[offset / 8];
        *byte = if on { *byte | mask } else { *byte & !mask };
        (was, grows || was != on)
    })?;
    if changes || !ctx.node.config.generation.has(Feature::IdleBits) {
        ctx.changed(key, Class::String, "setbit");
    }
    Ok(was.into())
}
