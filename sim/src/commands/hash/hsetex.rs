//! HSETEX key [FNX | FXX] [EX seconds | PX ms | EXAT seconds | PXAT ms | KEEPTTL] FIELDS numfields
//! field value [field value ...]: sets fields and their time to live.

use bytes::Bytes;

use super::{
    field_options::{Change, Options},
    fields::{drop_past, is_valkey, remove_expired, set_time},
};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    effect::{Class, PropagateTo, Propagated},
    keyspace::Hash,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "hsetex",
    group: Group::Hash,
    since: "8.0.0, valkey 9.0.0",
    summary: "Sets fields of a hash and their time to live.",
    arity: -6,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let key = &args[1];
    let options = Options::of_hsetex(ctx, args)?;
    let exists = ctx.modify::<Hash>(key)?.is_some();
    let when_ms = match &options.change {
        Some((_, change)) => change.when_ms(ctx, "hsetex")?,
        None => None,
    };
    let keeps = matches!(options.change, Some((_, Change::Word)));
    let (pairs, _) = options.fields.as_chunks::<2>();
    let looked = is_allowed(ctx, key, &options, exists, pairs)?;
    let expired = match looked {
        Looked::Allowed { expired } => expired,
        Looked::Forbidden => return Ok(Reply::Integer(0)),
    };
    let is_valkey = is_valkey(ctx);
    let is_past = when_ms.is_some_and(|when_ms| ctx.is_past(when_ms));
    let rule = ctx.field_rule();
    let encodings = ctx.node.config.keyspace.encodings;
    let hash = ctx.modify_or_create::<Hash>(key)?;
    hash.expect(pairs.len(), &encodings);
    let (mut replaced, mut old) = (Vec::new(), Vec::new());
    for [field, value] in pairs {
        // In Valkey a field that has expired is a new one.
        if is_valkey && hash.is_expired(field, rule) {
            hash.clear_time(field);
            replaced.push(field.clone());
        }
        let is_new = hash.set(field, value, &encodings);
        if !keeps {
            hash.clear_time(field);
        }
        if !is_new || !is_valkey {
            old.push(field.clone());
        }
    }
    if is_past {
        for [field, _] in pairs {
            hash.remove(field);
        }
    }
    if expired > 0 || !replaced.is_empty() && !is_past {
        ctx.touch(key, Class::Hash, "hexpired");
    }
    ctx.replied();
    ctx.changed_by(pairs.len(), key, Class::Hash, "hset");
    if let Some(when_ms) = when_ms {
        if !is_past {
            pairs.iter().for_each(|[field, _]| set_time(ctx, key, field, when_ms));
        }
        if !is_past || is_valkey {
            ctx.touch(key, Class::Hash, "hexpire");
        }
    }
    if is_past {
        drop_past(ctx, key, &old);
        return Ok(Reply::Integer(1));
    }
    // A replica has the field with its time, which KEEPTTL would keep.
    if keeps && !replaced.is_empty() {
        let args = [&["HDEL".into(), key.clone()][..], &replaced[..]].concat();
        let (db, to) = (ctx.db, PropagateTo::All);
        ctx.effects.propagated.push(Propagated { db, args, to });
    }
    propagate(ctx, args, &options, when_ms);
    Ok(Reply::Integer(1))
}

/// The result of the check of the conditions.
enum Looked {
    /// The conditions hold. `expired` fields had expired and were removed.
    Allowed {
        expired: usize,
    },
    Forbidden,
}

/// Checks the conditions. Redis removes the expired fields that it meets.
fn is_allowed(
    ctx: &mut Ctx<'_>,
    key: &Bytes,
    options: &Options<'_>,
    exists: bool,
    pairs: &[[Bytes; 2]],
) -> Result<Looked, Error> {
    if options.only_if_key.is_some_and(|wanted| wanted != exists) {
        return Ok(Looked::Forbidden);
    }
    let mut expired = 0;
    let Some(wanted) = options.only_if_fields else { return Ok(Looked::Allowed { expired }) };
    for [field, _] in pairs {
        let rule = ctx.field_rule();
        expired += remove_expired(ctx, key, std::slice::from_ref(field));
        let hash = ctx.modify::<Hash>(key)?;
        if hash.is_some_and(|hash| hash.get_by(field, rule).is_some()) != wanted {
            if expired > 0 {
                ctx.touch(key, Class::Hash, "hexpired");
                ctx.drop_if_empty(key);
            }
            return Ok(Looked::Forbidden);
        }
    }
    Ok(Looked::Allowed { expired })
}

/// Propagates the command with an absolute time. Valkey omits the conditions.
fn propagate(ctx: &mut Ctx<'_>, args: &[Bytes], options: &Options<'_>, when_ms: Option<i64>) {
    let at = options.change.as_ref().map(|(at, _)| *at);
    let mut command = args.to_vec();
    command[0] = "HSETEX".into();
    if let (Some(at), Some(when_ms)) = (at, when_ms) {
        command[at] = "PXAT".into();
        command[at + 1] = when_ms.to_string().into();
    }
    if is_valkey(ctx) {
        let end = args.len() - options.fields.len() - 2;
        let kept = at.map_or(end..end, |at| at..at + if when_ms.is_some() { 2 } else { 1 });
        command = [&command[..2], &command[kept], &command[end..]].concat();
    }
    ctx.propagate_as(vec![command]);
}
