//! SMOVE source destination member: moves a member from set to set; replies with 1 if it existed.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    effect::{Class, Signal},
    keyspace::Set,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "smove",
    group: Group::Set,
    since: "1.0.0",
    summary: "Moves a member from set to set.",
    arity: 4,
    flags: Flags::WRITE.union(Flags::FAST),
    keys: Keys::Range { first: 1, last: 2, step: 1 },
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let (source, destination, member) = (&args[1], &args[2], &args[3]);
    // Look up both keys before checking either type, so that both are removed if expired.
    let has = ctx.modify::<Set>(source).map(|set| set.map(|set| set.contains(member)));
    let there = ctx.check::<Set>(destination);
    let Some(has) = has? else { return Ok(Reply::Integer(0)) };
    there?;
    if source == destination || !has {
        return Ok(has.into());
    }
    let encodings = ctx.node.config.keyspace.encodings;
    if let Some(set) = ctx.modify_no_touch::<Set>(source)? {
        set.remove(member);
    }
    ctx.effects.dirty += 1;
    ctx.touch_as(source, Class::Set, "srem", Some(Signal::Apart));
    if ctx.remove_if_empty(source) {
        ctx.touch_as(source, Class::Generic, "del", Some(Signal::Apart));
    }
    // Report the invalidation of the source only after the destination exists.
    let is_new = ctx.modify_or_create::<Set>(destination)?.insert(member, &encodings);
    ctx.signal(source);
    if is_new {
        ctx.changed(destination, Class::Set, "sadd");
    }
    Ok(Reply::Integer(1))
}
