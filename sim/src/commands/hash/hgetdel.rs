//! HGETDEL key FIELDS numfields field [field ...]: removes fields; replies with their values.

use bytes::Bytes;

use super::fields::{is, is_valkey, redis_fields, remove_expired, valkey_fields};
use crate::{
    blob::Blob,
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    effect::Class,
    keyspace::Hash,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "hgetdel",
    group: Group::Hash,
    since: "8.0.0, valkey 9.1.0",
    summary: "Removes fields of a hash, and returns their values.",
    arity: -5,
    flags: Flags::WRITE.union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let key = &args[1];
    let is_valkey = is_valkey(ctx);
    let fields = if is_valkey {
        if !is(&args[2], "fields") {
            return Err(Error::SYNTAX);
        }
        valkey_fields(args, 2, 1)?
    } else {
        ctx.modify::<Hash>(key)?;
        redis_fields(args, 2)?
    };
    let expired = remove_expired(ctx, key, fields);
    if expired > 0 {
        ctx.touch(key, Class::Hash, "hexpired");
    }
    let rule = ctx.field_rule();
    let Some(hash) = ctx.modify::<Hash>(key)? else {
        return Ok(Reply::Array(fields.iter().map(|_| Reply::Null).collect()));
    };
    let take = |field: &Bytes| if hash.is_expired(field, rule) { None } else { hash.remove(field) };
    let values: Vec<Option<Blob>> = fields.iter().map(take).collect();
    let removed = values.iter().flatten().count();
    let reply = Reply::Array(values.into_iter().map(Reply::from).collect());
    ctx.replied();
    if removed > 0 {
        ctx.changed_by(removed, key, Class::Hash, "hdel");
        if !is_valkey {
            ctx.propagate_as(vec![[&["HDEL".into(), key.clone()][..], fields].concat()]);
        }
    }
    if removed + expired > 0 {
        ctx.drop_if_empty(key);
    }
    Ok(reply)
}
