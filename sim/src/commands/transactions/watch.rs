//! WATCH key [key ...]: lets the next EXEC run only if none of the keys changes before it.

use bytes::Bytes;

use super::refused;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    generation::Feature,
    node::clients::Watched,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "watch",
    group: Group::Transactions,
    since: "2.2.0",
    summary: "Makes EXEC depend on keys that do not change.",
    arity: -2,
    flags: Flags::NOSCRIPT
        .union(Flags::LOADING)
        .union(Flags::STALE)
        .union(Flags::FAST)
        .union(Flags::ALLOW_BUSY)
        .union(Flags::NOT_QUEUED),
    keys: Keys::ALL,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    if ctx.session().transaction.is_some() {
        return Err(refused(ctx, "watch", "ERR WATCH inside MULTI is not allowed"));
    }
    // Once the watch is broken, more watched keys make no difference.
    if ctx.session().watch_broken {
        return Ok(Reply::OK);
    }
    let (conn, db, rule) = (ctx.conn, ctx.db, ctx.expiry_rule());
    ctx.session().has_queued = true;
    let remembers = ctx.node.config.generation.has(Feature::ExpiredWatches);
    for key in &args[1..] {
        // Read the raw database: watching a key does not expire it.
        let was_expired = remembers && ctx.raw_db().get(key).is_some_and(|entry| entry.is_expired(rule));
        let watched = Watched { db, key: key.clone(), was_expired };
        // A key that is already watched keeps its recorded state.
        if ctx.session().watched.iter().all(|other| (other.db, &other.key) != (db, key)) {
            ctx.session().watched.insert(watched);
            ctx.node.clients.watchers.entry((db, key.clone())).or_default().insert(conn);
        }
    }
    Ok(Reply::OK)
}

/// Returns true if a watched key has changed, or has expired since WATCH without being deleted.
pub(super) fn watch_broken(ctx: &mut Ctx<'_>) -> bool {
    let rule = ctx.expiry_rule();
    let Some(session) = ctx.node.clients.sessions.get(ctx.conn) else { return false };
    let expired = |watched: &Watched| {
        let entry = ctx.node.dbs[watched.db].get(&watched.key);
        !watched.was_expired && entry.is_some_and(|entry| entry.is_expired(rule))
    };
    session.watch_broken || session.watched.iter().any(expired)
}
