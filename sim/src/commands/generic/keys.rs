//! KEYS pattern: every key whose name matches.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    glob::selects,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "keys",
    group: Group::Generic,
    since: "1.0.0",
    summary: "Every key that matches a pattern.",
    arity: 2,
    flags: Flags::READONLY,
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let pattern = &args[1];
    let entries = ctx.raw_db().entries().iter();
    let keys: Vec<Bytes> =
        entries.filter(|(key, _)| selects(pattern, key)).map(|(key, _)| key.clone()).collect();
    Ok(Reply::Array(keys.into_iter().filter(|key| ctx.pass(key).is_some()).map(Reply::from).collect()))
}
