//! PING [message]: replies with PONG, or with the message.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::{Protocol, Reply},
};

pub(super) const SPEC: Spec = Spec {
    name: "ping",
    group: Group::Connection,
    since: "1.0.0",
    summary: "Answers PONG, to show that the connection lives.",
    arity: -1,
    flags: Flags::FAST.union(Flags::IN_SUBSCRIBER_MODE).union(Flags::NEEDS_DISK),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    if args.len() > 2 {
        return Err(Error::arity("ping"));
    }
    let message = args.get(1).cloned();
    // A RESP2 subscriber cannot distinguish a plain reply from a message, so PING's reply has the
    // form of a message.
    if ctx.session().protocol == Protocol::Resp2 && ctx.session().is_subscriber() {
        return Ok(Reply::Array(vec![Reply::bulk("pong"), Reply::from(message.unwrap_or_default())]));
    }
    Ok(message.map_or(Reply::Status("PONG".into()), Reply::from))
}
