//! GETSET key value: sets a key to a string; replies with the old string.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    effect::Class,
    keyspace::{Str, Value},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "getset",
    group: Group::String,
    since: "1.0.0",
    summary: "Sets a key to a string and returns the previous one.",
    arity: 3,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let (key, value) = (&args[1], &args[2]);
    let old = ctx.read::<Str>(key)?.map(|string| string.bytes().clone());
    ctx.replied();
    ctx.put(key, Value::String(Str::new(value)), None);
    ctx.changed(key, Class::String, "set");
    ctx.propagate_as(vec![vec!["SET".into(), key.clone(), value.clone()]]);
    Ok(old.into())
}
