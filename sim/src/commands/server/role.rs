//! ROLE: the role of the node: a master with its replicas, or a replica with its master.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "role",
    group: Group::Server,
    since: "2.8.12",
    summary: "The node's role in replication.",
    arity: 1,
    flags: Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE).union(Flags::FAST),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, _: &[Bytes]) -> Result<Reply, Error> {
    let replication = &ctx.node.replication;
    let offset = replication.history.offset;
    if let Some(link) = &replication.master {
        let offset = if link.is_up() { i64::try_from(offset).unwrap_or(i64::MAX) } else { -1 };
        return Ok(Reply::Array(vec![
            Reply::bulk("slave"),
            Reply::bulk(&link.host),
            Reply::Integer(link.port.into()),
            Reply::bulk(link.state()),
            Reply::Integer(offset),
        ]));
    }
    let online = replication.replicas.iter().filter(|(_, replica)| replica.is_online());
    let replicas = online.map(|(conn, replica)| {
        let address = ctx.node.replica_address(*conn);
        let words = [address, replica.port.to_string(), replica.acked.to_string()];
        Reply::Array(words.iter().map(Reply::bulk).collect())
    });
    let replicas = replicas.collect();
    Ok(Reply::Array(vec![
        Reply::bulk("master"),
        Reply::Integer(i64::try_from(offset).unwrap_or(i64::MAX)),
        Reply::Array(replicas),
    ]))
}
