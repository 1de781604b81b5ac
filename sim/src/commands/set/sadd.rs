//! SADD key member [member ...]: adds members; replies with the number of new ones.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    effect::Class,
    keyspace::Set,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "sadd",
    group: Group::Set,
    since: "1.0.0",
    summary: "Adds members to a set.",
    arity: -3,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let encodings = ctx.node.config.keyspace.encodings;
    let key = &args[1];
    let set = ctx.modify_or_create::<Set>(key)?;
    let added = args[2..].iter().filter(|member| set.insert(*member, &encodings)).count();
    if added > 0 {
        ctx.changed_by(added, key, Class::Set, "sadd");
    }
    Ok(added.into())
}
