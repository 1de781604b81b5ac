//! SENTINEL GET-MASTER-ADDR-BY-NAME name: replies with the address of a master.

use bytes::Bytes;

use super::{sentinel, text};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "sentinel|get-master-addr-by-name",
    group: Group::Sentinel,
    since: "2.8.4",
    summary: "Tells where a master is.",
    arity: 3,
    flags: Flags::ADMIN,
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let name = text(&args[2]);
    let Some(address) = sentinel(ctx).address_of(&name) else { return Ok(Reply::NullArray) };
    Ok(Reply::Array(vec![Reply::bulk(&address.ip), Reply::bulk(address.port.to_string())]))
}
