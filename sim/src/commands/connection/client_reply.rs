//! CLIENT REPLY ON, OFF or SKIP: turns replies on or off; SKIP suppresses the reply of the next
//! command.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    node::clients::ReplyMode,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "client|reply",
    group: Group::Connection,
    since: "3.2.0",
    summary: "Chooses which replies are sent.",
    arity: 3,
    flags: Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let session = ctx.session();
    match &args[2].to_ascii_lowercase()[..] {
        b"on" => {
            session.replies = ReplyMode::On;
            return Ok(Reply::OK);
        }
        b"off" => session.replies = ReplyMode::Off,
        b"skip" if session.replies != ReplyMode::Off => session.replies = ReplyMode::SkipNext,
        b"skip" => {}
        _ => return Err(Error::SYNTAX),
    }
    Ok(Reply::Silence)
}
