//! CLIENT IMPORT-SOURCE ON or OFF: marks the connection as the source of an import. A simulated
//! node is never in import mode.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "client|import-source",
    group: Group::Connection,
    since: "valkey 8.1.0",
    summary: "Marks the connection as the source of an import.",
    arity: 3,
    flags: Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(_: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    match args[2].eq_ignore_ascii_case(b"off") {
        true => Ok(Reply::OK),
        false => Err(Error::of("ERR Server is not in import mode")),
    }
}
