//! SCRIPT FLUSH [ASYNC | SYNC]: forgets every script.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "script|flush",
    group: Group::Scripting,
    since: "2.6.0",
    summary: "Forgets all scripts.",
    arity: -2,
    flags: Flags::NOSCRIPT,
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let understood = match &args[2..] {
        [] => true,
        [mode] => mode.eq_ignore_ascii_case(b"sync") || mode.eq_ignore_ascii_case(b"async"),
        _ => false,
    };
    if !understood {
        return Err(Error::of("ERR SCRIPT FLUSH only support SYNC|ASYNC option"));
    }
    ctx.node.scripts.flush();
    Ok(Reply::OK)
}
