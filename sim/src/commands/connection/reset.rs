//! RESET: leaves transactions, subscriptions, MONITOR, RESP3, the database and AUTH, so that the
//! connection equals a new one.

use bytes::Bytes;

use crate::{
    acl,
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    effect::Subscription,
    node::clients::{ReplyMode, Role},
    resp::{Protocol, Reply},
};

pub(super) const SPEC: Spec = Spec {
    name: "reset",
    group: Group::Connection,
    since: "6.2.0",
    summary: "Resets the state of the connection.",
    arity: 1,
    flags: Flags::NOSCRIPT
        .union(Flags::LOADING)
        .union(Flags::STALE)
        .union(Flags::FAST)
        .union(Flags::NO_AUTH)
        .union(Flags::ALLOW_BUSY)
        .union(Flags::NOT_QUEUED)
        .union(Flags::ENDS_TRANSACTION)
        .union(Flags::IN_SUBSCRIBER_MODE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, _: &[Bytes]) -> Result<Reply, Error> {
    if ctx.session().role != Role::Client {
        return Err(Error::of("ERR can only reset normal connections"));
    }
    let conn = ctx.conn;
    for kind in [Subscription::Channel, Subscription::Pattern, Subscription::Shard] {
        ctx.node.clients.unsubscribe_all(conn, kind);
    }
    ctx.node.clients.discard(conn);
    ctx.node.clients.stop_tracking(conn);
    ctx.node.clients.monitors.remove(&conn);
    let authenticated = ctx.node.acl.admits_strangers();
    let session = ctx.session();
    session.monitor = false;
    session.replies = ReplyMode::On;
    (session.no_evict, session.no_touch) = (false, false);
    session.readonly = false;
    (session.asks, session.asking) = (false, false);
    session.db = 0;
    session.protocol = Protocol::Resp2;
    session.authenticated = authenticated;
    session.user = acl::DEFAULT;
    session.name = Bytes::new();
    Ok(Reply::Status("RESET".into()))
}
