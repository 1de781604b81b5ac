//! GETDEL key: returns the string of a key, and removes the key.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    effect::Class,
    keyspace::Str,
    node::lazy_free::deletion,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "getdel",
    group: Group::String,
    since: "6.2.0",
    summary: "The string value of a key, which is removed.",
    arity: 2,
    flags: Flags::WRITE.union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let key = &args[1];
    let Some(value) = ctx.read::<Str>(key)?.map(|string| string.bytes().clone()) else {
        return Ok(Reply::Null);
    };
    ctx.remove(key);
    ctx.replied();
    ctx.changed(key, Class::Generic, "del");
    let config = &ctx.node.config;
    let lazily = config.generation.is_before_7_2() && config.memory.lazy_free.user_del;
    ctx.propagate_as(vec![deletion(lazily, key)]);
    Ok(value.into())
}
