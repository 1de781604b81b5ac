//! SCAN cursor [MATCH pattern] [COUNT count] [TYPE type]: some keys, and the next cursor.

use bytes::Bytes;

use crate::{
    commands::{
        Ctx, Error, Flags, Group, Keys, Lookup, Spec, printable,
        scan::{ScanOptions, cursor, reply},
    },
    keyspace::Kind,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "scan",
    group: Group::Generic,
    since: "2.8.0",
    summary: "Iterates over the keys step by step.",
    arity: -2,
    flags: Flags::READONLY.union(Flags::TOUCHES_ARBITRARY_KEYS),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let cursor = cursor(&args[1], ctx.node.config.generation)?;
    let is_valkey = ctx.node.config.generation.is_valkey();
    let options = ScanOptions::parse_typed(&args[2..], |kind| {
        let is_known = Kind::ALL.iter().any(|known| kind.eq_ignore_ascii_case(known.name().as_bytes()));
        if is_known || !is_valkey {
            return Ok(());
        }
        Err(Error(format!("ERR unknown type name '{}'", printable(kind, usize::MAX)).into()))
    })?;
    let entries = ctx.raw_db().entries();
    let (cursor, found) =
        options.sweep(cursor, |cursor, found| entries.scan(cursor, |key, _| found.push(key.clone())));
    let wanted = found.into_iter().filter(|key| {
        options.wants(key)
            && !ctx.node.hides(key)
            && match &options.kind {
                None => ctx.lookup(key, Lookup::PASSIVE).is_some(),
                Some(kind) => is_of(ctx, key, kind),
            }
    });
    Ok(reply(cursor, wanted.map(Reply::from).collect()))
}

/// Returns true if a key has this type. The check is a lookup: it counts a hit, or a miss for an
/// expired key. An expired key that the lookup has removed has type `none`. One that this node may
/// not remove has no type.
fn is_of(ctx: &mut Ctx<'_>, key: &[u8], kind: &[u8]) -> bool {
    let name = ctx.lookup(key, Lookup::NO_TOUCH).map(|entry| entry.value.kind().name());
    let is_removed = name.is_none() && ctx.raw_db().get(key).is_none();
    kind.eq_ignore_ascii_case(name.unwrap_or("none").as_bytes()) && (name.is_some() || is_removed)
}
