//! CLIENT LIST [TYPE type] [ID id ...]: one line for each connection.

use std::collections::BTreeSet;

use bytes::Bytes;

use super::clients::Kind;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec, integer},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "client|list",
    group: Group::Connection,
    since: "2.4.0",
    summary: "Describes the connections.",
    arity: -2,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let now = ctx.env.monotonic;
    ctx.node.resize_reply_buffers(now);
    // Skip connections that the arrival of this command has closed.
    let sessions = ctx.node.clients.sessions.iter().filter(|session| !session.is_leaving());
    let option = args.get(2).map(|option| option.to_ascii_lowercase()).unwrap_or_default();
    let lines: Vec<u8> = match (&option[..], args) {
        (b"", [_, _]) => sessions.flat_map(|session| session.describe(now)).collect(),
        (b"type", [.., kind]) if args.len() == 4 => {
            let kind = Kind::parse(kind)?;
            sessions
                .filter(|session| Kind::of(session) == kind)
                .flat_map(|session| session.describe(now))
                .collect()
        }
        (b"id", [_, _, _, ids @ ..]) if !ids.is_empty() => {
            let id = |id: &Bytes| integer(id).map_err(|_| Error::of("ERR Invalid client ID"));
            let ids = ids.iter().map(id).collect::<Result<BTreeSet<i64>, Error>>()?;
            let named = |session: &i64| ids.contains(session);
            sessions
                .filter(|session| i64::try_from(session.id.0).as_ref().is_ok_and(named))
                .flat_map(|session| session.describe(now))
                .collect()
        }
        _ => return Err(Error::SYNTAX),
    };
    Ok(Reply::Verbatim(*b"txt", lines.into()))
}
