//! WAIT replicas milliseconds: waits until this many replicas have the client's writes; replies
//! with their number.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Origin, Spec, Wait, integer},
    generation::Feature,
    node::clients::BlockedOn,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "wait",
    group: Group::Generic,
    since: "3.0.0",
    summary: "Waits until replicas have acknowledged the client's writes.",
    arity: 3,
    flags: Flags::NOSCRIPT,
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    if ctx.node.is_replica() {
        let since = if ctx.node.config.generation.is_valkey() { "" } else { "since Redis 4.0 " };
        let text = format!(
            "ERR WAIT cannot be used with replica instances. Please also note that {since}if a replica is configured \
             to be writable (which is not the default) writes to replicas are just local and are not propagated."
        );
        return Err(Error(text.into()));
    }
    let replicas = integer(&args[1])?;
    let timeout_ms =
        integer(&args[2]).map_err(|_| Error::of("ERR timeout is not an integer or out of range"))?;
    let wait = Wait::of_ms(ctx, timeout_ms)?;
    let offset = awaited(ctx);
    let reached = ctx.node.replication.acknowledged(offset);
    if i64::try_from(reached).is_ok_and(|reached| reached >= replicas) || !ctx.may_block() {
        return Ok(reached.into());
    }
    ctx.node.replication.ack_wanted = true;
    ctx.node.replication.waiting.insert(ctx.conn);
    let replicas = usize::try_from(replicas).unwrap_or(usize::MAX);
    ctx.block(args, Vec::new(), wait.deadline, BlockedOn::Replicas { replicas, offset });
    Ok(Reply::Silence)
}

/// Returns the offset that WAIT and WAITAOF wait for: the one after the connection's last write.
/// Before Valkey 8 a script has a client of its own, which has written nothing.
pub(super) fn awaited(ctx: &mut Ctx<'_>) -> u64 {
    let is_own = ctx.origin == Origin::Script && !ctx.node.config.generation.has(Feature::CallerWrites);
    if is_own { 0 } else { ctx.session().last_write_offset }
}
