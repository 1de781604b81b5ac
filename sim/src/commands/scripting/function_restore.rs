//! FUNCTION RESTORE payload [FLUSH | APPEND | REPLACE]: loads the libraries of a payload.

use bytes::Bytes;

use super::libraries::{Policy, restore};

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "function|restore",
    group: Group::Scripting,
    since: "7.0.0",
    summary: "Takes in the libraries of a payload.",
    arity: -3,
    flags: Flags::NOSCRIPT.union(Flags::WRITE).union(Flags::DENYOOM),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let policy = match &args[3..] {
        [] => Policy::Append,
        [word] => match &word.to_ascii_lowercase()[..] {
            b"append" => Policy::Append,
            b"replace" => Policy::Replace,
            b"flush" => Policy::Flush,
            _ => {
                return Err(Error::of(
                    "ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.",
                ));
            }
        },
        _ => return Err(Error::subcommand("function", &args[1])),
    };
    restore(ctx, &args[2], policy)?;
    ctx.effects.dirty += 1;
    Ok(Reply::OK)
}
