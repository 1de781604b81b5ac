//! PSYNC id offset: makes the connection a replica that continues after `offset` bytes of the
//! stream `id`, or resynchronizes fully.

use bytes::Bytes;

use super::sync;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec, integer, printable},
    log::Level,
    replication::Feed,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "psync",
    group: Group::Server,
    since: "2.8.0",
    summary: "Makes the connection a replica; used among nodes.",
    arity: -3,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::NO_ASYNC_LOADING).union(Flags::NO_MULTI),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    if sync::is_attached(ctx) {
        return Ok(Reply::Silence);
    }
    if args.get(3).is_some_and(|word| word.eq_ignore_ascii_case(b"failover")) {
        take_over(ctx, &args[1])?;
    }
    sync::refuse_if_not_now(ctx)?;
    let name = ctx.node.replica_name(ctx.conn);
    let next = integer(&args[2]).inspect_err(|_| {
        ctx.env.log(Level::Warning, || {
            format!("Replica {name} asks for synchronization but with a wrong offset")
        });
    })?;
    ctx.env.log(Level::Notice, || format!("Replica {name} asks for synchronization"));
    let id = String::from_utf8_lossy(&args[1]);
    let continuation =
        u64::try_from(next).ok().filter(|&next| ctx.node.replication.history.contains(&id, next));
    let missed = continuation.and_then(|next| ctx.node.replication.backlog.as_ref()?.since(next));
    let Some(missed) = missed else {
        if !args[1].starts_with(b"?") {
            ctx.node.replication.syncs.partial_refused += 1;
            ctx.env.log(Level::Notice, || {
                let (id, own) = (printable(&args[1], 40), &ctx.node.replication.history.id);
                format!("Partial resynchronization not possible: {name} knows {id}:{next}, this is {own}")
            });
        }
        ctx.env.log(Level::Notice, || format!("Full resync requested by replica {name}"));
        return sync::begin(ctx, false);
    };
    ctx.node.replication.syncs.partial += 1;
    ctx.env.log(Level::Notice, || {
        format!("Partial resynchronization request from {name} accepted: {} bytes of backlog", missed.len())
    });
    let replica = sync::attach(ctx, Feed::Online);
    let answer = if replica.psync2 {
        format!("+CONTINUE {}\r\n", ctx.node.replication.history.id)
    } else {
        "+CONTINUE\r\n".to_owned()
    };
    let conn = ctx.conn;
    ctx.node.clients.send_raw(conn, answer.as_bytes());
    ctx.node.clients.send_raw(conn, &missed);
    let lag_max = ctx.node.config.replication.min_replicas_max_lag;
    ctx.node.replication.count_good(ctx.env.wall.as_secs(), lag_max);
    Ok(Reply::Silence)
}

/// Becomes the master: the requesting master fails over to this node (FAILOVER), and has sent its
/// whole stream.
fn take_over(ctx: &mut Ctx<'_>, id: &Bytes) -> Result<(), Error> {
    if !ctx.node.is_replica() {
        return Err(Error::of("ERR PSYNC FAILOVER can't be sent to a master."));
    }
    if !id.eq_ignore_ascii_case(ctx.node.replication.history.id.as_bytes()) {
        return Err(Error::of("ERR PSYNC FAILOVER replid must match my replid."));
    }
    let (id, now_secs) = (ctx.env.random_id(), ctx.env.wall.as_secs());
    ctx.node.config.replication.replicaof = None;
    ctx.node.replication.promote(id, now_secs);
    Ok(())
}
