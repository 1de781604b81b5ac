//! OBJECT IDLETIME key: the seconds since a key was last used.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Lookup, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "object|idletime",
    group: Group::Generic,
    since: "2.2.3",
    summary: "The seconds since a key was last used.",
    arity: 3,
    flags: Flags::READONLY,
    keys: Keys::Range { first: 2, last: 2, step: 1 },
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let now_ms = ctx.now_ms;
    let Some(usage) = ctx.lookup(&args[2], Lookup::INSPECT).map(|entry| entry.usage) else {
        return Ok(Reply::Null);
    };
    if ctx.node.config.memory.maxmemory_policy.counts_uses() {
        return Err(Error::of(
            "ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when switching between \
             policies at runtime LRU and LFU data will take some time to adjust.",
        ));
    }
    Ok(Reply::Integer(usage.idle_ms(now_ms) / 1000))
}
