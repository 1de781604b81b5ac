//! SENTINEL MONITOR name ip port quorum: begins to watch a master.

use bytes::Bytes;

use super::{now, sentinel, text};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec, integer},
    resp::Reply,
    sentinel::Address,
};

pub(super) const SPEC: Spec = Spec {
    name: "sentinel|monitor",
    group: Group::Sentinel,
    since: "2.8.4",
    summary: "Begins to watch a master.",
    arity: 6,
    flags: Flags::ADMIN,
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let quorum = integer(&args[5]).map_err(|_| Error::of("ERR Invalid quorum"))?;
    let port = integer(&args[4]).map_err(|_| Error::of("ERR Invalid port"))?;
    if quorum <= 0 {
        return Err(Error::of("ERR Quorum must be 1 or greater."));
    }
    let port = u16::try_from(port).ok().filter(|port| *port > 0);
    let port = port.ok_or(Error::of("ERR Invalid port number."))?;
    let (name, address) = (text(&args[2]), Address::new(text(&args[3]), port));
    let (quorum, now) = (u32::try_from(quorum).unwrap_or(u32::MAX), now(ctx));
    let watched = sentinel(ctx).watch(&name, address, quorum, now);
    watched.map(|()| Reply::OK).map_err(|why| Error(format!("ERR {why}").into()))
}
