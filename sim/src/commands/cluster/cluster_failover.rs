//! CLUSTER FAILOVER [FORCE | TAKEOVER]: this replica takes over from its master.

use bytes::Bytes;

use super::{act, with};
use crate::{
    cluster::Force,
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "cluster|failover",
    group: Group::Cluster,
    since: "3.0.0",
    summary: "Makes a replica take over from its master.",
    arity: -2,
    flags: Flags::ADMIN.union(Flags::STALE).union(Flags::NO_ASYNC_LOADING),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    with(ctx, |_, _, _| ())?;
    let force = match &args[2..] {
        [] => Force::None,
        [word] if word.eq_ignore_ascii_case(b"force") => Force::Master,
        [word] if word.eq_ignore_ascii_case(b"takeover") => Force::All,
        [_] => return Err(Error::SYNTAX),
        _ => return Err(Error::subcommand("CLUSTER", &args[1])),
    };
    act(ctx, |cluster, env, around| cluster.fail_over(env, around, force))
}
