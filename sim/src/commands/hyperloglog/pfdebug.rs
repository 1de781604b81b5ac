//! PFDEBUG GETREG | DECODE | ENCODING | TODENSE key: inspects a HyperLogLog.

use bytes::Bytes;

use super::sketch;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec, printable},
    keyspace::Str,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "pfdebug",
    group: Group::HyperLogLog,
    since: "2.8.9",
    summary: "Looks inside a HyperLogLog.",
    arity: 3,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::ADMIN),
    keys: Keys::Range { first: 2, last: 2, step: 1 },
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let Some(string) = ctx.modify::<Str>(&args[2])? else {
        return Err(Error::of("ERR The specified key does not exist"));
    };
    sketch::check(string.bytes())?;
    let was_sparse = sketch::is_sparse(string.bytes());
    // Every subcommand turns the value into a raw string.
    let name = args[1].to_ascii_uppercase();
    // Redis 6.2 takes any number of arguments, and counts those of the subcommands that it knows.
    if args.len() > 3 && [&b"GETREG"[..], b"DECODE", b"ENCODING", b"TODENSE"].contains(&&name[..]) {
        let name = printable(&name, usize::MAX);
        return Err(Error(format!("ERR Wrong number of arguments for the '{name}' subcommand").into()));
    }
    let reply = string.edit(|bytes| match args[1].to_ascii_lowercase().as_slice() {
        b"getreg" => {
            sketch::make_dense(bytes)?;
            let registers = sketch::registers(bytes)?;
            Ok(Reply::Array(registers.iter().map(|value| Reply::Integer((*value).into())).collect()))
        }
        b"decode" if was_sparse => Ok(Reply::bulk(sketch::decode(bytes))),
        b"decode" => Err(Error::of("ERR HLL encoding is not sparse")),
        b"encoding" => Ok(Reply::Status(if was_sparse { "sparse" } else { "dense" }.into())),
        b"todense" => sketch::make_dense(bytes).map(|()| was_sparse.into()),
        _ => {
            Err(Error(format!("ERR Unknown PFDEBUG subcommand '{}'", printable(&args[1], usize::MAX)).into()))
        }
    })?;
    if was_sparse
        && !ctx.modify_no_touch::<Str>(&args[2])?.is_some_and(|string| sketch::is_sparse(string.bytes()))
    {
        // The conversion is propagated, but emits no event.
        ctx.effects.dirty += 1;
    }
    Ok(reply)
}
