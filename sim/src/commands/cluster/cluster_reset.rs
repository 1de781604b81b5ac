//! CLUSTER RESET [SOFT | HARD]: forgets the cluster.

use bytes::Bytes;

use super::{act, with};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "cluster|reset",
    group: Group::Cluster,
    since: "3.0.0",
    summary: "Forgets the cluster.",
    arity: -2,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    with(ctx, |_, _, _| ())?;
    let hard = match &args[2..] {
        [] => false,
        [word] if word.eq_ignore_ascii_case(b"soft") => false,
        [word] if word.eq_ignore_ascii_case(b"hard") => true,
        [_] => return Err(Error::SYNTAX),
        _ => return Err(Error::subcommand("CLUSTER", &args[1])),
    };
    act(ctx, |cluster, env, around| cluster.reset(env, around, hard))
}
