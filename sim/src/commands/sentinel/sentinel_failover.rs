//! SENTINEL FAILOVER.

use bytes::Bytes;

use super::{UNKNOWN, text, with};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
    sentinel::Refusal,
};

pub(super) const SPEC: Spec = Spec {
    name: "sentinel|failover",
    group: Group::Sentinel,
    since: "2.8.4",
    summary: "Begins a failover without the agreement of other Sentinels.",
    arity: 3,
    flags: Flags::ADMIN,
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let name = text(&args[2]);
    let begun = with(ctx, |sentinel, env| sentinel.force_failover(env, &name));
    begun.map(|()| Reply::OK).map_err(|refusal| match refusal {
        Refusal::Unknown => UNKNOWN,
        Refusal::InProgress => Error::of("INPROG Failover already in progress"),
        Refusal::NoGoodReplica => Error::of("NOGOODSLAVE No suitable replica to promote"),
    })
}
