//! MEMORY DOCTOR: reports that nothing is wrong.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "memory|doctor",
    group: Group::Server,
    since: "4.0.0",
    summary: "Explains the use of memory.",
    arity: 2,
    flags: Flags::empty(),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(_: &mut Ctx<'_>, _: &[Bytes]) -> Result<Reply, Error> {
    Ok(Reply::Verbatim(
        *b"txt",
        "Memory is estimated, not measured, on this node: nothing can be amiss.\n".into(),
    ))
}
