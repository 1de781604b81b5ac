//! DEL key [key ...]: removes keys.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    effect::Class,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "del",
    group: Group::Generic,
    since: "1.0.0",
    summary: "Removes keys.",
    arity: -2,
    flags: Flags::WRITE,
    keys: Keys::ALL,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let mut removed = 0;
    for key in &args[1..] {
        if ctx.remove(key).is_some() {
            ctx.changed(key, Class::Generic, "del");
            removed += 1;
        }
    }
    Ok(Reply::Integer(removed))
}
