//! DELIFEQ key value: removes a key if its string is the given one.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    effect::Class,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "delifeq",
    group: Group::String,
    since: "valkey 9.0.0",
    summary: "Removes a key if its string is the given one.",
    arity: 3,
    flags: Flags::WRITE.union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let key = &args[1];
    if !ctx.equals(key, &args[2])? {
        return Ok(Reply::Integer(0));
    }
    ctx.remove(key);
    ctx.replied();
    ctx.changed(key, Class::Generic, "del");
    ctx.propagate_as(vec![vec!["DEL".into(), key.clone()]]);
    Ok(Reply::Integer(1))
}
