//! SENTINEL IS-MASTER-DOWN-BY-ADDR: another Sentinel asks if a master is down, or for a vote.

use bytes::Bytes;

use super::{text, with};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec, integer},
    resp::Reply,
    sentinel::{Address, Opinion},
};

pub(super) const SPEC: Spec = Spec {
    name: "sentinel|is-master-down-by-addr",
    group: Group::Sentinel,
    since: "2.8.4",
    summary: "Asks whether a master is down, and for a vote.",
    arity: 6,
    flags: Flags::ADMIN,
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let (port, epoch) = (integer(&args[3])?, integer(&args[4])?);
    let address = Address::new(text(&args[2]), u16::try_from(port).unwrap_or(0));
    let (epoch, candidate) = (u64::try_from(epoch).unwrap_or(0), text(&args[5]));
    let Opinion { down, leader, leader_epoch } =
        with(ctx, |sentinel, env| sentinel.opinion(env, &address, epoch, &candidate));
    let leader = leader.unwrap_or_else(|| "*".into());
    let leader_epoch = Reply::Integer(i64::try_from(leader_epoch).unwrap_or(i64::MAX));
    Ok(Reply::Array(vec![down.into(), Reply::bulk(leader), leader_epoch]))
}
