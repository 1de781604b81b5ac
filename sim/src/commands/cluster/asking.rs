//! ASKING: lets the next command use a slot that this node imports.

use bytes::Bytes;

use super::with;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "asking",
    group: Group::Cluster,
    since: "3.0.0",
    summary: "Lets the next command reach a slot that is being moved here.",
    arity: 1,
    flags: Flags::FAST,
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, _: &[Bytes]) -> Result<Reply, Error> {
    with(ctx, |_, _, _| ())?;
    ctx.session().asks = true;
    Ok(Reply::OK)
}
