//! SENTINEL CKQUORUM name: checks if enough Sentinels are usable to authorize a failover.

use bytes::Bytes;

use super::{UNKNOWN, sentinel, text};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "sentinel|ckquorum",
    group: Group::Sentinel,
    since: "2.8.4",
    summary: "Tells whether a failover of a master could be agreed on and authorized.",
    arity: 3,
    flags: Flags::ADMIN,
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let name = text(&args[2]);
    let (usable, below_quorum, below_majority) = sentinel(ctx).quorum_of(&name).ok_or(UNKNOWN)?;
    let wants = [
        (below_quorum, "Not enough available Sentinels to reach the specified quorum for this master"),
        (below_majority, "Not enough available Sentinels to reach the majority and authorize a failover"),
    ];
    let wants: Vec<&str> = wants.iter().filter(|(wants, _)| *wants).map(|(_, what)| *what).collect();
    if wants.is_empty() {
        let good = format!("OK {usable} usable Sentinels. Quorum and failover authorization can be reached");
        return Ok(Reply::Status(good.into()));
    }
    Err(Error(format!("NOQUORUM {usable} usable Sentinels. {}", wants.join(". ")).into()))
}
