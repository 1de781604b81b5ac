//! PUBLISH to a Sentinel: processes a hello message, and sends it to no subscriber.

use bytes::Bytes;

use super::{now, sentinel, text};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
    sentinel::HELLO,
};

pub(super) const SPEC: Spec = Spec {
    name: "publish",
    group: Group::Pubsub,
    since: "2.0.0",
    summary: "Tells a Sentinel of another one.",
    arity: 3,
    flags: Flags::PUBSUB
        .union(Flags::LOADING)
        .union(Flags::STALE)
        .union(Flags::FAST)
        .union(Flags::FIRST_IS_CHANNEL),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    if args[1] != HELLO {
        return Err(Error::of("ERR Only HELLO messages are accepted by Sentinel instances."));
    }
    let (hello, now) = (text(&args[2]), now(ctx));
    sentinel(ctx).take_hello(now, &hello);
    Ok(Reply::Integer(1))
}
