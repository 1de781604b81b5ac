//! UNLINK key [key ...]: removes keys. Frees no memory in the background, but counts what a server
//! would free there.

use bytes::Bytes;

use super::del::remove_all;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "unlink",
    group: Group::Generic,
    since: "4.0.0",
    summary: "Removes keys, freeing memory in the background.",
    arity: -2,
    flags: Flags::WRITE.union(Flags::FAST),
    keys: Keys::ALL,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    Ok(remove_all(ctx, &args[1..], true))
}
