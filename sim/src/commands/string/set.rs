//! SET key value: sets a key to a string, whatever it held.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    effect::Class,
    keyspace::{Str, Value},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "set",
    group: Group::String,
    since: "1.0.0",
    summary: "Sets a key to a string.",
    arity: -3,
    flags: Flags::WRITE.union(Flags::DENYOOM),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    if args.len() > 3 {
        return Err(Error::SYNTAX);
    }
    ctx.put(&args[1], Value::String(Str::new(args[2].clone())), None);
    ctx.changed(&args[1], Class::String, "set");
    Ok(Reply::OK)
}
