//! SCAN cursor [MATCH pattern] [COUNT count] [TYPE type]: some keys, and where to go on.

use bytes::Bytes;

use crate::{
    commands::{
        Ctx, Error, Flags, Group, Keys, Spec,
        scan::{ScanOptions, cursor, reply},
    },
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "scan",
    group: Group::Generic,
    since: "2.8.0",
    summary: "Some keys and where to go on.",
    arity: -2,
    flags: Flags::READONLY.union(Flags::TOUCHES_ARBITRARY_KEYS),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let cursor = cursor(&args[1])?;
    let options = ScanOptions::parse(&args[2..], true)?;
    let entries = ctx.raw_db().entries();
    let (cursor, found) =
        options.sweep(cursor, |cursor, found| entries.scan(cursor, |key, _| found.push(key.clone())));
    let wanted = found.into_iter().filter(|key| {
        options.wants(key)
            && ctx.pass(key).is_some_and(|entry| {
                let name = entry.value.kind().name().as_bytes();
                options.kind.as_ref().is_none_or(|kind| kind.eq_ignore_ascii_case(name))
            })
    });
    Ok(reply(cursor, wanted.map(Reply::from).collect()))
}
