//! PEXPIRE key milliseconds [NX | XX | GT | LT]: gives a key a time to live.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec, integer},
    effect::Class,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "pexpire",
    group: Group::Generic,
    since: "2.6.0",
    summary: "Gives a key a time to live in milliseconds.",
    arity: -3,
    flags: Flags::WRITE.union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let ms = integer(&args[2])?;
    let when = ctx.now_ms.checked_add(ms).ok_or_else(|| Error::invalid_expire("pexpire"))?;
    let key = &args[1];
    if !ctx.set_expiry(key, Some(when)) {
        return Ok(Reply::Integer(0));
    }
    ctx.changed(key, Class::Generic, "expire");
    ctx.propagate_as(vec![vec![
        Bytes::from_static(b"PEXPIREAT"),
        key.clone(),
        Bytes::from(when.to_string()),
    ]]);
    Ok(Reply::Integer(1))
}
