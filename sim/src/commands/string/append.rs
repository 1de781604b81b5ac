//! APPEND key value: adds bytes to the end of a string; replies with the new length.

use bytes::Bytes;

use super::setrange::within;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    effect::Class,
    keyspace::{Str, Value},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "append",
    group: Group::String,
    since: "2.0.0",
    summary: "Adds bytes to the end of a string.",
    arity: 3,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let (key, tail) = (&args[1], &args[2]);
    let len_max = ctx.node.config.clients.proto_max_bulk_len;
    let len = match ctx.modify::<Str>(key)? {
        Some(string) => {
            within(string.bytes().len(), tail.len(), len_max)?;
            string.edit(|bytes| bytes.extend_from_slice(tail));
            string.bytes().len()
        }
        None => {
            ctx.put(key, Value::String(Str::new(tail)), None);
            tail.len()
        }
    };
    ctx.changed(key, Class::String, "append");
    Ok(len.into())
}
