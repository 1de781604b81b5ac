//! COPY source destination [DB number] [REPLACE]: copies a key with its expiry.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec, int32},
    effect::Class,
    keyspace::Value,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "copy",
    group: Group::Generic,
    since: "6.2.0",
    summary: "Copies a key.",
    arity: -3,
    flags: Flags::WRITE.union(Flags::DENYOOM),
    keys: Keys::Range { first: 1, last: 2, step: 1 },
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let (source, destination) = (&args[1], &args[2]);
    let (mut db, mut replace) = (ctx.db, false);
    let mut options = args[3..].iter();
    while let Some(option) = options.next() {
        match option.to_ascii_lowercase().as_slice() {
            b"replace" => replace = true,
            b"db" => db = database(ctx, options.next().ok_or(Error::SYNTAX)?)?,
            _ => return Err(Error::SYNTAX),
        }
    }
    if ctx.node.cluster.is_some() && db != ctx.db {
        return Err(match ctx.node.config.generation.is_before_7_2() {
            true => Error::of("ERR Copying to another database is not allowed in cluster mode"),
            false => Error::DB_OUT_OF_RANGE,
        });
    }
    if source == destination && db == ctx.db {
        return Err(Error::SAME_OBJECT);
    }
    let Some(mut entry) = ctx.lookup_read(source).cloned() else { return Ok(Reply::Integer(0)) };
    // Valkey leaves fields that have expired behind, even if none remains.
    if ctx.node.config.generation.is_valkey()
        && let Value::Hash(hash) = &mut entry.value
    {
        hash.drop_expired(ctx.field_rule());
    }
    let copied = ctx.in_db(db, |ctx| {
        if ctx.exists_for_write(destination) {
            if !replace {
                return false;
            }
            // The copy is a new key, so remove the old one.
            ctx.remove(destination);
        }
        let expires_ms = entry.expires_ms();
        ctx.put(destination, entry.value, expires_ms);
        ctx.changed(destination, Class::Generic, "copy_to");
        true
    });
    Ok(copied.into())
}

/// Parses the number of an existing database.
fn database(ctx: &Ctx<'_>, text: &[u8]) -> Result<usize, Error> {
    let number = int32(text)?;
    let number = usize::try_from(number).ok().filter(|number| *number < ctx.node.dbs.len());
    number.ok_or(Error::DB_OUT_OF_RANGE)
}
