//! MIGRATE host port key db timeout [COPY] [REPLACE] [AUTH password | AUTH2 user password] [KEYS
//! key ...]: moves keys to another node.
//!
//! Like a server, the node does nothing else until the target replies or the timeout ends; the rest
//! of a transaction waits as well. Unlike in Redis, the command cannot wait inside a script,
//! because Lua cannot be suspended inside a call: there it replies as if the target had refused the
//! connection.

use std::time::Duration;

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Origin, Spec, integer},
    durability::rdb,
    event::Action,
    node::{
        clients::BlockedOn,
        migration::{Migration, Request},
    },
    replication::encode,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "migrate",
    group: Group::Generic,
    since: "2.6.0",
    summary: "Moves keys to another node.",
    arity: -6,
    flags: Flags::WRITE.union(Flags::MOVABLEKEYS),
    keys: Keys::Found(keys),
    subcommands: &[],
    run,
};

/// Default timeout of a step, in milliseconds.
const TIMEOUT_MS: u64 = 1000;

#[derive(Debug, Default)]
struct Options<'a> {
    copy: bool,
    replace: bool,
    /// The arguments of the AUTH sent to the target, without the command's name.
    auth: Vec<&'a Bytes>,
    keys: Vec<&'a Bytes>,
}

impl<'a> Options<'a> {
    fn parse(args: &'a [Bytes]) -> Result<Options<'a>, Error> {
        let mut parsed = Options { keys: vec![&args[3]], ..Options::default() };
        let mut words = args[6..].iter();
        while let Some(word) = words.next() {
            let left = words.len();
            match word.to_ascii_lowercase().as_slice() {
                b"copy" => parsed.copy = true,
                b"replace" => parsed.replace = true,
                b"auth" if left >= 1 => parsed.auth = words.by_ref().take(1).collect(),
                b"auth2" if left >= 2 => parsed.auth = words.by_ref().take(2).collect(),
                b"keys" => {
                    if !args[3].is_empty() {
                        return Err(Error::of(
                            "ERR When using MIGRATE KEYS option, the key argument must be set to the empty string",
                        ));
                    }
                    parsed.keys = words.by_ref().collect();
                }
                _ => return Err(Error::SYNTAX),
            }
        }
        Ok(parsed)
    }
}

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let options = Options::parse(args)?;
    let timeout_ms = u64::try_from(integer(&args[5])?).ok().filter(|ms| *ms > 0).unwrap_or(TIMEOUT_MS);
    let db = integer(&args[4])?.to_string();
    let port = integer(&args[2]).ok().and_then(|port| u16::try_from(port).ok());
    let mut request = Request { db, ..Request::default() };
    if !options.auth.is_empty() {
        let words = options.auth.iter().map(|word| &word[..]);
        encode(&[&b"AUTH"[..]].into_iter().chain(words).collect::<Vec<_>>(), &mut request.auth);
    }
    let mut sent = Vec::new();
    for key in options.keys {
        let now_ms = ctx.wall_ms();
        let Some(ttl_ms) =
            ctx.lookup_read(key).map(|entry| entry.expires_ms().map(|when| (when - now_ms).max(1)))
        else {
            continue;
        };
        let Some(entry) = ctx.node.dbs[ctx.db].get(key) else { continue };
        let payload = rdb::dump(&entry.value, &ctx.node.config);
        let ttl = ttl_ms.unwrap_or(0).to_string();
        let restore = if ctx.node.cluster.is_some() { &b"RESTORE-ASKING"[..] } else { b"RESTORE" };
        let mut words = vec![restore, key, ttl.as_bytes(), &payload];
        words.extend(options.replace.then_some(&b"REPLACE"[..]));
        encode(&words, &mut request.restores);
        sent.push(key.clone());
    }
    if sent.is_empty() {
        return Ok(Reply::Status("NOKEY".into()));
    }
    let unreachable = Error::of("IOERR error or timeout writing to target instance");
    let port = port.filter(|_| matches!(ctx.origin, Origin::Client | Origin::Exec)).ok_or(unreachable)?;
    let timeout = Duration::from_millis(timeout_ms);
    let target = (String::from_utf8_lossy(&args[1]).into_owned(), port);
    let kept = ctx.node.targets.take(&target);
    let conn = kept.as_ref().map_or_else(|| ctx.node.next_dialed(), |(conn, _)| *conn);
    let mut migration = Migration::new(target.clone(), conn, ctx.conn, ctx.db, timeout, ctx.env.monotonic);
    migration.copy = options.copy;
    migration.request = request;
    migration.sent = sent.into();
    match kept {
        Some((conn, selected)) => {
            migration.reused = true;
            let bytes = migration.connected(selected.as_deref(), ctx.env.monotonic);
            ctx.env.outbox.push(Action::Send { conn, bytes });
        }
        None => ctx.env.outbox.push(Action::Dial { conn, host: target.0, port, from: None }),
    }
    ctx.node.migration = Some(migration);
    ctx.block(args, Vec::new(), None, BlockedOn::Migration);
    // The end of the migration propagates the removal of the keys.
    ctx.propagate_as(Vec::new());
    Ok(Reply::Silence)
}

/// Returns the index of the single key, or the indices of those after KEYS.
fn keys(args: &[Bytes]) -> Vec<usize> {
    let listed = args.iter().enumerate().skip(6).find(|(_, word)| word.eq_ignore_ascii_case(b"keys"));
    match listed {
        Some((at, _)) if args[3].is_empty() => (at + 1..args.len()).collect(),
        _ => vec![3],
    }
}
