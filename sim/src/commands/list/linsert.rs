//! LINSERT key BEFORE | AFTER pivot element: adds an element next to the first that equals the
//! pivot; replies with the length, or -1 without a pivot.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    effect::Class,
    keyspace::List,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "linsert",
    group: Group::List,
    since: "2.2.0",
    summary: "Adds an element next to another in a list.",
    arity: 5,
    flags: Flags::WRITE.union(Flags::DENYOOM),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let behind = match args[2].to_ascii_lowercase().as_slice() {
        b"before" => 0,
        b"after" => 1,
        _ => return Err(Error::SYNTAX),
    };
    let key = &args[1];
    let Some(list) = ctx.modify::<List>(key)? else { return Ok(Reply::Integer(0)) };
    let Some(pivot) = list.iter().position(|element| *element == args[3]) else {
        return Ok(Reply::Integer(-1));
    };
    list.insert(pivot + behind, &args[4]);
    let len = list.len();
    ctx.changed(key, Class::List, "linsert");
    Ok(len.into())
}
