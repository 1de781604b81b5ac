//! Derives the effects of a real node's commands on the lock's keys from outside. MONITOR shows
//! each command with its connection, in the server's order and with its time in microseconds. A
//! shadow copy replays the commands and so has the keys after each one.
//!
//! The watcher reads the keys after each command that may concern them, and at least every 50 ms.
//! The reads show changes that the server makes itself: an expired key is detected 1 ms after its
//! expiry time.

use std::{cell::Cell, ops::Range, pin::pin, rc::Rc, time::Duration};

use bytes::Bytes;
use lockstorm_world::{
    HostCtx, TcpStream,
    time::{True, Wall},
};
use redis::{AsyncConnectionConfig, Cmd, RedisConnectionInfo, RedisResult, aio::MultiplexedConnection};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines, ReadHalf};

use super::{
    RealServer,
    mirror::{From, Line, Mirror, Step},
    reads::Reads,
};
use crate::{
    judge::{
        history::{Event, EventKind, GainCause, Host, Lock, Owner, Party, Role},
        object::{self, Content, Keys, Value},
    },
    run::recorder::Sender,
    run::{
        Stage,
        held::{Cause, Names, Watched},
        operator::BACK_DOOR,
    },
};

/// The longest interval between two reads of the keys.
const EVERY: Duration = Duration::from_millis(50);

/// A server may drop a key this many milliseconds before the copy's expiry time. The copy takes a
/// grant's time from MONITOR, and the server computed the expiry slightly earlier.
const EARLY_MS: i64 = 10;

/// Returns true if the node on this host answers PING.
pub(super) async fn answers(ctx: &HostCtx, reads: Reads) -> bool {
    let Some(mut reader) = connect(ctx, reads).await else { return false };
    let pong: Result<String, _> = redis::cmd("PING").query_async(&mut reader.connection).await;
    pong.is_ok()
}

async fn connect(ctx: &HostCtx, reads: Reads) -> Option<Reader> {
    let stream = ctx.dial(ctx.name(), BACK_DOOR).await.ok()?;
    let port = stream.local_addr().ok()?.port();
    let config = AsyncConnectionConfig::new().set_response_timeout(None).set_connection_timeout(None);
    let made = MultiplexedConnection::new_with_config(&RedisConnectionInfo::default(), stream, config).await;
    let (connection, driver) = made.ok()?;
    ctx.spawn(driver);
    Some(Reader { connection, port, reads })
}

/// A watcher's connections to a node.
type Connections = (Reader, Lines<BufReader<ReadHalf<TcpStream>>>);

async fn connections(ctx: &HostCtx, reads: Reads) -> Option<Connections> {
    let reader = connect(ctx, reads).await?;
    let stream = ctx.dial(ctx.name(), BACK_DOOR).await.ok()?;
    let (reading, mut writing) = tokio::io::split(stream);
    writing.write_all(b"MONITOR\r\n").await.ok()?;
    let mut monitor = BufReader::new(reading).lines();
    // From this reply on, MONITOR shows the commands of all connections.
    monitor.next_line().await.ok()??;
    Some((reader, monitor))
}

/// Escapes bytes as MONITOR does between quotes.
fn escaped(bytes: &[u8]) -> String {
    let escaped = bytes.iter().map(|byte| match byte {
        b'\\' | b'"' => format!("\\{}", char::from(*byte)),
        b'\n' => "\\n".to_owned(),
        b'\r' => "\\r".to_owned(),
        b'\t' => "\\t".to_owned(),
        0x07 => "\\a".to_owned(),
        0x08 => "\\b".to_owned(),
        b' '..=b'~' => char::from(*byte).to_string(),
        other => format!("\\x{other:02x}"),
    });
    escaped.collect()
}

/// The connection that reads the keys.
struct Reader {
    connection: MultiplexedConnection,
    /// The local port, by which MONITOR identifies the connection.
    port: u16,
    reads: Reads,
}

/// Reads the keys in one step of the server, and its count of evicted keys.
async fn read(
    connection: &mut MultiplexedConnection,
    reads: Reads,
    keys: &[(Bytes, String)],
) -> RedisResult<(Vec<Value>, u64)> {
    let mut command: Cmd = redis::cmd(reads.command);
    command.arg(reads.script()).arg(keys.len());
    keys.iter().for_each(|(key, _)| {
        command.arg(&key[..]);
    });
    keys.iter().for_each(|(_, tag)| {
        command.arg(tag);
    });
    type Answered = (String, Vec<Vec<u8>>, i64, Vec<(String, u32, i64)>, i64);
    let (evicted, raw): (u64, Vec<Answered>) = command.query_async(connection).await?;
    let values = raw.into_iter().map(|(kind, words, expires_ms, leases, field_expires_ms)| {
        Value::answered(&kind, words, expires_ms, leases, field_expires_ms)
    });
    Ok((values.collect(), evicted))
}

async fn role(connection: &mut MultiplexedConnection) -> Option<Role> {
    let answer: Vec<redis::Value> = redis::cmd("ROLE").query_async(connection).await.ok()?;
    match answer.first()? {
        redis::Value::BulkString(word) if word == b"master" => Some(Role::Master),
        _ => Some(Role::Replica),
    }
}

/// The state of the keys at one moment.
#[derive(Debug, Default)]
struct Reading {
    values: Vec<Value>,
    at: Wall,
    /// The number of keys that the server had evicted.
    evicted: u64,
}

/// The cause of a change of the keys.
enum Change<'a> {
    /// A command, of a client of the scenario or of another program.
    Command { name: &'a str, by: Option<&'a Sender> },
    /// No command that MONITOR shows.
    Nothing {
        explained: &'a [bool],
        /// The expected expiry time of each key.
        expires_ms: &'a [Option<i64>],
        has_evicted: bool,
    },
}

/// The outcome of reading the keys.
enum Answer {
    /// The keys and the time of the read.
    Kept(Reading),
    /// The server refused: it runs a script, or loads its data.
    NotNow,
    /// The connection is closed.
    Gone,
}

/// Watches the node on one host until it is gone.
pub(super) struct Watcher {
    ctx: HostCtx,
    stage: Rc<Stage>,
    host: Host,
    /// The keys of all locks, lock by lock, each with the prefix of its lease keys.
    keys: Vec<(Bytes, String)>,
    /// The locks' names, escaped as in MONITOR.
    names: Vec<String>,
    reader: Reader,
    monitor: Lines<BufReader<ReadHalf<TcpStream>>>,
    /// A command of a connection outside of the scenario has the sender `None`.
    mirror: Mirror<Option<Sender>>,
    locks: Vec<Watched>,
    /// The number of evicted keys at the last read.
    evicted: u64,
}

impl Watcher {
    /// Begins to watch the node on this host. With the locks as they were `before`, the present
    /// keys came from the node's disk; without, they existed from the start. Returns `None` if the
    /// node is gone already, or cannot be watched.
    pub(super) async fn begin(
        ctx: HostCtx,
        stage: Rc<Stage>,
        reads: Reads,
        before: Option<Vec<Watched>>,
    ) -> Option<Watcher> {
        let (reader, monitor) = connections(&ctx, reads).await?;
        let (locks, host) = (before.unwrap_or_else(|| stage.locks()), stage.host(ctx.name()));
        let of_lock = |watched: &Watched| {
            let Keys { list, leases, .. } = watched.keys.clone();
            list.into_iter().map(move |key| {
                (key.name, if key.role == object::Role::Holders { leases.clone() } else { String::new() })
            })
        };
        let keys: Vec<(Bytes, String)> = locks.iter().flat_map(of_lock).collect();
        let names = stage.plan.judged().map(|lock| escaped(lock.key.as_bytes())).collect();
        let mirror =
            Mirror::new(reads.generation, locks.iter().map(|watched| watched.keys.clone()).collect());
        let mut watcher =
            Watcher { ctx, stage, host, keys, names, reader, monitor, mirror, locks, evicted: 0 };
        let Reading { values: read, at, evicted } = loop {
            match watcher.read().await {
                Answer::Kept(reading) => break reading,
                Answer::NotNow => watcher.ctx.wire_delay(EVERY).await,
                Answer::Gone => return None,
            }
        };
        watcher.evicted = evicted;
        watcher.mirror.check(&read, at);
        watcher.each_lock(&read, |watcher, watched, values, _| {
            let lost = watched.restarted(values, at, watcher);
            lost.into_iter().for_each(|lost| watcher.tell(watcher.ctx.moment().0, lost));
            let came_back = {
                let history = &watcher.stage.shared.get().history;
                // The master has granted all that a replica has.
                let is_master = history.was_master(watched.lock, watcher.host, history.events.len());
                let came_back = || watched.came_back(history, watcher.host, at, GainCause::Restart);
                is_master.then(came_back).unwrap_or_default()
            };
            came_back.into_iter().for_each(|what| watcher.tell(watcher.ctx.moment().0, what));
            if let Some(queue) = watched.queue(values, watcher) {
                watcher.tell(watcher.ctx.moment().0, queue);
            }
        });
        Some(watcher)
    }

    /// Records that the node is a replica from the beginning.
    pub(super) fn follows(&self) {
        let of_role =
            |event: &Event| event.host == self.host && matches!(event.kind, EventKind::Became { .. });
        // Skip this if a role was recorded: the node may have been promoted in an earlier life.
        if !self.stage.shared.get().history.events.iter().any(of_role) {
            self.tell(True::ZERO, EventKind::Became { role: Role::Replica });
        }
    }

    /// Watches until the node is gone, and records its last actions; the task outlives the node's
    /// host. Only the commands that a killed server had not yet sent to MONITOR stay unknown.
    pub(super) async fn watch(mut self, server: Rc<RealServer>, seen_until: Rc<Cell<Option<True>>>) {
        loop {
            let gone = self.wait().await;
            let answer = if gone { Answer::Gone } else { self.read().await };
            match answer {
                Answer::NotNow => {}
                Answer::Kept(reading) => {
                    let at = reading.at;
                    if let Some(role) = role(&mut self.reader.connection).await
                        && server.master.replace(role == Role::Master) != (role == Role::Master)
                    {
                        let now = self.ctx.moment().0;
                        self.tell(now, EventKind::Became { role });
                        if role == Role::Master {
                            self.promoted(now, &reading);
                        }
                    }
                    self.judge(reading, server.master.get());
                    seen_until.set(Some(self.true_time(at)));
                }
                Answer::Gone => {
                    self.mirror.end();
                    let steps = self.mirror.take();
                    self.judge_steps(steps, server.master.get());
                    // A client may have killed this connection while the server runs on. A server
                    // that is gone changes nothing more.
                    let Some((reader, monitor)) = self.connect_again(&server, &seen_until).await else {
                        seen_until.set(None);
                        server.last_seen.replace(Some(self.locks));
                        return;
                    };
                    (self.reader, self.monitor) = (reader, monitor);
                }
            }
        }
    }

    /// Waits until the keys should be read. Returns true if MONITOR has ended.
    async fn wait(&mut self) -> bool {
        let expiry = self.until_expiry().unwrap_or(EVERY).min(EVERY);
        let mut alarm = pin!(self.ctx.wire_delay(expiry));
        loop {
            tokio::select! {
                biased;
                told = self.monitor.next_line() => {
                    let Ok(Some(told)) = told else { return true };
                    if self.take_in(&told) {
                        return false;
                    }
                }
                () = &mut alarm => return false,
            }
        }
    }

    /// Opens new connections to the node. Returns `None` if it has crashed or ended.
    async fn connect_again(
        &self,
        server: &RealServer,
        seen_until: &Rc<Cell<Option<True>>>,
    ) -> Option<Connections> {
        while server.is_life_of(seen_until) {
            if let Some(made) = connections(&self.ctx, self.reader.reads).await {
                // The answer may come from the node's next life.
                return server.is_life_of(seen_until).then_some(made);
            }
            self.ctx.wire_delay(EVERY).await;
        }
        None
    }

    /// Processes a line of MONITOR. Returns true if its command may have changed the keys.
    fn take_in(&mut self, told: &str) -> bool {
        let Some(line) = Line::parse(told).filter(|line| line.db == 0) else { return false };
        if line.from == From::Script {
            self.mirror.go_on(&line);
            return false;
        }
        self.mirror.end();
        let by = match line.from {
            From::Port(port) if port == self.reader.port => return false,
            From::Port(port) => self.ctx.dialed_from(port).map(|host| (host, port)),
            _ => None,
        };
        let concerns = matches!(&*line.name(), "FLUSHALL" | "FLUSHDB")
            || self.names.iter().any(|name| line.command.contains(name));
        if concerns {
            let client = by.and_then(|(host, port)| Some((*self.stage.hosts.get(&*host)?, port)));
            if let Some((client, _)) = client {
                let mut recorder = self.stage.shared.get();
                recorder.history.count(self.host, client, &line.name());
            }
            let words = line.words();
            let words = words.iter().map(String::as_str);
            let sender =
                client.map(|(client, port)| self.stage.shared.get().sender(client, Some(port), words));
            self.mirror.begin(&line, sender);
        }
        concerns
    }

    /// Reads the keys, and processes the lines of MONITOR up to the read itself, which gives its
    /// time.
    async fn read(&mut self) -> Answer {
        let (mut connection, keys) = (self.reader.connection.clone(), self.keys.clone());
        let mut reading = pin!(read(&mut connection, self.reader.reads, &keys));
        let (mut read, mut at) = (None, None);
        loop {
            if let (Some((values, evicted)), Some(at)) = (&mut read, at) {
                return Answer::Kept(Reading { values: std::mem::take(values), at, evicted: *evicted });
            }
            tokio::select! {
                biased;
                answer = &mut reading, if read.is_none() => match answer {
                    Ok(kept) => read = Some(kept),
                    Err(error) if error.is_io_error() || error.is_unrecoverable_error() => return Answer::Gone,
                    Err(_) => return Answer::NotNow,
                },
                told = self.monitor.next_line(), if at.is_none() => {
                    let Ok(Some(told)) = told else { return Answer::Gone };
                    let own = From::Port(self.reader.port);
                    match Line::parse(&told).filter(|line| line.from == own && line.name() == self.reader.reads.command) {
                        Some(line) => at = Some(line.at),
                        None => {
                            self.take_in(&told);
                        }
                    }
                }
            }
        }
    }

    /// Returns the time until 1 ms after the first expiry of a hold, by the wall clock. From then
    /// on a read finds the key expired.
    fn until_expiry(&self) -> Option<Duration> {
        let expires_ms = self.locks.iter().filter_map(|watched| watched.state.first_expiry_ms()).min();
        let left = expires_ms? + 1 - self.ctx.wall().as_millis();
        Some(Duration::from_millis(u64::try_from(left.max(1)).unwrap_or(1)))
    }

    /// Records the events that led to a reading.
    fn judge(&mut self, reading: Reading, master: bool) {
        let Reading { values, at, evicted } = reading;
        let expires_ms: Vec<Option<i64>> = self.mirror.done().iter().map(|value| value.expires_ms).collect();
        let (steps, explained) = self.mirror.check(&values, at);
        self.judge_steps(steps, master);
        let has_evicted = std::mem::replace(&mut self.evicted, evicted) != evicted;
        let (explained, expires_ms) = (&explained[..], &expires_ms[..]);
        self.compare(&values, at, &Change::Nothing { explained, expires_ms, has_evicted }, master);
    }

    fn judge_steps(&mut self, steps: Vec<Step<Option<Sender>>>, master: bool) {
        for Step { at, by, command, after } in steps {
            self.compare(&after, at, &Change::Command { name: &command, by: by.as_ref() }, master);
        }
    }

    /// Compares the node's keys with their previous state, and records the difference.
    fn compare(&mut self, now: &[Value], at: Wall, change: &Change<'_>, master: bool) {
        let wall_ms = at.as_millis();
        let true_time = self.true_time(at);
        self.each_lock(now, |watcher, watched, values, keys| {
            let queued = watched.queue(values, watcher);
            // The master granted what a replica repeats.
            if !master {
                return watched.adopt(values, at, watcher);
            }
            let over = |early_ms| watched.state.first_expiry_ms().is_some_and(|at| at < wall_ms + early_ms);
            let (event, by) = match *change {
                Change::Command { name: "FLUSHALL" | "FLUSHDB", by } => ("flushed", by),
                Change::Command { name, by } => {
                    let dropped = over(0) && !watched.object.leases_are_apart();
                    (if dropped { "expired" } else { name }, by)
                }
                Change::Nothing { explained, expires_ms, has_evicted } => {
                    let holders =
                        || watched.keys.holders().map(|at| (&values[at], explained[keys.start + at]));
                    // Only a reading has a key's exact expiry time.
                    if holders().all(|(_, explained)| explained) {
                        return watched.adopt(values, at, watcher);
                    }
                    // The only change that a server makes itself is to drop a key.
                    let gone = holders().all(|(value, _)| value.content == Content::Nothing)
                        || watched.object.leases_are_apart();
                    // The key may expire before the leases in it, if a client with a wrong clock
                    // wrote them.
                    let expired = watched.keys.holders().any(|at| {
                        let ends = expires_ms[keys.start + at];
                        values[at].content == Content::Nothing
                            && ends.is_some_and(|at| at < wall_ms + EARLY_MS)
                    });
                    let event = match gone {
                        true if expired || over(EARLY_MS) => "expired",
                        true if has_evicted => "evicted",
                        _ => {
                            return watcher.lost_sight(watched.lock, "no command that did it was seen");
                        }
                    };
                    (event, None)
                }
            };
            let cause = Cause { event, by, node: watcher.host, wall_ms };
            let changes = watched.change(values, &cause, watcher);
            if let Change::Command { name, by: None } = change
                && event == *name
                && !changes.is_empty()
            {
                let why = format!("{name} came over a connection that is not of the scenario");
                return watcher.lost_sight(watched.lock, &why);
            }
            changes.into_iter().chain(queued).for_each(|what| watcher.tell(true_time, what));
        });
    }

    /// Fails the run: a lock was changed, and the cause is unknown.
    fn lost_sight(&self, lock: Lock, why: &str) {
        let (history, node) = (&self.stage.shared.get().history, self.ctx.name());
        let why = format!("`{}` was changed on {node}, and {why}", history.lock(lock).name);
        self.stage.fail(&self.ctx, why);
    }

    /// Handles the promotion of the node from replica to master.
    fn promoted(&mut self, now: True, reading: &Reading) {
        // A client may have written already. The read has its writes, which the node had not as a
        // replica.
        let before = self.mirror.begin_as_master(Option::is_some);
        self.each_lock(before.as_ref().unwrap_or(&reading.values), |watcher, watched, values, _| {
            watched.adopt(values, reading.at, watcher);
            let (host, how) = (watcher.host, GainCause::Failover);
            let told = watched.promoted(&watcher.stage.shared.get().history, host, reading.at, how);
            told.into_iter().for_each(|what| watcher.tell(now, what));
        });
    }

    /// Calls `happens` for each lock, with the values of its keys and their range among all keys.
    fn each_lock(
        &mut self,
        read: &[Value],
        happens: impl Fn(&Watcher, &mut Watched, &[Value], Range<usize>),
    ) {
        let (mut locks, mut from) = (std::mem::take(&mut self.locks), 0);
        for watched in &mut locks {
            let keys = from..(from + watched.keys.list.len()).min(read.len());
            from = keys.end;
            happens(self, watched, &read[keys.clone()], keys);
        }
        self.locks = locks;
    }

    /// Converts the server's wall time to true time. The server's clock is this machine's.
    fn true_time(&self, wall: Wall) -> True {
        let (here, reading) = self.ctx.moment();
        here - reading.wall.since(wall)
    }

    /// Adds an event that happened some time ago. The events are sorted when the run is over.
    fn tell(&self, at: True, what: EventKind) {
        self.stage.shared.get().history.events.push(Event { at, host: self.host, kind: what });
    }
}

impl Names for Watcher {
    fn owner(&self, lock: Lock, name: &str, writer: Option<Host>) -> Owner {
        self.stage.shared.get().owner_granted(lock, name, writer, self.host)
    }

    fn party(&self, lock: Lock, sender: &Sender, hold: (&str, Owner)) -> Party {
        self.stage.shared.get().party(lock, sender, hold)
    }

    fn is_own(&self, owner: Owner, by: Party) -> bool {
        self.stage.shared.get().history.is_own(owner, by)
    }

    fn name_of(&self, client: Host) -> Option<Box<str>> {
        self.stage.shared.get().name_of(client)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_looked_for_as_monitor_writes_it() {
        let rows: [(&[u8], &str); 4] = [
            (b"lock:{a b}", "lock:{a b}"),
            (b"a\"b\\c", "a\\\"b\\\\c"),
            ("\u{437}".as_bytes(), "\\xd0\\xb7"),
            (b"\n\r\t\x07\x08\x00\x7f", "\\n\\r\\t\\a\\b\\x00\\x7f"),
        ];
        for (name, expected) in rows {
            assert_eq!(escaped(name), expected);
        }
    }
}
