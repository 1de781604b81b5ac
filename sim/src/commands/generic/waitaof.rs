//! WAITAOF local replicas milliseconds: waits until this node, if `local` is 1, and this many
//! replicas have synced the client's writes to their append-only files; replies with the number of
//! either.

use std::time::Duration;

use bytes::Bytes;

use super::wait::awaited;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec, integer, integer_in, ranged},
    node::clients::BlockedOn,
    resp::Reply,
    time::Monotonic,
};

pub(super) const SPEC: Spec = Spec {
    name: "waitaof",
    group: Group::Generic,
    since: "7.2.0",
    summary: "Waits until the client's writes are synced to append-only files.",
    arity: 4,
    flags: Flags::BLOCKING,
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let local = integer_in(&args[1], 0, 1)? == 1;
    let not_positive = Error::of("ERR value is out of range, must be positive");
    let replicas = ranged(&args[2], 0, i64::MAX, not_positive)?;
    let deadline = deadline(ctx, &args[3])?;
    if ctx.node.is_replica() {
        return Err(Error::of(
            "ERR WAITAOF cannot be used with replica instances. Please also note that writes to replicas are just \
             local and are not propagated.",
        ));
    }
    if local && !ctx.node.config.aof.appendonly {
        return Err(Error::of("ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled."));
    }
    let offset = awaited(ctx);
    let replicas = usize::try_from(replicas).unwrap_or(usize::MAX);
    let synced = ctx.node.synced(offset);
    if synced.suffices(local, replicas) || !ctx.may_block() {
        return Ok(synced.into());
    }
    ctx.node.replication.ack_wanted = true;
    ctx.node.replication.waiting.insert(ctx.conn);
    ctx.block(args, Vec::new(), deadline, BlockedOn::Files { local, replicas, offset });
    Ok(Reply::Silence)
}

/// Parses the timeout in milliseconds; 0 waits forever. The end of the wait must be a time that the
/// wall clock can show.
fn deadline(ctx: &Ctx<'_>, text: &[u8]) -> Result<Option<Monotonic>, Error> {
    let ms = integer(text).map_err(|_| Error::of("ERR timeout is not an integer or out of range"))?;
    let unsigned = u64::try_from(ms).map_err(|_| Error::of("ERR timeout is negative"))?;
    ctx.wall_ms().checked_add(ms).ok_or(Error::of("ERR timeout is out of range"))?;
    Ok((ms > 0).then(|| ctx.env.monotonic + Duration::from_millis(unsigned)))
}
