//! HRANDFIELD key [count [WITHVALUES]]: fields drawn at random; different ones for a positive
//! count, any for a negative one.

use bytes::Bytes;

use super::fields::sweep;
use crate::{
    commands::{
        Ctx, Error, Flags, Group, Keys, Spec,
        draw::{cut_short, draw_elements, random_count},
    },
    env::Env,
    keyspace::Hash,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "hrandfield",
    group: Group::Hash,
    since: "6.2.0",
    summary: "Fields of a hash drawn at random.",
    arity: -2,
    flags: Flags::READONLY,
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let count = args.get(2).map(|count| random_count(count)).transpose()?;
    let with_values = match args.get(3) {
        Some(option) if args.len() == 4 && option.eq_ignore_ascii_case(b"withvalues") => true,
        Some(_) => return Err(Error::SYNTAX),
        None => false,
    };
    if with_values && count.is_some_and(|count| count.unsigned_abs() > i64::MAX as u64 / 2) {
        return Err(Error::OUT_OF_RANGE);
    }
    if ctx.read::<Hash>(&args[1])?.is_none() {
        return Ok(if count.is_some() { Reply::Array(Vec::new()) } else { Reply::Null });
    }
    if let Some(reply) = count.and_then(|count| cut_short(ctx, count)) {
        return Ok(reply);
    }
    sweep(ctx, &args[1]);
    let rule = ctx.field_rule();
    let (env, db) = (&mut *ctx.env, &ctx.node.dbs[ctx.db]);
    let Some(hash) = db.typed::<Hash>(&args[1])? else {
        return Ok(if count.is_some() { Reply::Array(Vec::new()) } else { Reply::Null });
    };
    // Expired fields that are not removed yet are not drawn.
    let live: Option<Vec<_>> = hash.next_expired(rule).map(|_| hash.iter_by(rule).collect());
    let len = live.as_ref().map_or(hash.len(), Vec::len);
    let random = |env: &mut Env| match &live {
        Some(live) if live.is_empty() => None,
        Some(live) => Some(live[env.random_below(live.len())]),
        None => hash.random(|len| env.random_below(len)),
    };
    let Some(count) = count else { return Ok(random(env).map(|(field, _)| field).into()) };
    let drawn = draw_elements(env, len, count, random, || hash.iter_by(rule).collect())?.into_iter();
    Ok(if with_values {
        Reply::Pairs(drawn.map(|(field, value)| (field.into(), value.into())).collect())
    } else {
        Reply::Array(drawn.map(|(field, _)| field.into()).collect())
    })
}
