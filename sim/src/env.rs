//! The environment of one step of the server: the time, the PRNG, and where actions and
//! observations go.

use std::{
    fmt, io,
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

/// Handed into every [`Server::step`](crate::server::Server::step). The driver sets the clocks
/// before the step, and empties the outbox after it.
#[derive(Debug)]
pub struct Env {
    /// The host's wall clock at this step: what keys expire by, as in Redis.
    pub wall: Wall,
    /// The host's monotonic clock at this step: what time-outs and periods run on.
    pub monotonic: Monotonic,
    /// What the server wants done, in order.
    pub outbox: Vec<Action>,
    /// What the server saw and did, for traces and for faults that match on content; empty unless
    /// `observing`.
    pub observations: Vec<Observation>,
    /// Whether observations are wanted.
    pub observing: bool,
    /// What goes into the log, in order; empty unless `logging`.
    pub log: Vec<Line>,
    /// The least level that is logged; `None` if the log is not read.
    pub logging: Option<Level>,
    /// The clocks are moved by a command of a client (DEBUG CLOCK ADVANCE), for which the driver
    /// answers [`Action::Advance`].
    pub manual_clock: bool,
    /// Reads the machine's own clock, by which scripts take turns with all other clients once they
    /// have run for `busy-reply-threshold`. It is for nodes that serve strangers, whose scripts may
    /// take as long as they like, and end by themselves. The driver of such a node answers
    /// [`Action::ResumeScript`]. Without it, as in the world, what a script does depends on no
    /// machine's speed: one that takes
    /// [`Config::script_budget`](crate::config::Config::script_budget) is endless.
    pub script_clock: Option<fn() -> Instant>,
    /// Reads the monotonic clock of the host, for nodes that live by real time: it goes on between
    /// the commands of a script or a transaction, and the wall clock with it, and commands are
    /// timed by it (SLOWLOG, LATENCY, INFO commandstats). Without it, as in the world and by a
    /// manual clock, all of a step is one moment, and commands take no time, but for DEBUG SLEEP
    /// and scripts that do not end.
    pub clock: Option<Clock>,
    /// Unknown clients may connect, so `protected-mode` is respected. In the world there are none.
    pub strangers: bool,
    /// The files that the node may read and write by name; without it there are none.
    pub files: Option<Box<dyn Files>>,
    /// The folder that the node keeps its data in; without it, the data is on a
    /// [`Disk`](crate::durability::Disk) in memory.
    pub folder: Option<Box<dyn Folder>>,
    /// Makes room for so many clients, as far as the operating system allows, and answers how many
    /// there is room for; without it there is room for any number.
    pub descriptors: Option<fn(usize) -> usize>,
    /// The TCP ports that the node may listen on elsewhere; without it they are its driver's to
    /// choose.
    pub ports: Option<Box<dyn Ports>>,
    /// Large, and not used by most of those who are handed the rest of this.
    entropy: Box<ChaCha8Rng>,
    /// Where ids come from, if not from `entropy`.
    ids: Option<Box<ChaCha8Rng>>,
}

/// What reads the monotonic clock of a host.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    read: fn() -> Instant,
    start: Instant,
    /// When it was last read for the clocks of the step.
    refreshed: Instant,
}

impl Clock {
    /// The clock that is read so, and has shown the origin of [`Monotonic`] at `start`.
    pub fn new(read: fn() -> Instant, start: Instant) -> Clock {
        Clock { read, start, refreshed: start }
    }

    fn refresh(&mut self) -> Monotonic {
        self.refreshed = (self.read)();
        Monotonic::ZERO + self.refreshed.duration_since(self.start)
    }
}

/// Where a node listens.
pub trait Ports: fmt::Debug + Send {
    /// Listens on these addresses, as `bind` has them, and no longer where it did; nowhere if
    /// `port` is 0. As many as `backlog` connections wait to be taken in. Those that stand are left
    /// alone.
    ///
    /// # Errors
    /// When it cannot listen there; it listens where it did then.
    fn listen(&self, addresses: &[&str], port: u16, backlog: u32) -> io::Result<()>;
}

/// The few files that are given to a node by name: its configuration, its list of users. Its data
/// is kept elsewhere.
pub trait Files: fmt::Debug + Send {
    /// The text of a file.
    ///
    /// # Errors
    /// When it cannot be read.
    fn read(&self, path: &str) -> io::Result<String>;

    /// Replaces the text of a file atomically.
    ///
    /// # Errors
    /// When it cannot be written; the file is as it was then.
    fn write(&self, path: &str, text: &str) -> io::Result<()>;
}

/// The folder in which a node keeps its data where it outlives the process. Names are paths within
/// it, such as `dump.rdb` and `appendonlydir/appendonly.aof.manifest`. What the node keeps there,
/// and when, is its own business; this only carries it out.
pub trait Folder: fmt::Debug + Send {
    /// What a file holds.
    ///
    /// # Errors
    /// When it is not there, or cannot be read.
    fn read(&self, name: &str) -> io::Result<Bytes>;

    /// Replaces a file atomically and durably. Its folder is made if it is missing.
    ///
    /// # Errors
    /// When it cannot be written; what was there stays then.
    fn put(&self, name: &str, bytes: &[u8]) -> io::Result<()>;

    /// Adds to the end of a file, which is made if it is missing.
    ///
    /// # Errors
    /// When not all of it can be written; then none of it is.
    fn append(&self, name: &str, bytes: &[u8]) -> io::Result<()>;

    /// Makes what was added to a file durable: now, or `soon` and without waiting for it. Answers
    /// whether it is, or will be: it is not while an earlier one is under way, however slow the
    /// disk is.
    ///
    /// # Errors
    /// When that fails. Later errors are not reported.
    fn sync(&self, name: &str, soon: bool) -> io::Result<bool>;

    /// Gives a file another name.
    ///
    /// # Errors
    /// When it is not there, or cannot be moved.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// When it is not there, or cannot be removed.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Whether a file is there.
    fn has(&self, name: &str) -> bool;
}

/// One event of a step, for an observer outside. Nothing in the server depends on it.
#[derive(Debug, Clone, PartialEq)]
pub enum Observation {
    /// A command was executed (not merely queued) for a connection; scripts' inner calls are not
    /// listed. Comes before what the command changed.
    Command {
        /// The sender.
        conn: ConnId,
        /// Name and arguments.
        args: Vec<bytes::Bytes>,
    },
    /// A key changed, was removed, or was found expired.
    Key {
        /// The database number.
        db: usize,
        /// The key.
        key: bytes::Bytes,
        /// The event's name as keyspace notifications have it (`hset`, `del`, `expired`,
        /// `evicted`).
        event: &'static str,
        /// The connection whose command did it; `None` for the server's own doing.
        by: Option<ConnId>,
    },
    /// A message was published.
    Published {
        /// The channel.
        channel: bytes::Bytes,
        /// The message.
        message: bytes::Bytes,
        /// How many clients of this node were sent it.
        receivers: usize,
    },
    /// The node's role or its master changed.
    Role {
        /// `master` or `replica`.
        role: &'static str,
    },
    /// Something has changed in the view that a node has of its cluster
    /// ([`News`](crate::cluster::News)).
    Cluster {
        /// What.
        event: &'static str,
        /// Of which node, slots or epoch.
        about: String,
    },
}

impl Env {
    /// An environment whose PRNG is seeded with `seed` and whose clocks are at their origin.
    pub fn new(seed: u64) -> Env {
        Env::with_entropy(ChaCha8Rng::seed_from_u64(seed))
    }

    /// An environment that draws from `entropy`.
    pub fn with_entropy(entropy: ChaCha8Rng) -> Env {
        Env {
            wall: Wall::default(),
            monotonic: Monotonic::default(),
            outbox: Vec::new(),
            observations: Vec::new(),
            observing: false,
            log: Vec::new(),
            logging: None,
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

    /// Draws ids from `ids` from now on, and all else as before. A replica knows the history of its
    /// master by an id, so servers that can meet must never draw the same ones, as PRNGs with the
    /// same seed do.
    pub fn set_ids(&mut self, ids: ChaCha8Rng) {
        self.ids = Some(Box::new(ids));
    }

    /// How many of so many clients there is room for.
    pub fn room_for_clients(&self, wanted: usize) -> usize {
        self.descriptors.map_or(wanted, |make_room| make_room(wanted).min(wanted))
    }

    /// Reads the clock again, where it goes on within a step. A node that sleeps after what it did
    /// so far, as DEBUG SLEEP within a transaction has it, does what comes next when it has slept.
    pub fn refresh(&mut self, sleeps_until: Option<Monotonic>) {
        let now = self.clock.as_mut().map(Clock::refresh);
        if let Some(later) = now.max(sleeps_until).filter(|later| *later > self.monotonic) {
            self.wall += later.since(self.monotonic);
            self.monotonic = later;
        }
    }

    /// Begins to time work by the clock that goes on within a step, where there is one.
    pub fn begin(&self) -> Option<Instant> {
        self.clock.map(|clock| (clock.read)())
    }

    /// Begins to time work right after [`Env::refresh`], which has read the clock.
    pub fn begin_refreshed(&self) -> Option<Instant> {
        self.clock.map(|clock| clock.refreshed)
    }

    /// How long it took: no time where there is no such clock.
    pub fn took(&self, began: Option<Instant>) -> Duration {
        let ended = self.begin();
        began.zip(ended).map_or(Duration::ZERO, |(began, ended)| ended.duration_since(began))
    }

    /// Writes a line into the log, if its level is wanted there.
    pub fn log(&mut self, level: Level, text: impl FnOnce() -> String) {
        if self.logging.is_some_and(|least| level >= least) {
            self.log.push(Line { level, text: text() });
        }
    }

    /// 64 random bits.
    pub fn random(&mut self) -> u64 {
        self.entropy.next_u64()
    }

    /// A random index below `len`, without bias.
    ///
    /// # Panics
    /// When `len` is 0: there is no such index.
    pub fn random_below(&mut self, len: usize) -> usize {
        assert!(len > 0, "a random index into nothing");
        let len = len as u64;
        // Values of the last, incomplete stretch would favour small results: draw again.
        let limit = u64::MAX - u64::MAX % len;
        loop {
            let drawn = self.random();
            if drawn < limit {
                return (drawn % len) as usize;
            }
        }
    }

    /// 40 random lower-case hex digits, the form of run ids and replication ids.
    pub fn random_id(&mut self) -> String {
        let ids = self.ids.as_mut().unwrap_or(&mut self.entropy);
        (0..5).map(|_| format!("{:08x}", ids.next_u64() as u32)).collect()
    }
}
