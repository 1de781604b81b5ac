//! FUNCTION DELETE library: forgets a library and its functions.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "function|delete",
    group: Group::Scripting,
    since: "7.0.0",
    summary: "Forgets a library.",
    arity: 3,
    flags: Flags::NOSCRIPT.union(Flags::WRITE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    if !std::str::from_utf8(&args[2]).is_ok_and(|name| ctx.node.libraries.remove(name)) {
        return Err(Error::of("ERR Library not found"));
    }
    ctx.effects.dirty += 1;
    Ok(Reply::OK)
}
