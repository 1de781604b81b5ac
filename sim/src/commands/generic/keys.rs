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
    // Hide expired keys, but do not remove them: only an access by name does.
    let rule = ctx.expiry_rule();
    let entries = ctx.node.dbs[ctx.db].entries().iter();
    let shown = entries
        .filter(|(key, entry)| selects(pattern, key) && !entry.is_expired(rule) && !ctx.node.hides(key));
    Ok(Reply::Array(shown.map(|(key, _)| key.into()).collect()))
}
