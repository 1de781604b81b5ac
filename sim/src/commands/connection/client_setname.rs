//! CLIENT SETNAME name: names the connection; an empty name removes the name.

use bytes::Bytes;

use super::clients::check_name;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "client|setname",
    group: Group::Connection,
    since: "2.6.9",
    summary: "Names the connection.",
    arity: 3,
    flags: Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    check_name(&args[2])?;
    ctx.session().name = args[2].clone();
    Ok(Reply::OK)
}
