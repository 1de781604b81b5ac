//! SENTINEL SET name option value ...: sets options of a master.

use bytes::Bytes;

use super::{sentinel, text};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "sentinel|set",
    group: Group::Sentinel,
    since: "2.8.4",
    summary: "Sets options of a master.",
    arity: -5,
    flags: Flags::ADMIN,
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let words: Vec<String> = args[3..].iter().map(|word| text(word)).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let name = text(&args[2]);
    sentinel(ctx).set(&name, &words).map(|()| Reply::OK).map_err(|why| Error(why.into()))
}
