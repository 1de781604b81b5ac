//! LOLWUT [VERSION version ...]: the version. The pictures of the original are its own.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec, integer},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "lolwut",
    group: Group::Server,
    since: "5.0.0",
    summary: "The version, and elsewhere a picture.",
    arity: -1,
    flags: Flags::READONLY.union(Flags::FAST),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(_: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    if let [_, option, version, ..] = args
        && option.eq_ignore_ascii_case(b"version")
    {
        integer(version)?;
    }
    Ok(Reply::Verbatim("txt", format!("Redis ver. {}\n", crate::VERSION).into()))
}
