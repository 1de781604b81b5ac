//! RENAMENX key newkey: renames a key, unless a key of the new name exists.

use bytes::Bytes;

use super::rename::rename;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "renamenx",
    group: Group::Generic,
    since: "1.0.0",
    summary: "Renames a key if the new name is free.",
    arity: 3,
    flags: Flags::WRITE.union(Flags::FAST),
    keys: Keys::Range { first: 1, last: 2, step: 1 },
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    Ok(rename(ctx, &args[1], &args[2], false)?.into())
}
