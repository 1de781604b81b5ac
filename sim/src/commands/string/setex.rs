//! SETEX key seconds value: sets a key to a string with a TTL.

use bytes::Bytes;

use super::{
    options::{Expiry, Unit},
    set::write,
};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "setex",
    group: Group::String,
    since: "2.0.0",
    summary: "Sets a key to a string with a time to live in seconds.",
    arity: 4,
    flags: Flags::WRITE.union(Flags::DENYOOM),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let when_ms = Expiry::In(args[2].clone(), Unit::Seconds).when_ms(ctx.wall_ms(), "setex")?;
    write(ctx, &args[1], &args[3], Some(when_ms), true);
    Ok(Reply::OK)
}
