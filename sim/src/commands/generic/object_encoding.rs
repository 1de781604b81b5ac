//! OBJECT ENCODING key: the encoding of a key's value.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Lookup, Spec},
    durability::rdb,
    generation::{Feature, Generation},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "object|encoding",
    group: Group::Generic,
    since: "2.2.3",
    summary: "The internal encoding of the value of a key.",
    arity: 3,
    flags: Flags::READONLY,
    keys: Keys::Range { first: 2, last: 2, step: 1 },
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let (generation, node_size) = (ctx.node.config.generation, ctx.node.config.keyspace.list_node_size);
    let has_packed = generation.has(Feature::PackedLists);
    Ok(ctx.lookup(&args[2], Lookup::INSPECT).map_or(Reply::Null, |entry| {
        let is_packed = has_packed && rdb::is_packed(&entry.value, node_size);
        Reply::bulk(match entry.value.encoding() {
            _ if is_packed => "listpack",
            "listpack" if generation == Generation::Redis62 => "ziplist",
            encoding => encoding,
        })
    }))
}
