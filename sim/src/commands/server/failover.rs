//! FAILOVER [TO host port [FORCE]] [ABORT] [TIMEOUT milliseconds]: hands this master's role over to
//! a replica.
//!
//! This command only starts the failover; `server/failover.rs` performs it.

use std::time::Duration;

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec, integer},
    replication::Failover,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "failover",
    group: Group::Server,
    since: "6.2.0",
    summary: "Makes a replica take this master's place.",
    arity: -1,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    if ctx.node.cluster.is_some() {
        return Err(Error::of(
            "ERR FAILOVER not allowed in cluster mode. Use CLUSTER FAILOVER command instead.",
        ));
    }
    let (mut to, mut timeout, mut abort, mut force) = (None, None, false, false);
    let mut at = 1;
    while let Some(word) = args.get(at) {
        match (&word.to_ascii_lowercase()[..], &args[at + 1..]) {
            (b"timeout", [ms, ..]) if timeout.is_none() => {
                let ms = integer(ms)?;
                if ms <= 0 {
                    return Err(Error::of("ERR FAILOVER timeout must be greater than 0"));
                }
                timeout = Some(ms.unsigned_abs());
                at += 1;
            }
            (b"abort", []) if args.len() == 2 => abort = true,
            (b"to", [host, port, ..]) if to.is_none() => {
                to = Some((String::from_utf8_lossy(host).into_owned(), integer(port)?));
                at += 2;
            }
            (b"force", _) if !force => force = true,
            _ => return Err(Error::SYNTAX),
        }
        at += 1;
    }
    if abort {
        if ctx.node.replication.failover.is_none() {
            return Err(Error::of("ERR No failover in progress."));
        }
        ctx.node.abort_failover(ctx.env);
        return Ok(Reply::OK);
    }
    if ctx.node.replication.failover.is_some() {
        return Err(Error::of("ERR FAILOVER already in progress."));
    }
    if ctx.node.is_replica() {
        return Err(Error::of("ERR FAILOVER is not valid when server is a replica."));
    }
    if ctx.node.replication.attached().next().is_none() {
        return Err(Error::of("ERR FAILOVER requires connected replicas."));
    }
    if force && (timeout.is_none() || to.is_none()) {
        return Err(Error::of(
            "ERR FAILOVER with force option requires both a timeout and target HOST and IP.",
        ));
    }
    let mut target = None;
    if let Some((host, port)) = to {
        let port = u16::try_from(port).ok();
        match port.and_then(|port| ctx.node.replica_at(&host, port)) {
            None => return Err(Error::of("ERR FAILOVER target HOST and PORT is not a replica.")),
            Some(replica) if !replica.is_online() => {
                return Err(Error::of("ERR FAILOVER target replica is not online."));
            }
            Some(replica) => target = Some((host, replica.port)),
        }
    }
    let deadline = timeout.map(|ms| ctx.env.monotonic + Duration::from_millis(ms));
    ctx.node.replication.failover = Some(Failover { target, deadline, force, in_progress: false });
    Ok(Reply::OK)
}
