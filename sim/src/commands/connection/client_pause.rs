//! CLIENT PAUSE milliseconds [WRITE | ALL]: makes commands wait, in the queue of server/pause.rs.

use std::time::Duration;

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec, integer},
    node::PauseMode,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "client|pause",
    group: Group::Connection,
    since: "2.9.50",
    summary: "Makes commands wait for a while.",
    arity: -3,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let mut mode = match args {
        [_, _, _] => PauseMode::All,
        [_, _, _, mode] if mode.eq_ignore_ascii_case(b"write") => PauseMode::Write,
        [_, _, _, mode] if mode.eq_ignore_ascii_case(b"all") => PauseMode::All,
        [_, _, _, _] => return Err(Error::of("ERR CLIENT PAUSE mode must be WRITE or ALL")),
        _ => return Err(Error::subcommand("client", &args[1])),
    };
    let ms = integer(&args[2]).map_err(|_| Error::of("ERR timeout is not an integer or out of range"))?;
    let ms = u64::try_from(ms).map_err(|_| Error::of("ERR timeout is negative"))?;
    // The server adds the current time. Before Redis 7.2, a sum beyond 64 bits was in the past.
    let fits = i64::try_from(ms).is_ok_and(|ms| ctx.now_ms.checked_add(ms).is_some());
    if !fits && !ctx.node.config.generation.is_before_7_2() {
        return Err(Error::of("ERR timeout is out of range"));
    }
    let mut until = ctx.env.monotonic + Duration::from_millis(if fits { ms } else { 0 });
    // A second pause neither shortens nor weakens the first.
    if let Some((sooner, stricter)) = ctx.node.paused {
        until = until.max(sooner);
        mode = if stricter == PauseMode::All { stricter } else { mode };
    }
    ctx.node.paused = Some((until, mode));
    Ok(Reply::OK)
}
