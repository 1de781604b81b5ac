//! DUMP key: serializes the value of a key for RESTORE, in the format of snapshots.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    durability::rdb,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "dump",
    group: Group::Generic,
    since: "2.6.0",
    summary: "The value of a key in serialized form.",
    arity: 2,
    flags: Flags::READONLY,
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    if ctx.lookup_read(&args[1]).is_none() {
        return Ok(Reply::Null);
    }
    let (db, config) = (&ctx.node.dbs[ctx.db], &ctx.node.config);
    Ok(db.get(&args[1]).map_or(Reply::Null, |entry| rdb::dump(&entry.value, config).into()))
}
