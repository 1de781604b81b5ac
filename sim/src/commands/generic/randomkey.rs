//! RANDOMKEY: a key drawn at random.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Lookup, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "randomkey",
    group: Group::Generic,
    since: "1.0.0",
    summary: "A key drawn at random.",
    arity: 1,
    flags: Flags::READONLY.union(Flags::TOUCHES_ARBITRARY_KEYS),
    keys: Keys::None,
    subcommands: &[],
    run,
};

/// Number of draws from a database that may be full of expired keys.
const TRIES: usize = 100;

fn run(ctx: &mut Ctx<'_>, _: &[Bytes]) -> Result<Reply, Error> {
    // A draw removes an expired key, so that the loop ends. A replica keeps expired keys; after all
    // tries it replies with one of them.
    for _ in 0..TRIES {
        let db = &ctx.node.dbs[ctx.db];
        let Some((key, _)) = db.entries().random(|bound| ctx.env.random_below(bound)) else { break };
        let key = key.clone();
        if ctx.node.hides(&key) {
            continue;
        }
        if ctx.lookup(&key, Lookup::PASSIVE).is_some() {
            return Ok(key.into());
        }
        if ctx.node.is_replica() && ctx.raw_db().volatile_len() == ctx.raw_db().len() {
            return Ok(key.into());
        }
    }
    Ok(Reply::Null)
}
