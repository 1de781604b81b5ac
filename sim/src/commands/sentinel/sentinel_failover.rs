//! SENTINEL FAILOVER name [COORDINATED]: begins a failover without asking other Sentinels.

use bytes::Bytes;

use super::{UNKNOWN, sentinel, text, with};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    generation::Feature,
    resp::Reply,
    sentinel::{ByHand, Refusal},
};

pub(super) const SPEC: Spec = Spec {
    name: "sentinel|failover",
    group: Group::Sentinel,
    since: "2.8.4",
    summary: "Begins a failover without the agreement of other Sentinels that the master is down.",
    arity: -3,
    flags: Flags::ADMIN,
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let has_form = ctx.node.config.generation.has(Feature::CoordinatedFailover);
    let form = match (&args[2..], has_form) {
        ([_], false) => ByHand::Forced,
        ([_], true) => ByHand::ForcedAsDown,
        ([_, word], true) if word.eq_ignore_ascii_case(b"coordinated") => ByHand::Coordinated,
        ([name, _], true) if sentinel(ctx).address_of(&text(name)).is_none() => return Err(UNKNOWN),
        ([_, _], true) => return Err(Error::of("ERR Unknown failover option specified")),
        _ => return Err(Error::arity(SPEC.name)),
    };
    let name = text(&args[2]);
    let begun = with(ctx, |sentinel, env| sentinel.force_failover(env, &name, form));
    begun.map(|()| Reply::OK).map_err(|refusal| match refusal {
        Refusal::Unknown => UNKNOWN,
        Refusal::NoGoodMaster => Error::of("NOGOODPRIMARY Primary does not support FAILOVER command"),
        Refusal::InProgress => Error::of("INPROG Failover already in progress"),
        Refusal::NoGoodReplica => Error::of("NOGOODSLAVE No suitable replica to promote"),
    })
}
