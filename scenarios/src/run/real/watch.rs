//! What a real node does to the lock's key, told from outside: MONITOR says who has done something that may concern the key, and
//! the key is read at once.
//!
//! The times are the server's own, of the command that was monitored, to the microsecond. What the key was is known from the
//! read that follows, about one round trip later: of two changes within that time only the second is seen. That a key has
//! expired or was evicted is known when it is read, which is a millisecond after its time, and every 50 ms.

use std::{cell::Cell, rc::Rc, time::Duration};

use lockstorm_sim::{
    time::{True, Wall},
    world::HostCtx,
};
use redis::{AsyncConnectionConfig, Cmd, RedisConnectionInfo, Value, aio::MultiplexedConnection};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use crate::{
    history::{Event, Host, Owner, Party, Role, What},
    recorder::LOCK,
    run::{
        Stage,
        held::{Cause, Content, Names, State, changes},
        witness::Keys,
    },
};

/// How often the key is read though nothing was seen.
const EVERY: Duration = Duration::from_millis(50);

/// Reads everything about the lock in one step: who holds it, until when, who waits, the last token.
const READ: &str = "
local kind = redis.call('TYPE', KEYS[1]).ok
local content = {}
if kind == 'hash' then content = redis.call('HGETALL', KEYS[1]) end
if kind == 'string' then content = {redis.call('GET', KEYS[1])} end
local queue = {}
if redis.call('TYPE', KEYS[2]).ok == 'list' then queue = redis.call('LRANGE', KEYS[2], 0, -1) end
local token = ''
if redis.call('TYPE', KEYS[3]).ok == 'string' then token = redis.call('GET', KEYS[3]) end
return {kind, content, redis.call('PEXPIRETIME', KEYS[1]), queue, token}";

/// Whether the node on this host answers.
pub(super) async fn answers(ctx: &HostCtx) -> bool {
    let Some(mut connection) = connect(ctx).await else { return false };
    let pong: Result<String, _> = redis::cmd("PING").query_async(&mut connection).await;
    pong.is_ok()
}

async fn connect(ctx: &HostCtx) -> Option<MultiplexedConnection> {
    let stream = ctx.dial(ctx.name(), 6379).await.ok()?;
    let config = AsyncConnectionConfig::new().set_response_timeout(None).set_connection_timeout(None);
    let made = MultiplexedConnection::new_with_config(&RedisConnectionInfo::default(), stream, config).await;
    let (connection, driver) = made.ok()?;
    ctx.spawn(driver);
    Some(connection)
}

/// What one read of the lock's keys brought.
struct Reading {
    content: Content,
    expires_ms: Option<i64>,
    queue: Vec<String>,
    token: Option<u64>,
}

/// A line of MONITOR.
#[derive(Debug, PartialEq, Eq)]
struct Line<'a> {
    at: Wall,
    /// The port at the client's end; a script's own commands have none.
    port: Option<u16>,
    /// Name and arguments, as MONITOR writes them.
    command: &'a str,
}

/// Takes a line of MONITOR apart: `+1700000000.123456 [0 127.0.0.1:50000] "SET" "a" "b"`.
fn line(text: &str) -> Option<Line<'_>> {
    let (at, rest) = text.strip_prefix('+')?.split_once(" [")?;
    let (client, command) = rest.split_once("] ")?;
    let (secs, micros) = at.split_once('.')?;
    let micros = secs.parse::<i64>().ok()?.checked_mul(1_000_000)?.checked_add(micros.parse().ok()?)?;
    let port = client.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
    Some(Line { at: Wall::from_nanos(micros.checked_mul(1_000)?), port, command })
}

/// Watches the node on this host until it is gone.
pub(super) async fn watch(ctx: HostCtx, stage: Rc<Stage>, master: &Cell<bool>) {
    let Some(mut connection) = connect(&ctx).await else { return };
    let Ok(stream) = ctx.dial(ctx.name(), 6379).await else { return };
    let (reading, mut writing) = tokio::io::split(stream);
    if writing.write_all(b"MONITOR\r\n").await.is_err() {
        return;
    }
    let mut lines = BufReader::new(reading).lines();
    let (keys, host) = (stage.keys(), stage.host(ctx.name()));
    let mut watcher = Watcher { ctx, stage, host, state: State::default(), queue: Vec::new(), known: false };
    // Commands are told with their arguments quoted, and a name that needs no escapes stands in them as it is.
    let name = String::from_utf8_lossy(&keys.lock).into_owned();
    loop {
        let expiry = watcher.until_expiry().unwrap_or(EVERY).min(EVERY);
        let (mut at, mut by, mut event) = (None, None, String::new());
        tokio::select! {
            biased;
            told = lines.next_line() => {
                let Ok(Some(told)) = told else { return };
                let Some(line) = line(&told) else { continue };
                // What a script does is done by who called it, and seen with the call.
                let Some(client) = line.port.and_then(|port| watcher.ctx.dialed_from(port)) else { continue };
                let command = line.command.trim_start_matches('"').split('"').next().unwrap_or_default();
                let flushes = matches!(command.to_ascii_uppercase().as_str(), "FLUSHALL" | "FLUSHDB");
                let own = *client == *watcher.ctx.name();
                if !flushes && (own || !line.command.contains(&name)) {
                    continue;
                }
                by = watcher.stage.hosts.get(&*client).filter(|_| !own).copied();
                event = if flushes { "flushed".to_owned() } else { command.to_owned() };
                at = Some(line.at);
            }
            () = watcher.ctx.wire_delay(expiry) => {}
        }
        let Some(now) = read(&mut connection, &keys).await else { continue };
        if let Some(role) = role(&mut connection).await
            && master.replace(role == Role::Master) != (role == Role::Master)
        {
            watcher.tell(watcher.ctx.moment().0, What::Became { role });
        }
        watcher.compare(now, at, by, &event, master.get());
    }
}

async fn read(connection: &mut MultiplexedConnection, keys: &Keys) -> Option<Reading> {
    type Raw = (String, Vec<String>, i64, Vec<String>, String);
    let mut command: Cmd = redis::cmd("EVAL_RO");
    command.arg(READ).arg(3).arg(&keys.lock[..]).arg(&keys.queue[..]).arg(&keys.token[..]);
    let raw: Raw = command.query_async(connection).await.ok()?;
    let (kind, words, expires_ms, queue, token) = raw;
    let content = match &*kind {
        "hash" => {
            Content::Fields(words.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect())
        }
        "string" => words.into_iter().next().map_or(Content::Nothing, Content::Text),
        _ => Content::Nothing,
    };
    let expires_ms = (expires_ms >= 0).then_some(expires_ms);
    Some(Reading { content, expires_ms, queue, token: token.parse().ok() })
}

async fn role(connection: &mut MultiplexedConnection) -> Option<Role> {
    let answer: Vec<Value> = redis::cmd("ROLE").query_async(connection).await.ok()?;
    match answer.first()? {
        Value::BulkString(word) if word == b"master" => Some(Role::Master),
        _ => Some(Role::Replica),
    }
}

/// Compares what the node has with what it had.
struct Watcher {
    ctx: HostCtx,
    stage: Rc<Stage>,
    host: Host,
    state: State,
    queue: Vec<String>,
    /// The key was read before: what is there at the first look was there from the start.
    known: bool,
}

impl Watcher {
    /// How long until the key expires, by the wall clock, and a millisecond more: from then on a read finds it gone.
    fn until_expiry(&self) -> Option<Duration> {
        let left = self.state.expires_ms? + 1 - self.ctx.wall().as_millis();
        Some(Duration::from_millis(u64::try_from(left.max(1)).unwrap_or(1)))
    }

    fn compare(&mut self, now: Reading, at: Option<Wall>, by: Option<Host>, event: &str, master: bool) {
        let (here, reading) = self.ctx.moment();
        let at = at.map_or(here, |at| here - reading.wall.since(at));
        let wall_ms = reading.wall.as_millis();
        let Reading { content, expires_ms, queue, token } = now;
        let (kind, name) = {
            let recorder = self.stage.shared.get();
            (recorder.history.lock(LOCK).kind, by.and_then(|client| recorder.name_of(client)))
        };
        let now = State::new(kind, content, expires_ms, token, &self.state, name.as_deref());
        let before = std::mem::replace(&mut self.state, now);
        let queued = std::mem::replace(&mut self.queue, queue);
        // What a replica repeats was granted by its master.
        if !std::mem::replace(&mut self.known, true) || !master {
            return;
        }
        let event = match by {
            _ if event == "flushed" => event,
            _ if before.expires_ms.is_some_and(|at| at < wall_ms) => "expired",
            None => "evicted",
            Some(_) => event,
        };
        let by = by.map(|client| Party { client, owner: None });
        let cause = Cause { event, by, node: self.host, wall_ms };
        changes(&before, &self.state, &cause, self).into_iter().for_each(|what| self.tell(at, what));
        if queued != self.queue {
            let waiters = self.queue.iter().map(|name| self.owner(name, None)).collect();
            self.tell(at, What::Queue { lock: LOCK, waiters });
        }
    }

    /// Adds to the history what happened some time ago; it is put in order when the run is over.
    fn tell(&self, at: True, what: What) {
        self.stage.shared.get().history.events.push(Event { at, host: self.host, what });
    }
}

impl Names for Watcher {
    fn owner(&self, name: &str, writer: Option<Party>) -> Owner {
        let mut recorder = self.stage.shared.get();
        // A name that is known says more than who was seen writing: another may have written between that and the read.
        match recorder.history.find_owner(name) {
            Some(owner) => owner,
            None => recorder.owner_named(name, writer.map(|writer| writer.client), self.host),
        }
    }

    fn client_of(&self, owner: Owner) -> Host {
        self.stage.shared.get().history.client_of(owner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_monitor_says_when_who_and_what() {
        let at = Wall::from_nanos(1_700_000_000_123_456_000);
        let rows = [
            ("+OK", None),
            (
                r#"+1700000000.123456 [0 127.0.0.1:50000] "SET" "a" "x] y""#,
                Some(Line { at, port: Some(50_000), command: r#""SET" "a" "x] y""# }),
            ),
            (
                r#"+1700000000.123456 [0 lua] "get" "a""#,
                Some(Line { at, port: None, command: r#""get" "a""# }),
            ),
            ("+1700000000 [0 127.0.0.1:1] \"PING\"", None),
            ("+9223372036854775807.000001 [0 127.0.0.1:1] \"PING\"", None),
        ];
        for (text, expected) in rows {
            assert_eq!(line(text), expected, "{text}");
        }
    }
}
