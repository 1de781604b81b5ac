//! HGET key field: the value of one field.

use bytes::Bytes;

use super::fields::look;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    keyspace::Hash,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "hget",
    group: Group::Hash,
    since: "2.0.0",
    summary: "The value of a field of a hash.",
    arity: 3,
    flags: Flags::READONLY.union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let rule = ctx.field_rule();
    let Some(hash) = ctx.read::<Hash>(&args[1])? else { return Ok(Reply::Null) };
    if hash.is_expired(&args[2], rule) {
        look(ctx, &args[1], &args[2]);
        return Ok(Reply::Null);
    }
    Ok(hash.get(&args[2]).cloned().into())
}
