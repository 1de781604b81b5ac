//! HELLO [version [AUTH user password] [SETNAME name]]: chooses the protocol, and describes the
//! server.

use bytes::Bytes;

use super::{auth::authenticate, clients::check_name};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec, integer, printable, server::modules},
    resp::{Protocol, Reply},
};

pub(super) const SPEC: Spec = Spec {
    name: "hello",
    group: Group::Connection,
    since: "6.0.0",
    summary: "Chooses the protocol version, authenticates, names the connection.",
    arity: -1,
    flags: Flags::NOSCRIPT
        .union(Flags::LOADING)
        .union(Flags::STALE)
        .union(Flags::FAST)
        .union(Flags::NO_AUTH)
        .union(Flags::ALLOW_BUSY),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let protocol = args.get(1).map(|version| version_of(version)).transpose()?;
    let mut words = args.get(2..).unwrap_or_default();
    while let [option, rest @ ..] = words {
        words = match (&option.to_ascii_lowercase()[..], rest) {
            (b"auth", [user, password, rest @ ..]) => {
                authenticate(ctx, &args[0], user, password)?;
                rest
            }
            (b"setname", [name, rest @ ..]) => {
                check_name(name)?;
                ctx.session().name = name.clone();
                rest
            }
            _ => {
                let option = printable(option, usize::MAX);
                return Err(Error(format!("ERR Syntax error in HELLO option '{option}'").into()));
            }
        };
    }
    if !ctx.session().authenticated {
        let version = if ctx.node.config.generation.is_before_7_2() { "" } else { "<proto> " };
        return Err(Error(
            format!(
                "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO {version}AUTH \
                 <user> <pass> option can be used to authenticate the client and select the RESP protocol version at \
                 the same time"
            )
            .into(),
        ));
    }
    let session = ctx.session();
    session.protocol = protocol.unwrap_or(session.protocol);
    let protocol = if session.protocol == Protocol::Resp3 { 3 } else { 2 };
    let is_sentinel = ctx.node.sentinel.is_some();
    let mode = ctx.node.mode();
    let role = if ctx.node.is_replica() { "replica" } else { "master" };
    let id = i64::try_from(ctx.conn.0).unwrap_or(i64::MAX);
    let config = &ctx.node.config;
    let generation = config.generation;
    let (server, version) = match config.server.extended_redis_compatibility {
        true => ("redis", generation.redis_version()),
        false => (generation.server(), generation.version()),
    };
    let mut told = vec![
        (Reply::bulk("server"), Reply::bulk(server)),
        (Reply::bulk("version"), Reply::bulk(version)),
        (Reply::bulk("proto"), Reply::Integer(protocol)),
        (Reply::bulk("id"), Reply::Integer(id)),
        (Reply::bulk("mode"), Reply::bulk(mode)),
        (Reply::bulk("role"), Reply::bulk(role)),
        (Reply::bulk("modules"), modules(generation)),
    ];
    if let Some(zone) = config.others.get("availability-zone").filter(|zone| !zone.is_empty()) {
        told.push((Reply::bulk("availability_zone"), Reply::bulk(zone)));
    }
    if is_sentinel {
        told.retain(|(name, _)| *name != Reply::bulk("role"));
    }
    Ok(Reply::Map(told))
}

fn version_of(text: &[u8]) -> Result<Protocol, Error> {
    match integer(text) {
        Ok(2) => Ok(Protocol::Resp2),
        Ok(3) => Ok(Protocol::Resp3),
        Ok(_) => Err(Error::of("NOPROTO unsupported protocol version")),
        Err(_) => Err(Error::of("ERR Protocol version is not an integer or out of range")),
    }
}
