//! HKEYS key: every field.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    keyspace::Hash,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "hkeys",
    group: Group::Hash,
    since: "2.0.0",
    summary: "Every field of a hash.",
    arity: 2,
    flags: Flags::READONLY,
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let rule = ctx.field_rule();
    let Some(hash) = ctx.read::<Hash>(&args[1])? else { return Ok(Reply::Array(Vec::new())) };
    Ok(Reply::Array(hash.iter_by(rule).map(|(field, _)| field.into()).collect()))
}
