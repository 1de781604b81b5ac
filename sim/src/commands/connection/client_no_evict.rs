//! CLIENT NO-EVICT ON or OFF: protects the connection from being closed to save memory.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "client|no-evict",
    group: Group::Connection,
    since: "7.0.0",
    summary: "Keeps the connection when clients use too much memory.",
    arity: 3,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    ctx.session().no_evict = match &args[2].to_ascii_lowercase()[..] {
        b"on" => true,
        b"off" => false,
        _ => return Err(Error::SYNTAX),
    };
    Ok(Reply::OK)
}
