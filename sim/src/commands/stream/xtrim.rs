//! XTRIM key MAXLEN | MINID [= | ~] threshold [LIMIT count]: removes the oldest entries.

use bytes::Bytes;

use super::trimming::Options;
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    effect::Class,
    keyspace::Stream,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "xtrim",
    group: Group::Stream,
    since: "5.0.0",
    summary: "Removes the oldest entries of a stream.",
    arity: -4,
    flags: Flags::WRITE,
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let options = Options::parse(ctx, args, false)?;
    let key = &args[1];
    let Some((Stream { log, .. }, trim)) = ctx.modify::<Stream>(key)?.zip(options.trim) else {
        return Ok(Reply::Integer(0));
    };
    let trimmed = log.trim(&trim);
    let repeated = options.repeated(args, log);
    if trimmed > 0 {
        ctx.taken(trimmed, key, Class::Stream, "xtrim");
        if let Some(repeated) = repeated {
            ctx.propagate_as(vec![repeated]);
        }
    }
    Ok(trimmed.into())
}
