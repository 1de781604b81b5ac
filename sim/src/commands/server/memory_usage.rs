//! MEMORY USAGE key [SAMPLES count]: the bytes of a key and its value, as estimated by
//! keyspace/footprint.rs.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Lookup, Spec, integer},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "memory|usage",
    group: Group::Server,
    since: "4.0.0",
    summary: "The memory that a key and its value use.",
    arity: -3,
    flags: Flags::READONLY,
    keys: Keys::Range { first: 2, last: 2, step: 1 },
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let mut options = &args[3..];
    while let [option, rest @ ..] = options {
        let [count, rest @ ..] = rest else { return Err(Error::SYNTAX) };
        if !option.eq_ignore_ascii_case(b"samples") {
            return Err(Error::SYNTAX);
        }
        // The count is only checked: the estimate takes its own samples.
        if integer(count)? < 0 {
            return Err(Error::SYNTAX);
        }
        options = rest;
    }
    let generation = ctx.node.config.generation;
    let bytes = ctx.lookup(&args[2], Lookup::PASSIVE).map(|entry| entry.footprint(&args[2], generation));
    Ok(bytes.map_or(Reply::Null, Reply::from))
}
