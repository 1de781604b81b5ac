//! HSCAN key cursor [MATCH pattern] [COUNT count]: some fields and values, and the next cursor.

use bytes::Bytes;

use crate::{
    commands::{
        Ctx, Error, Flags, Group, Keys, Spec,
        scan::{ScanOptions, cursor, reply},
    },
    keyspace::Hash,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "hscan",
    group: Group::Hash,
    since: "2.8.0",
    summary: "Iterates over the fields of a hash step by step.",
    arity: -3,
    flags: Flags::READONLY,
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let cursor = cursor(&args[2])?;
    let rule = ctx.field_rule();
    let Some(hash) = ctx.read::<Hash>(&args[1])? else { return Ok(reply(0, Vec::new())) };
    let options = ScanOptions::parse(&args[3..], false)?;
    let (cursor, found) = options.sweep(cursor, |cursor, found| {
        hash.scan(cursor, |field, value| {
            if !hash.is_expired(field, rule) {
                found.push((field.apart(), value.apart()));
            }
        })
    });
    let wanted = found.into_iter().filter(|(field, _)| options.wants(field));
    Ok(reply(cursor, wanted.flat_map(|(field, value)| [field.into(), value.into()]).collect()))
}
