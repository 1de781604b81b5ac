//! SENTINEL PENDING-SCRIPTS: lists the scripts to run; always empty, because no scripts exist here.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "sentinel|pending-scripts",
    group: Group::Sentinel,
    since: "2.8.4",
    summary: "The scripts that are to run: none, as there are no scripts.",
    arity: 2,
    flags: Flags::ADMIN,
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let _ = (ctx, args);
    Ok(Reply::Array(vec![]))
}
