//! HEXISTS key field: checks if a field exists.

use bytes::Bytes;

use super::fields::look;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    keyspace::Hash,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "hexists",
    group: Group::Hash,
    since: "2.0.0",
    summary: "Whether a hash has a field.",
    arity: 3,
    flags: Flags::READONLY.union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let rule = ctx.field_rule();
    let Some(hash) = ctx.read::<Hash>(&args[1])? else { return Ok(false.into()) };
    if hash.is_expired(&args[2], rule) {
        look(ctx, &args[1], &args[2]);
        return Ok(false.into());
    }
    Ok(hash.contains(&args[2]).into())
}
