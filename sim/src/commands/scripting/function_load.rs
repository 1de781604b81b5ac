//! FUNCTION LOAD [REPLACE] code: compiles a library and registers its functions.

use bytes::Bytes;

use super::libraries::create;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec, printable},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "function|load",
    group: Group::Scripting,
    since: "7.0.0",
    summary: "Loads a library of functions.",
    arity: -3,
    flags: Flags::NOSCRIPT.union(Flags::WRITE).union(Flags::DENYOOM),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let (code, options) = args[2..].split_last().expect("the arity asks for it");
    for option in options {
        if !option.eq_ignore_ascii_case(b"replace") {
            let option = printable(option, usize::MAX);
            return Err(Error(format!("ERR Unknown option given: {option}").into()));
        }
    }
    let name = create(ctx, code, !options.is_empty())?;
    ctx.effects.dirty += 1;
    Ok(Reply::bulk(&name))
}
