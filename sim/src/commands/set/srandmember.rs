//! SRANDMEMBER key [count]: random members, each once; with a negative count each as often as
//! drawn.

use bytes::Bytes;

use crate::{
    commands::{
        Ctx, Error, Flags, Group, Keys, Spec,
        draw::{cut_short, draw_elements, random_count},
    },
    env::Env,
    keyspace::Set,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "srandmember",
    group: Group::Set,
    since: "1.0.0",
    summary: "Random members of a set.",
    arity: -2,
    flags: Flags::READONLY,
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    if args.len() > 3 {
        return Err(Error::SYNTAX);
    }
    let key = &args[1];
    let count = args.get(2).map(|count| random_count(count)).transpose()?;
    if ctx.read::<Set>(key)?.is_none() {
        return Ok(if count.is_some() { Reply::Array(Vec::new()) } else { Reply::Null });
    }
    if let Some(reply) = count.and_then(|count| cut_short(ctx, count)) {
        return Ok(reply);
    }
    let (env, db) = (&mut *ctx.env, &ctx.node.dbs[ctx.db]);
    let set = db.typed::<Set>(key)?.expect("it was just read");
    let Some(count) = count else { return Ok(set.random(|len| env.random_below(len)).into()) };
    let random = |env: &mut Env| set.random(|len| env.random_below(len));
    let drawn = draw_elements(env, set.len(), count, random, || set.iter().collect())?;
    Ok(Reply::Array(drawn.into_iter().map(Reply::from).collect()))
}
