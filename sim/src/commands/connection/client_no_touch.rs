//! CLIENT NO-TOUCH ON or OFF: decides if the connection's commands count as use of their keys.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "client|no-touch",
    group: Group::Connection,
    since: "7.2.0",
    summary: "Decides if the connection's commands count as use of their keys.",
    arity: 3,
    flags: Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    ctx.node.clients.may_spare_usage = true;
    ctx.session().no_touch = match &args[2].to_ascii_lowercase()[..] {
        b"on" => true,
        b"off" => false,
        _ => return Err(Error::SYNTAX),
    };
    Ok(Reply::OK)
}
