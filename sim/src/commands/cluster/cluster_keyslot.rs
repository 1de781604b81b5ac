//! CLUSTER KEYSLOT key: the slot of a key.

use bytes::Bytes;

use super::with;
use crate::{
    cluster::key_slot,
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    generation::Generation,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "cluster|keyslot",
    group: Group::Cluster,
    since: "3.0.0",
    summary: "The slot of a key.",
    arity: 3,
    flags: Flags::STALE,
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    if ctx.node.config.generation != Generation::Valkey91 {
        with(ctx, |_, _, _| ())?;
    }
    Ok(i64::from(key_slot(&args[2])).into())
}
