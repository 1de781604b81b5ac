//! SCRIPT DEBUG YES | SYNC | NO: turns the debugger for the connection's next script on or off.
//!
//! The command stores the mode and replies like a server, but no debugger exists. A script that
//! would begin a session is refused, because it would run without the stops that its client
//! expects.

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

const NO_DEBUGGER: Error =
    Error::of("ERR there is no debugger on a simulated node: SCRIPT DEBUG NO runs scripts without it");

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    if ctx.origin == Origin::Exec || !ctx.session().out.is_empty() {
        return Err(Error::of("ERR SCRIPT DEBUG must be called outside a pipeline"));
    }
    let wanted = match &args[2].to_ascii_lowercase()[..] {
        b"no" => false,
        b"yes" | b"sync" => true,
        _ => return Err(Error::of("ERR Use SCRIPT DEBUG YES/SYNC/NO")),
    };
    ctx.session().debugs = wanted;
    Ok(Reply::OK)
}

/// Refuses EVAL if this connection has requested the debugger.
///
/// # Errors
/// The reply of EVAL.
pub(super) fn refuse_session(ctx: &mut Ctx<'_>) -> Result<(), Error> {
    if ctx.session().debugs { Err(NO_DEBUGGER) } else { Ok(()) }
}

/// Refuses EVALSHA if this connection has requested the debugger, which needs the script's text.
///
/// # Errors
/// The reply of EVALSHA.
pub(super) fn refuse_name(ctx: &mut Ctx<'_>) -> Result<(), Error> {
    if ctx.session().debugs {
        return Err(Error::of("ERR Please use EVAL instead of EVALSHA for debugging"));
    }
    Ok(())
}
