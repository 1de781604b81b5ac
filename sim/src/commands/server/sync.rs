//! SYNC: makes the connection a replica that begins with a snapshot, as before PSYNC existed.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    node::clients::Role,
    replication::{Backlog, Feed, ReplicaLink},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "sync",
    group: Group::Server,
    since: "1.0.0",
    summary: "Makes the connection a replica, the old way; used among nodes.",
    arity: 1,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::NO_ASYNC_LOADING).union(Flags::NO_MULTI),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, _: &[Bytes]) -> Result<Reply, Error> {
    if is_attached(ctx) {
        return Ok(Reply::Silence);
    }
    refuse_if_not_now(ctx)?;
    begin(ctx, true)
}

/// Returns true if the connection is a replica already. A second request is ignored.
pub(super) fn is_attached(ctx: &Ctx<'_>) -> bool {
    ctx.node.replication.attached().any(|(&conn, _)| conn == ctx.conn)
}

/// Refuses replicas while this node cannot have any.
pub(super) fn refuse_if_not_now(ctx: &mut Ctx<'_>) -> Result<(), Error> {
    if ctx.node.replication.failover.is_some() {
        return Err(Error::of("NOMASTERLINK Can't SYNC while failing over"));
    }
    if ctx.node.replication.master.as_ref().is_some_and(|link| !link.is_up()) {
        return Err(Error::of("NOMASTERLINK Can't SYNC while not connected with my master"));
    }
    if !ctx.session().out.is_empty() {
        return Err(Error::of("ERR SYNC and PSYNC are invalid with pending output"));
    }
    Ok(())
}

/// Makes the connection a replica whose feed starts as `feed`.
pub(super) fn attach<'c>(ctx: &'c mut Ctx<'_>, feed: Feed) -> &'c mut ReplicaLink {
    ctx.session().role = Role::Replica;
    let now_secs = ctx.env.wall.as_secs();
    let replicas = &mut ctx.node.replication.replicas;
    let replica = replicas.entry(ctx.conn).or_insert_with(|| ReplicaLink::introduced(now_secs));
    replica.feed = feed;
    replica.acked_at = now_secs;
    replica
}

/// Begins a full resynchronization. The snapshot is taken later, when it is due.
pub(super) fn begin(ctx: &mut Ctx<'_>, pre_psync: bool) -> Result<Reply, Error> {
    let since = ctx.env.wall.as_secs();
    if ctx.node.replication.backlog.is_none() {
        // Without a backlog no replica could continue: the stream begins here, under a new
        // replication id.
        let (id, size) = (ctx.env.random_id(), ctx.node.config.replication.backlog_size);
        let replication = &mut ctx.node.replication;
        replication.history.restart(id);
        replication.backlog = Some(Backlog::new(size, replication.history.offset));
    }
    ctx.node.replication.syncs.full += 1;
    let replica = attach(ctx, Feed::WaitingForSnapshot { since, may_share: true });
    replica.pre_psync = pre_psync;
    Ok(Reply::Silence)
}
