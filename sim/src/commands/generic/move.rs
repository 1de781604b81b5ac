//! MOVE key db: moves a key to another database, unless a key of that name exists there.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec, int32},
    effect::{Class, Signal},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "move",
    group: Group::Generic,
    since: "1.0.0",
    summary: "Moves a key to another database.",
    arity: 3,
    flags: Flags::WRITE.union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    if ctx.node.cluster.is_some() {
        return Err(Error::of("ERR MOVE is not allowed in cluster mode"));
    }
    let key = &args[1];
    let number = int32(&args[2])?;
    let db = usize::try_from(number).ok().filter(|number| *number < ctx.node.dbs.len());
    let db = db.ok_or(Error::DB_OUT_OF_RANGE)?;
    if db == ctx.db {
        return Err(Error::SAME_OBJECT);
    }
    if ctx.lookup_write(key).is_none() || ctx.in_db(db, |ctx| ctx.exists_for_write(key)) {
        return Ok(Reply::Integer(0));
    }
    let Some(entry) = ctx.remove(key) else { return Ok(Reply::Integer(0)) };
    ctx.in_db(db, |ctx| ctx.put_entry(key, entry));
    ctx.effects.dirty += 1;
    // Both invalidations precede both events.
    ctx.signal(key);
    ctx.in_db(db, |ctx| ctx.signal(key));
    ctx.touch_as(key, Class::Generic, "move_from", Some(Signal::Apart));
    ctx.in_db(db, |ctx| ctx.touch_as(key, Class::Generic, "move_to", Some(Signal::Apart)));
    Ok(Reply::Integer(1))
}
