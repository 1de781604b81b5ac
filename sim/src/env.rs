//! The environment of one step of the server: the time, the PRNG, and the destinations of actions
//! and observations.

use std::{
    fmt, io,
    sync::mpsc::Sender,
    time::{Duration, Instant},
};

use bytes::Bytes;
use rand_chacha::{
    ChaCha8Rng,
    rand_core::{Rng, SeedableRng},
};

use crate::{
    event::{Action, ConnId},
    log::{Level, Line},
    time::{Monotonic, Wall},
};

/// The environment of a [`Server::step`](crate::server::Server::step). The driver sets the clocks
/// before the step, and empties the outbox after it.
#[derive(Debug)]
pub struct Env {
    /// The host's wall clock at this step. Keys expire by it, as in Redis.
    pub wall: Wall,
    /// The host's monotonic clock at this step. Timeouts and periods run by it.
    pub monotonic: Monotonic,
    /// The actions that the server requests, in order.
    pub outbox: Vec<Action>,
    /// The events that the server reports for traces and for faults that match on content; empty
    /// unless `observing`.
    pub observations: Vec<Observation>,
    /// Set if observations are recorded.
    pub observing: bool,
    /// The log lines, in order; empty unless `logging`.
    pub log: Vec<Line>,
    /// The least level that is logged; `None` if the log is not read.
    pub logging: Option<Level>,
    /// Takes each line that MONITOR would show, without a connection that asks for it; `None` if
    /// nothing reads them. Nothing in the server depends on it.
    pub monitor: Option<Sender<String>>,
    /// Set if a command of a client moves the clocks (DEBUG CLOCK ADVANCE); the driver then carries
    /// out [`Action::Advance`].
    pub manual_clock: bool,
    /// Reads the machine's own clock, by which scripts take turns with other clients once they have
    /// run for `busy-reply-threshold`. It is for nodes that serve strangers, whose scripts may take
    /// any time and end by themselves. The driver of such a node carries out
    /// [`Action::ResumeScript`]. Without it, as in the world, scripts do not depend on the speed of
    /// a machine: a script that uses up
    /// [`ScriptOptions::budget`](crate::config::ScriptOptions::budget) counts as endless.
    pub script_clock: Option<fn() -> Instant>,
    /// Reads the monotonic clock of the host, for nodes in real time. Time then passes between the
    /// commands of a script or a transaction, also on the wall clock, and commands are timed
    /// (SLOWLOG, LATENCY, INFO commandstats). Without it, as in the world and with a manual clock,
    /// a step happens in one instant, and commands take no time except for DEBUG SLEEP and endless
    /// scripts.
    pub clock: Option<Clock>,
    /// Set if unknown clients may connect, so that `protected-mode` applies. In the world there are
    /// none.
    pub strangers: bool,
    /// The files that the node may read and write by name, if any.
    pub files: Option<Box<dyn Files>>,
    /// The folder in which the node keeps its data; without it, the data is on a
    /// [`Disk`](crate::durability::Disk) in memory.
    pub folder: Option<Box<dyn Folder>>,
    /// Makes room for a number of clients, as far as the operating system allows, and returns the
    /// number there is room for. Without it there is room for any number.
    pub descriptors: Option<fn(usize) -> usize>,
    /// The TCP ports on which the node may listen when its configuration changes; without it only
    /// its driver chooses them.
    pub ports: Option<Box<dyn Ports>>,
    /// Boxed because it is large, and most users of an `Env` do not need it.
    entropy: Box<ChaCha8Rng>,
    /// The source of ids, if it is not `entropy`.
    ids: Option<Box<ChaCha8Rng>>,
}

/// A reader of the monotonic clock of a host.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    read: fn() -> Instant,
    start: Instant,
    /// The last reading for the clocks of the step.
    refreshed: Instant,
}

impl Clock {
    /// Returns the clock that `read` reads, which showed the origin of [`Monotonic`] at `start`.
    pub fn new(read: fn() -> Instant, start: Instant) -> Clock {
        Clock { read, start, refreshed: start }
    }

    fn refresh(&mut self) -> Monotonic {
        self.refreshed = (self.read)();
        Monotonic::ZERO + self.refreshed.duration_since(self.start)
    }
}

/// The ports on which a node listens.
pub trait Ports: fmt::Debug + Send {
    /// Listens on these addresses, in the form of `bind`, instead of the previous ones; nowhere if
    /// `port` is 0. Up to `backlog` connections wait to be accepted. Existing connections are kept.
    ///
    /// # Errors
    /// If it cannot listen there; it continues to listen on the previous addresses.
    fn listen(&self, addresses: &[&str], port: u16, backlog: u32) -> io::Result<()>;
}

/// The few files that a node uses by name: its configuration, its list of users. Its data is kept
/// elsewhere.
pub trait Files: fmt::Debug + Send {
    /// Returns the text of a file.
    ///
    /// # Errors
    /// If it cannot be read.
    fn read(&self, path: &str) -> io::Result<String>;

    /// Replaces the text of a file atomically.
    ///
    /// # Errors
    /// If it cannot be written; the file is unchanged then.
    fn write(&self, path: &str, text: &str) -> io::Result<()>;
}

/// The folder in which a node keeps its data so that it outlives the process. Names are paths
/// within it, such as `dump.rdb` and `appendonlydir/appendonly.aof.manifest`. The node decides
/// which files to write and when.
pub trait Folder: fmt::Debug + Send {
    /// Returns the contents of a file.
    ///
    /// # Errors
    /// If it does not exist, or cannot be read.
    fn read(&self, name: &str) -> io::Result<Bytes>;

    /// Replaces a file atomically and durably. Its folder is created if it is missing.
    ///
    /// # Errors
    /// If it cannot be written; the old contents are kept then.
    fn put(&self, name: &str, bytes: &[u8]) -> io::Result<()>;

    /// Adds to the end of a file, which is created if it is missing.
    ///
    /// # Errors
    /// If not all of it can be written; then none of it is.
    fn append(&self, name: &str, bytes: &[u8]) -> io::Result<()>;

    /// Makes appended bytes of a file durable: before it returns, or in the background if `soon`.
    /// Returns true if they are or will be durable, and false while an earlier background sync is
    /// still running, however slow the disk is.
    ///
    /// # Errors
    /// If the sync fails. Later errors in the background are not reported.
    fn sync(&self, name: &str, soon: bool) -> io::Result<bool>;

    /// Gives a file another name.
    ///
    /// # Errors
    /// If it does not exist, or cannot be moved.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// If it does not exist, or cannot be removed.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Returns true if a file exists.
    fn has(&self, name: &str) -> bool;
}

/// One event of a step, for an observer outside. Nothing in the server depends on it.
#[derive(Debug, Clone, PartialEq)]
pub enum Observation {
    /// A command was executed (not merely queued) for a connection. The inner calls of scripts are
    /// not listed. It precedes the changes of the command.
    Command {
        /// The connection that sent it.
        conn: ConnId,
        /// Name and arguments.
        args: Vec<bytes::Bytes>,
    },
    /// A key changed, was removed, or was found expired.
    Key {
        /// The database number.
        db: usize,
        /// The key that changed.
        key: bytes::Bytes,
        /// The event's name in keyspace notifications (`hset`, `del`, `expired`, `evicted`).
        event: &'static str,
        /// The connection whose command caused it; `None` if the server itself did.
        by: Option<ConnId>,
    },
    /// A message was published.
    Published {
        /// The channel of PUBLISH or SPUBLISH.
        channel: bytes::Bytes,
        /// The payload.
        message: bytes::Bytes,
        /// The number of clients of this node that were sent it.
        receivers: usize,
    },
    /// The node's role or its master changed.
    Role {
        /// `master` or `replica`.
        role: &'static str,
    },
    /// A node's view of its cluster changed ([`News`](crate::cluster::News)).
    Cluster {
        /// The name of the change, such as `fail` or `elected`.
        event: &'static str,
        /// The node, slots or epoch concerned.
        about: String,
    },
}

impl Env {
    /// Returns an environment whose PRNG is seeded with `seed` and whose clocks are at their
    /// origin.
    pub fn new(seed: u64) -> Env {
        Env::with_entropy(ChaCha8Rng::seed_from_u64(seed))
    }

    /// Returns an environment that draws from `entropy`.
    pub fn with_entropy(entropy: ChaCha8Rng) -> Env {
        Env {
            wall: Wall::default(),
            monotonic: Monotonic::default(),
            outbox: Vec::new(),
            observations: Vec::new(),
            observing: false,
            log: Vec::new(),
            logging: None,
            monitor: None,
            manual_clock: false,
            script_clock: None,
            clock: None,
            strangers: false,
            files: None,
            folder: None,
            descriptors: None,
            ports: None,
            entropy: Box::new(entropy),
            ids: None,
        }
    }

    /// Draws ids from `ids` from now on, and all else as before. A replica recognizes the history
    /// of its master by an id. So servers that can meet must never draw the same ids, as PRNGs with
    /// the same seed would.
    pub fn set_ids(&mut self, ids: ChaCha8Rng) {
        self.ids = Some(Box::new(ids));
    }

    /// Returns the number of clients there is room for, at most `wanted`.
    pub fn room_for_clients(&self, wanted: usize) -> usize {
        self.descriptors.map_or(wanted, |make_room| make_room(wanted).min(wanted))
    }

    /// Reads the clock again, if it continues within a step. A node that sleeps after its work so
    /// far, as for DEBUG SLEEP in a transaction, continues at `sleeps_until` or later.
    pub fn refresh(&mut self, sleeps_until: Option<Monotonic>) {
        let now = self.clock.as_mut().map(Clock::refresh);
        if let Some(later) = now.max(sleeps_until).filter(|later| *later > self.monotonic) {
            self.wall += later.since(self.monotonic);
            self.monotonic = later;
        }
    }

    /// Begins to time work, if a clock continues within a step.
    pub fn begin(&self) -> Option<Instant> {
        self.clock.map(|clock| (clock.read)())
    }

    /// Begins to time work right after [`Env::refresh`], which has read the clock.
    pub fn begin_refreshed(&self) -> Option<Instant> {
        self.clock.map(|clock| clock.refreshed)
    }

    /// Returns the duration since `began`: zero without such a clock.
    pub fn took(&self, began: Option<Instant>) -> Duration {
        let ended = self.begin();
        began.zip(ended).map_or(Duration::ZERO, |(began, ended)| ended.duration_since(began))
    }

    /// Writes a line to the log, if its level is logged.
    pub fn log(&mut self, level: Level, text: impl FnOnce() -> String) {
        if self.logging.is_some_and(|least| level >= least) {
            self.log.push(Line { level, text: text() });
        }
    }

    /// Returns 64 random bits.
    pub fn random(&mut self) -> u64 {
        self.entropy.next_u64()
    }

    /// Returns a random index below `len`, without bias.
    ///
    /// # Panics
    /// If `len` is 0: there is no such index.
    pub fn random_below(&mut self, len: usize) -> usize {
        assert!(len > 0, "a random index into nothing");
        let len = len as u64;
        // Values of the last, incomplete range would favour small results: draw again.
        let limit = u64::MAX - u64::MAX % len;
        loop {
            let drawn = self.random();
            if drawn < limit {
                return (drawn % len) as usize;
            }
        }
    }

    /// Returns 40 random lower-case hex digits, the form of run ids and replication ids.
    pub fn random_id(&mut self) -> String {
        let ids = self.ids.as_mut().unwrap_or(&mut self.entropy);
        (0..5).map(|_| format!("{:08x}", ids.next_u64() as u32)).collect()
    }
}
