//! The two servers that transcripts are played on, behind one trait.

use std::{
    collections::BTreeMap,
    io::{ErrorKind, Read, Write},
    net::TcpStream,
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use lockstorm_lab::support::{programs::program_of, redis::RedisServer};
use lockstorm_sim::{
    config::{Config, options},
    env::Env,
    event::{Action, ConnId, DiskFault, Event},
    generation::Generation,
    server::Server,
};
use lockstorm_world::time::{Monotonic, Wall};

use crate::wire::Wire;

/// The generation of the `redis-server` on the PATH, with which everything is compared that names
/// no other one.
pub(crate) const REFERENCE: Generation = Generation::Redis70;

/// A reply or event on a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Received {
    Reply(Wire),
    Nothing,
    Closed,
}

/// Removes one complete item from the front of the received bytes; `None` while it is incomplete.
pub(crate) type Take = fn(&mut BytesMut) -> Option<Wire>;

/// A server to play a transcript on. The first use of a name opens a connection.
pub(crate) trait Play {
    fn send(&mut self, name: &str, bytes: &[u8]);
    /// Waits up to `patience` for the next item that `take` removes from the received bytes.
    fn receive_as(&mut self, name: &str, patience: Duration, take: Take) -> Received;
    /// Waits up to `patience` for the next reply.
    fn receive(&mut self, name: &str, patience: Duration) -> Received {
        self.receive_as(name, patience, Wire::take)
    }
    /// Makes a connection a replica with the old command SYNC, and reads the snapshot; the stream
    /// follows.
    #[allow(dead_code, reason = "only transcripts have replicas")]
    fn follow(&mut self, name: &str, patience: Duration) -> Received {
        self.send(name, b"SYNC\r\n");
        self.receive_as(name, patience, Wire::take_snapshot)
    }
    fn sleep(&mut self, time: Duration);
    fn close(&mut self, name: &str);
    /// Leaves no room for a snapshot on the server's disk, or makes room again.
    fn fill_disk(&mut self, full: bool);
    /// The time to listen before concluding that nothing comes.
    fn silence(&self) -> Duration;
}

/// The simulator's initial wall clock, in milliseconds since the Unix epoch.
pub(crate) const START_MS: i64 = 1_700_000_000_000;

/// The simulator, in process, with a clock that only moves when the transcript waits.
pub(crate) struct Simulated {
    server: Server,
    env: Env,
    alarm: Option<Monotonic>,
    names: BTreeMap<String, ConnId>,
    lines: BTreeMap<ConnId, Line>,
    accepted: u64,
}

#[derive(Default)]
struct Line {
    buffer: BytesMut,
    closed: bool,
}

impl Simulated {
    pub(crate) fn start() -> Simulated {
        Simulated::start_at(START_MS)
    }

    /// Starts a simulator with this wall clock.
    pub(crate) fn start_at(wall_ms: i64) -> Simulated {
        Simulated::start_with(wall_ms, &[])
    }

    /// Starts a simulator with this wall clock and these options.
    pub(crate) fn start_with(wall_ms: i64, more: &[(String, String)]) -> Simulated {
        Simulated::start_as(REFERENCE, wall_ms, more)
    }

    /// Starts a simulator that imitates a generation of servers.
    pub(crate) fn start_as(generation: Generation, wall_ms: i64, more: &[(String, String)]) -> Simulated {
        let mut env = Env::new(7);
        env.wall = Wall::from_millis(wall_ms);
        env.monotonic = Monotonic::from_secs(1_000);
        let mut config = Config::of(generation).with(|config| config.persistence.save = Vec::new());
        for (name, value) in more {
            options::set_at_start(&mut config, name, value).expect("an option of a transcript");
        }
        let server = Server::new(config, &mut env);
        let (names, lines) = (BTreeMap::new(), BTreeMap::new());
        let mut simulated = Simulated { server, env, alarm: None, names, lines, accepted: 0 };
        simulated.carry_out();
        simulated
    }

    fn step(&mut self, event: Event) {
        self.server.step(&mut self.env, event);
        self.carry_out();
    }

    fn carry_out(&mut self) {
        for action in std::mem::take(&mut self.env.outbox) {
            match action {
                Action::Send { conn, bytes } => {
                    self.lines.entry(conn).or_default().buffer.extend_from_slice(&bytes);
                }
                Action::Close { conn } | Action::Drain { conn } | Action::Kill { conn, .. } => {
                    self.lines.entry(conn).or_default().closed = true
                }
                Action::Alarm { at } => self.alarm = Some(at),
                // A transcript has no other servers.
                Action::Dial { conn, .. } => self.step(Event::Closed { conn }),
                // Only the transcript moves this clock.
                Action::Advance { .. } | Action::Stall { .. } => {}
                Action::ResumeScript => unreachable!("scripts go by no clock here"),
                Action::Exit => self.lines.values_mut().for_each(|line| line.closed = true),
            }
        }
    }

    fn conn(&mut self, name: &str) -> ConnId {
        if let Some(conn) = self.names.get(name) {
            return *conn;
        }
        self.accepted += 1;
        let conn = ConnId(self.accepted);
        self.names.insert(name.into(), conn);
        self.lines.insert(conn, Line::default());
        let peer = format!("127.0.0.1:{}", 50_000 + self.accepted);
        self.step(Event::Connected { conn, peer, local: "127.0.0.1:6379".into() });
        conn
    }

    /// Opens a connection whose CLIENT ID is `id`.
    #[allow(dead_code, reason = "only what compares numbers gives them")]
    pub(crate) fn open(&mut self, name: &str, id: u64) {
        self.accepted = id.saturating_sub(1);
        self.conn(name);
    }

    fn advance_to(&mut self, at: Monotonic) {
        let by = at.since(self.env.monotonic);
        self.env.monotonic += by;
        self.env.wall += by;
    }

    /// Lets time pass until the next alarm; returns false if there is none up to `end`.
    fn next_alarm(&mut self, end: Monotonic) -> bool {
        let Some(at) = self.alarm.filter(|at| *at <= end) else { return false };
        self.alarm = None;
        self.advance_to(at);
        self.step(Event::Alarm);
        true
    }
}

impl Play for Simulated {
    fn send(&mut self, name: &str, bytes: &[u8]) {
        let conn = self.conn(name);
        if !self.lines[&conn].closed {
            self.step(Event::Bytes { conn, bytes: Bytes::copy_from_slice(bytes) });
        }
    }

    fn receive_as(&mut self, name: &str, patience: Duration, take: Take) -> Received {
        let conn = self.conn(name);
        let end = self.env.monotonic + patience;
        loop {
            let line = self.lines.get_mut(&conn).expect("every connection has its line");
            if let Some(reply) = take(&mut line.buffer) {
                return Received::Reply(reply);
            }
            if line.closed {
                return Received::Closed;
            }
            if !self.next_alarm(end) {
                return Received::Nothing;
            }
        }
    }

    fn sleep(&mut self, time: Duration) {
        let end = self.env.monotonic + time;
        while self.next_alarm(end) {}
        self.advance_to(end);
    }

    fn close(&mut self, name: &str) {
        if let Some(conn) = self.names.remove(name) {
            self.lines.remove(&conn);
            self.step(Event::Closed { conn });
        }
    }

    fn fill_disk(&mut self, full: bool) {
        self.step(Event::Disk { fault: full.then_some(DiskFault::Full) });
    }

    fn silence(&self) -> Duration {
        // All effects of a step exist when it returns.
        Duration::ZERO
    }
}

/// Returns options as words of the command line.
fn words(options: &[(String, String)]) -> Vec<String> {
    options.iter().flat_map(|(name, value)| [format!("--{name}"), value.clone()]).collect()
}

pub(crate) struct Real {
    server: RedisServer,
    streams: BTreeMap<String, (TcpStream, BytesMut)>,
}

impl Real {
    pub(crate) fn start() -> Real {
        Real::start_with(&[])
    }

    /// Starts the server of a generation with these options; `None` if it is not installed.
    pub(crate) fn start_as(generation: Generation, more: &[(String, String)]) -> Option<Real> {
        if generation == REFERENCE {
            return Some(Real::start_with(more));
        }
        let program = program_of(generation.name())?;
        let mut words = words(more);
        let is_given = more.iter().any(|(name, _)| name == "enable-debug-command");
        if generation != Generation::Redis62 && !is_given {
            // Redis 6.2 always has DEBUG, and does not know the option.
            words.extend(["--enable-debug-command".to_owned(), "yes".to_owned()]);
        }
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        Some(Real::of(RedisServer::start_program(&program, &words)))
    }

    /// Starts a server with these options.
    pub(crate) fn start_with(more: &[(String, String)]) -> Real {
        Real::of(RedisServer::start(&words(more).iter().map(String::as_str).collect::<Vec<_>>()))
    }

    pub(crate) fn of(server: RedisServer) -> Real {
        Real { server, streams: BTreeMap::new() }
    }

    fn stream(&mut self, name: &str) -> &mut (TcpStream, BytesMut) {
        self.streams.entry(name.into()).or_insert_with(|| {
            let stream = self.server.connect().expect("redis-server accepts connections");
            (stream, BytesMut::new())
        })
    }
}

impl Play for Real {
    fn send(&mut self, name: &str, bytes: &[u8]) {
        // Waiting for the reply reveals that the server has closed the connection.
        let _ = self.stream(name).0.write_all(bytes);
    }

    fn receive_as(&mut self, name: &str, patience: Duration, take: Take) -> Received {
        let (stream, buffer) = self.stream(name);
        if let Some(reply) = take(buffer) {
            return Received::Reply(reply);
        }
        // A timeout of zero would mean none.
        let patience = patience.max(Duration::from_micros(1));
        stream.set_read_timeout(Some(patience)).expect("a time-out can be set");
        let mut chunk = [0u8; 16 << 10];
        loop {
            match stream.read(&mut chunk) {
                Ok(0) => return Received::Closed,
                Ok(len) => {
                    buffer.extend_from_slice(&chunk[..len]);
                    if let Some(reply) = take(buffer) {
                        return Received::Reply(reply);
                    }
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    return Received::Nothing;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Received::Closed,
            }
        }
    }

    fn sleep(&mut self, time: Duration) {
        #[expect(clippy::disallowed_methods, reason = "a real server is waited for in real time")]
        std::thread::sleep(time);
    }

    fn close(&mut self, name: &str) {
        self.streams.remove(name);
    }

    fn fill_disk(&mut self, full: bool) {
        self.server.block_snapshots(full);
    }

    fn silence(&self) -> Duration {
        // Long enough for a reply over loopback, even on a busy machine. This misses a later reply,
        // but the simulator, which plays the same transcript, reveals it.
        Duration::from_millis(25)
    }
}
