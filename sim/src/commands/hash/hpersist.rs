//! HPERSIST key FIELDS numfields field [field ...]: removes the time to live of fields.

use bytes::Bytes;

use super::field_expiry::persist;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "hpersist",
    group: Group::Hash,
    since: "7.4.0, valkey 9.0.0",
    summary: "Removes the time to live of fields of a hash.",
    arity: -5,
    flags: Flags::WRITE.union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    persist(ctx, args)
}
