//! FUNCTION FLUSH [ASYNC | SYNC]: forgets all libraries; both modes do the same here.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
    script::Libraries,
};

pub(super) const SPEC: Spec = Spec {
    name: "function|flush",
    group: Group::Scripting,
    since: "7.0.0",
    summary: "Forgets all libraries.",
    arity: -2,
    flags: Flags::NOSCRIPT.union(Flags::WRITE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    match &args[2..] {
        [] => {}
        [mode] if mode.eq_ignore_ascii_case(b"sync") || mode.eq_ignore_ascii_case(b"async") => {}
        [_] => return Err(Error::of("ERR FUNCTION FLUSH only supports SYNC|ASYNC option")),
        _ => return Err(Error::subcommand("function", &args[1])),
    }
    ctx.node.libraries = Libraries::default();
    ctx.effects.dirty += 1;
    Ok(Reply::OK)
}
