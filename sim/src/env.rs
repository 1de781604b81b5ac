//! The world as one step of the server sees it: the time, the dice, and where actions and observations go.

use rand_chacha::{
    ChaCha8Rng,
    rand_core::{Rng, SeedableRng},
};

use crate::{
    event::{Action, ConnId},
    time::{Monotonic, Wall},
};

/// Handed into every [`Server::step`](crate::server::Server::step). The driver sets the clocks before the step, and
/// empties the outbox after it.
#[derive(Debug)]
pub struct Env {
    /// The host's wall clock at this step: what keys expire by, as in Redis.
    pub wall: Wall,
    /// The host's monotonic clock at this step: what time-outs and periods run on.
    pub monotonic: Monotonic,
    /// What the server wants done, in order.
    pub outbox: Vec<Action>,
    /// What the server saw and did, for traces and for faults that match on content; empty unless `observing`.
    pub observations: Vec<Observation>,
    /// Whether observations are wanted.
    pub observing: bool,
    entropy: ChaCha8Rng,
}

/// One thing a server saw or did in a step, for whoever watches from outside. Nothing in the server depends on it.
#[derive(Debug, Clone, PartialEq)]
pub enum Observation {
    /// A command was executed (not merely queued) for a connection; scripts' inner calls are not listed.
    Command {
        /// Who sent it.
        conn: ConnId,
        /// Name and arguments.
        args: Vec<bytes::Bytes>,
        /// What it answered.
        reply: crate::resp::Reply,
    },
    /// A key changed, was removed, or was found expired.
    Key {
        /// The database number.
        db: usize,
        /// The key.
        key: bytes::Bytes,
        /// The event's name as keyspace notifications have it (`hset`, `del`, `expired`, `evicted`).
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
}

impl Env {
    /// An environment whose dice are seeded with `seed` and whose clocks stand at their origin.
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
            entropy,
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
        (0..5).map(|_| format!("{:08x}", self.random() as u32)).collect()
    }
}
