//! SCRIPT DEBUG YES | SYNC | NO: the debugger of scripts, which a simulated node does not have.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Origin, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "script|debug",
    group: Group::Scripting,
    since: "3.2.0",
    summary: "Sets the debug mode of scripts.",
    arity: 3,
    flags: Flags::NOSCRIPT,
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    if args[2].eq_ignore_ascii_case(b"no") {
        return Ok(Reply::OK);
    }
    if args[2].eq_ignore_ascii_case(b"yes") || args[2].eq_ignore_ascii_case(b"sync") {
        if ctx.origin == Origin::Exec || !ctx.session().out.is_empty() {
            return Err(Error::of("ERR SCRIPT DEBUG must be called outside a pipeline"));
        }
        return Err(Error::of("ERR SCRIPT DEBUG is not available on a simulated node"));
    }
    Err(Error::of("ERR Use SCRIPT DEBUG YES/SYNC/NO"))
}
