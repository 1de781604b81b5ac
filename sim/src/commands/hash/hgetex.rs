//! HGETEX key [EX seconds | PX ms | EXAT seconds | PXAT ms | PERSIST] FIELDS numfields field
//! [field ...]: the values of fields, whose time to live is set or removed.

use bytes::Bytes;

use super::{
    field_options::{Change, Options},
    fields::{drop_past, is_valkey, remove_expired, with_fields},
};
use crate::{
    blob::Blob,
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    effect::Class,
    keyspace::Hash,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "hgetex",
    group: Group::Hash,
    since: "8.0.0, valkey 9.0.0",
    summary: "The values of fields of a hash, whose time to live is set or removed.",
    arity: -5,
    flags: Flags::WRITE.union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let key = &args[1];
    let is_valkey = is_valkey(ctx);
    if !is_valkey {
        ctx.modify::<Hash>(key)?;
    }
    let options = Options::of_hgetex(ctx, args)?;
    let fields = options.fields;
    if is_valkey {
        ctx.read::<Hash>(key)?;
    }
    let when_ms = match &options.change {
        Some((_, change)) => change.when_ms(ctx, "hgetex")?,
        None => None,
    };
    let persists = matches!(options.change, Some((_, Change::Word)));
    let expired = remove_expired(ctx, key, fields);
    if expired > 0 {
        ctx.touch(key, Class::Hash, "hexpired");
    }
    let is_past = when_ms.is_some_and(|when_ms| ctx.is_past(when_ms));
    let rule = ctx.field_rule();
    let Some(hash) = ctx.modify::<Hash>(key)? else {
        return Ok(Reply::Array(fields.iter().map(|_| Reply::Null).collect()));
    };
    if when_ms.is_some() && !is_valkey {
        hash.expect_times();
    }
    let mut changed = Vec::new();
    let mut values: Vec<Option<Blob>> = Vec::with_capacity(fields.len());
    for field in fields {
        let value = hash.get_by(field, rule).map(Blob::apart);
        let is_changed = value.is_some()
            && match when_ms {
                Some(_) if is_past => hash.remove(field).is_some(),
                Some(when_ms) => {
                    hash.set_time(field, when_ms, is_valkey);
                    true
                }
                None => persists && hash.clear_time(field).is_some(),
            };
        if is_changed {
            changed.push(field.clone());
        }
        values.push(value);
    }
    let reply = Reply::Array(values.into_iter().map(Reply::from).collect());
    ctx.replied();
    if changed.is_empty() {
        if expired > 0 {
            ctx.drop_if_empty(key);
        }
        return Ok(reply);
    }
    ctx.effects.dirty += changed.len() as u64;
    let named = if is_valkey { &changed[..] } else { fields };
    match when_ms {
        Some(_) if is_past => drop_past(ctx, key, &changed),
        Some(when_ms) => {
            ctx.raw_db().note_field_time(key, when_ms);
            ctx.touch(key, Class::Hash, "hexpire");
            let command = vec!["HPEXPIREAT".into(), key.clone(), when_ms.to_string().into()];
            ctx.propagate_as(vec![with_fields(command, named)]);
        }
        None => {
            ctx.touch(key, Class::Hash, "hpersist");
            let command = vec!["HPERSIST".into(), key.clone()];
            ctx.propagate_as(vec![with_fields(command, named)]);
        }
    }
    Ok(reply)
}
