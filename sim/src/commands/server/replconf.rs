//! REPLCONF option value ...: messages between replicas and their master outside of the stream.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec, integer, printable},
    replication::{Feed, ReplicaLink},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "replconf",
    group: Group::Server,
    since: "3.0.0",
    summary: "Describes a replica to its master; used among nodes.",
    arity: -1,
    flags: Flags::ADMIN
        .union(Flags::NOSCRIPT)
        .union(Flags::LOADING)
        .union(Flags::STALE)
        .union(Flags::ALLOW_BUSY),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let (pairs, []) = args[1..].as_chunks::<2>() else { return Err(Error::SYNTAX) };
    for (at, [option, value]) in pairs.iter().enumerate() {
        match &option.to_ascii_lowercase()[..] {
            b"listening-port" => replica(ctx).port = integer(value)? as u16,
            b"ip-address" => {
                if value.len() >= 256 {
                    let text = "ERR REPLCONF ip-address provided by replica instance is too long: ";
                    return Err(Error(format!("{text}{} bytes", value.len()).into()));
                }
                replica(ctx).ip = String::from_utf8_lossy(value).into_owned();
            }
            b"capa" if value.eq_ignore_ascii_case(b"eof") => replica(ctx).eof = true,
            b"capa" if value.eq_ignore_ascii_case(b"psync2") => replica(ctx).psync2 = true,
            b"capa" => {}
            b"version" if ctx.node.config.generation.is_valkey() => {
                let Some(major) = major_version(value) else {
                    let value = printable(value, usize::MAX);
                    return Err(Error(format!("ERR Unrecognized version format: {value}").into()));
                };
                replica(ctx).version = Some(major);
            }
            // An acknowledgement gets no reply, because the replica would not read it.
            b"ack" => return Ok(acknowledged(ctx, value, pairs.get(at + 1))),
            b"getack" => return Ok(Reply::Silence),
            b"rdb-only" => {
                let wanted = integer(value)?;
                if !(0..=1).contains(&wanted) {
                    return Err(Error::of("ERR value is out of range, value must between 0 and 1"));
                }
                replica(ctx).snapshot_only = wanted == 1;
            }
            b"rdb-filter-only" => {
                let mut libraries_only = false;
                if value.iter().filter(|byte| **byte == b'"').count() % 2 == 1 {
                    return Err(Error::of("ERR Missing rdb-filter-only values"));
                }
                // Without a word, the filter excludes nothing.
                for word in value.split(|byte| byte.is_ascii_whitespace()).filter(|word| !word.is_empty()) {
                    if !word.eq_ignore_ascii_case(b"functions") {
                        let word = printable(word, usize::MAX);
                        return Err(Error(format!("ERR Unsupported rdb-filter-only option: {word}").into()));
                    }
                    libraries_only = true;
                }
                replica(ctx).libraries_only = libraries_only;
            }
            _ => {
                let option = printable(option, usize::MAX);
                return Err(Error(format!("ERR Unrecognized REPLCONF option: {option}").into()));
            }
        }
    }
    Ok(Reply::OK)
}

fn replica<'c>(ctx: &'c mut Ctx<'_>) -> &'c mut ReplicaLink {
    let now_secs = ctx.env.wall.as_secs();
    ctx.node.replication.replicas.entry(ctx.conn).or_insert_with(|| ReplicaLink::introduced(now_secs))
}

/// Returns the first of the three numbers of a version, each at most 255. As on Valkey, a missing
/// one but the first counts as zero.
fn major_version(text: &[u8]) -> Option<u8> {
    let mut numbers = std::str::from_utf8(text).ok()?.split('.');
    let major: u8 = numbers.next()?.parse().ok()?;
    for _ in 0..2 {
        let number = numbers.next()?;
        if !number.is_empty() {
            number.parse::<u8>().ok()?;
        }
    }
    numbers.next().is_none().then_some(major)
}

/// Notes the offset that a replica acknowledges, and the offset up to which its append-only file is
/// synced, if that follows.
fn acknowledged(ctx: &mut Ctx<'_>, offset: &[u8], next: Option<&[Bytes; 2]>) -> Reply {
    let (conn, now_secs) = (ctx.conn, ctx.env.wall.as_secs());
    let replication = &mut ctx.node.replication;
    let Some(replica) = replication.replicas.get_mut(&conn) else { return Reply::Silence };
    let number = |text: &[u8]| integer(text).ok().and_then(|offset| u64::try_from(offset).ok());
    let synced = next.filter(|[option, _]| option.eq_ignore_ascii_case(b"fack"));
    let synced = synced.and_then(|[_, offset]| number(&offset[..])).unwrap_or(0);
    let offset = number(offset);
    let Some(offset) = offset.filter(|_| replica.feed != Feed::Introduced) else { return Reply::Silence };
    replica.acked = replica.acked.max(offset);
    replica.synced = replica.synced.max(synced);
    replica.acked_at = now_secs;
    // The first acknowledgement after the snapshot: the replica has loaded it, so send it the
    // writes since then.
    if let Feed::Loading { offset } = replica.feed {
        replica.feed = Feed::Online;
        let pending = replication.backlog.as_ref().and_then(|backlog| backlog.since(offset + 1));
        replication.keep_for_replicas();
        let pending = pending.expect("the backlog holds what a replica waits for");
        ctx.node.clients.send_raw(conn, &pending);
    }
    Reply::Silence
}
