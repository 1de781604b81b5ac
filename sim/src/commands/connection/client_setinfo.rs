//! CLIENT SETINFO LIB-NAME name or LIB-VER version: names the library of the connection.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec, printable},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "client|setinfo",
    group: Group::Connection,
    since: "7.2.0",
    summary: "Names the library of the connection, or its version.",
    arity: 4,
    flags: Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let (option, value) = (printable(&args[2], usize::MAX), &args[3]);
    let session = ctx.session();
    let place = match &option.to_ascii_lowercase()[..] {
        "lib-name" => &mut session.lib_name,
        "lib-ver" => &mut session.lib_version,
        _ => return Err(Error(format!("ERR Unrecognized option '{option}'").into())),
    };
    if !value.iter().all(|byte| (b'!'..=b'~').contains(byte)) {
        let text = format!("ERR {option} cannot contain spaces, newlines or special characters.");
        return Err(Error(text.into()));
    }
    place.clone_from(value);
    Ok(Reply::OK)
}
