//! CLUSTER SLOTS: lists the slots with their nodes.

use bytes::Bytes;

use super::with;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "cluster|slots",
    group: Group::Cluster,
    since: "3.0.0",
    summary: "Describes which nodes serve which slots, in the older form.",
    arity: 2,
    flags: Flags::STALE,
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, _: &[Bytes]) -> Result<Reply, Error> {
    with(ctx, |cluster, _, around| cluster.show_slots(around))
}
