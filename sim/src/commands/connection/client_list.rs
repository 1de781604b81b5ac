//! CLIENT LIST [TYPE type] [ID id ...]: one line for each connection. Valkey takes the filters of
//! CLIENT KILL.

use std::collections::BTreeSet;

use bytes::Bytes;

use super::{clients::Kind, filters::Filters};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec, integer},
    event::ConnId,
    generation::Feature,
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
    let generation = ctx.node.config.generation;
    ctx.node.resize_reply_buffers(now);
    let chosen = match generation.has(Feature::ClientListFilters) {
        true => Filters::parse(ctx.node, &args[2..], false)?.chosen(ctx),
        false => choose(ctx, args)?,
    };
    let sessions = chosen.into_iter().filter_map(|conn| ctx.node.clients.sessions.get(conn));
    let lines: Vec<u8> = sessions.flat_map(|session| session.describe(now, generation)).collect();
    Ok(Reply::Verbatim(*b"txt", lines.into()))
}

/// Returns the connections that the options of Redis choose.
fn choose(ctx: &Ctx<'_>, args: &[Bytes]) -> Result<Vec<ConnId>, Error> {
    // Skip connections that the arrival of this command has closed.
    let sessions = ctx.node.clients.sessions.iter().filter(|session| !session.is_leaving());
    let option = args.get(2).map(|option| option.to_ascii_lowercase()).unwrap_or_default();
    Ok(match (&option[..], args) {
        (b"", [_, _]) => sessions.map(|session| session.id).collect(),
        (b"type", [.., kind]) if args.len() == 4 => {
            let kind = Kind::parse(kind, ctx.node.config.generation)?;
            sessions.filter(|session| Kind::of(session) == kind).map(|session| session.id).collect()
        }
        (b"id", [_, _, _, ids @ ..]) if !ids.is_empty() => {
            let id = |id: &Bytes| integer(id).map_err(|_| Error::of("ERR Invalid client ID"));
            let ids = ids.iter().map(id).collect::<Result<BTreeSet<i64>, Error>>()?;
            let named = |id: ConnId| i64::try_from(id.0).is_ok_and(|id| ids.contains(&id));
            sessions.map(|session| session.id).filter(|id| named(*id)).collect()
        }
        _ => return Err(Error::SYNTAX),
    })
}
