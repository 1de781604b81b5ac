//! REPLICAOF host port | NO ONE: follows a master, or becomes a master.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec, integer},
    replication::Feed,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "replicaof",
    group: Group::Server,
    since: "5.0.0",
    summary: "Makes the node a replica of another one, or a master.",
    arity: 3,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::STALE).union(Flags::NO_ASYNC_LOADING),
    keys: Keys::None,
    subcommands: &[],
    run,
};

/// Runs REPLICAOF and SLAVEOF.
pub(super) fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    if ctx.node.cluster.is_some() {
        return Err(Error::of("ERR REPLICAOF not allowed in cluster mode."));
    }
    if ctx.node.replication.failover.is_some() {
        return Err(Error::of("ERR REPLICAOF not allowed while failing over."));
    }
    let now_secs = ctx.env.wall.as_secs();
    if args[1].eq_ignore_ascii_case(b"no") && args[2].eq_ignore_ascii_case(b"one") {
        let id = ctx.env.random_id();
        ctx.node.config.replication.replicaof = None;
        ctx.node.replication.promote(id, now_secs);
        return Ok(Reply::OK);
    }
    let replication = &ctx.node.replication;
    if replication.replicas.get(&ctx.conn).is_some_and(|replica| replica.feed != Feed::Introduced) {
        return Err(Error::of("ERR Command is not valid when client is a replica."));
    }
    let port = integer(&args[2]).ok().and_then(|port| u16::try_from(port).ok());
    let port = port.ok_or(Error::of("ERR Invalid master port"))?;
    let host = String::from_utf8_lossy(&args[1]).into_owned();
    if let Some(link) = &replication.master
        && link.host.eq_ignore_ascii_case(&host)
        && link.port == port
    {
        return Ok(Reply::Status("OK Already connected to specified master".into()));
    }
    let backlog_size = ctx.node.config.replication.backlog_size;
    ctx.node.config.replication.replicaof = Some((host.clone(), port));
    ctx.node.replication.follow(host, port, backlog_size, now_secs);
    Ok(Reply::OK)
}
