//! CLIENT KILL addr, or CLIENT KILL with filters (ID, ADDR, LADDR, TYPE, USER, SKIPME): closes
//! connections.

use bytes::Bytes;

use super::clients::Kind;
use crate::{
    acl::Acl,
    commands::{Ctx, Error, Flags, Group, Keys, Spec, integer, printable},
    event::ConnId,
    node::clients::Session,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "client|kill",
    group: Group::Connection,
    since: "2.4.0",
    summary: "Closes connections.",
    arity: -3,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

/// Criteria for the connections to close.
#[derive(Default)]
struct Filters<'a> {
    id: Option<u64>,
    peer: Option<&'a [u8]>,
    local: Option<&'a [u8]>,
    kind: Option<Kind>,
    user: Option<&'a [u8]>,
    spares_caller: bool,
}

impl<'a> Filters<'a> {
    fn parse(words: &'a [Bytes], acl: &Acl) -> Result<Filters<'a>, Error> {
        let mut filters = Filters { spares_caller: true, ..Filters::default() };
        let (pairs, rest) = words.as_chunks::<2>();
        for [filter, value] in pairs {
            match &filter.to_ascii_lowercase()[..] {
                b"id" => {
                    let id = integer(value).ok().and_then(|id| u64::try_from(id).ok()).filter(|id| *id > 0);
                    filters.id = Some(id.ok_or(Error::of("ERR client-id should be greater than 0"))?);
                }
                b"type" => filters.kind = Some(Kind::parse(value)?),
                b"addr" => filters.peer = Some(value),
                b"laddr" => filters.local = Some(value),
                b"user" if acl.user(value).is_some() => filters.user = Some(value),
                b"user" => {
                    let user = printable(value, usize::MAX);
                    return Err(Error(format!("ERR No such user '{user}'").into()));
                }
                b"skipme" if value.eq_ignore_ascii_case(b"yes") => filters.spares_caller = true,
                b"skipme" if value.eq_ignore_ascii_case(b"no") => filters.spares_caller = false,
                _ => return Err(Error::SYNTAX),
            }
        }
        if rest.is_empty() { Ok(filters) } else { Err(Error::SYNTAX) }
    }

    fn select(&self, session: &Session, caller: ConnId) -> bool {
        let spared = session.is_leaving() || (self.spares_caller && session.id == caller);
        !spared
            && self.id.is_none_or(|id| session.id.0 == id)
            && self.peer.is_none_or(|peer| session.peer.as_bytes() == peer)
            && self.local.is_none_or(|local| session.local.as_bytes() == local)
            && self.kind.is_none_or(|kind| Kind::of(session) == kind)
            && self.user.is_none_or(|user| session.user == user)
    }
}

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    // The old form names one address, and replies with OK.
    let old_form = args.len() == 3;
    let filters = match args {
        [_, _, peer] => Filters { peer: Some(peer), ..Filters::default() },
        _ => Filters::parse(&args[2..], &ctx.node.acl)?,
    };
    let caller = ctx.conn;
    let selected = ctx.node.clients.sessions.iter().filter(|session| filters.select(session, caller));
    let selected: Vec<ConnId> = selected.map(|session| session.id).collect();
    if old_form && selected.is_empty() {
        return Err(Error::of("ERR No such client"));
    }
    for &conn in &selected {
        // The caller still gets its reply.
        if conn == caller {
            ctx.session().quits = true;
        } else {
            ctx.node.clients.kill(conn);
            // The link counts as down from now on, even if the node does nothing more for a while.
            let now_secs = ctx.env.wall.as_secs();
            ctx.node.replication.master.iter_mut().for_each(|link| link.killed(conn, now_secs));
        }
    }
    Ok(if old_form { Reply::OK } else { selected.len().into() })
}
