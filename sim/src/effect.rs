//! What a command did to the data, reported rather than acted on.
//!
//! A command never names replication, pub/sub, WATCH or the blocked clients: it leaves [`Effects`], and
//! `server/settle.rs` alone spends them. All effects of one EVAL or EXEC form one batch.

use bytes::Bytes;

/// The class of a keyspace event, one letter of `notify-keyspace-events`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// `g`: commands that work on any type.
    Generic,
    /// `$`
    String,
    /// `l`
    List,
    /// `s`
    Set,
    /// `h`
    Hash,
    /// `z`
    SortedSet,
    /// `t`
    Stream,
    /// `x`: a key was found expired.
    Expired,
    /// `e`: a key was evicted for memory.
    Evicted,
    /// `n`: a key was created.
    New,
}

/// A key that changed, with the event's name as keyspace notifications have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Touch {
    /// The database number.
    pub db: usize,
    /// The key.
    pub key: Bytes,
    /// The class of the event.
    pub class: Class,
    /// The event, such as `hset`.
    pub event: &'static str,
}

/// A message for the subscribers of a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publication {
    /// The channel.
    pub channel: Bytes,
    /// The message.
    pub message: Bytes,
    /// Whether it was SPUBLISH, which only shard subscribers of the channel hear.
    pub sharded: bool,
}

/// One command for the replication stream and the append-only file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Propagated {
    /// The database it works on.
    pub db: usize,
    /// Name and arguments.
    pub args: Vec<Bytes>,
}

/// Everything that a batch of commands did. Empty for reads.
#[derive(Debug, Default)]
pub struct Effects {
    /// Keys that changed, in order.
    pub touched: Vec<Touch>,
    /// What replicas and the append-only file are to repeat, in order.
    pub propagated: Vec<Propagated>,
    /// Messages, in order.
    pub published: Vec<Publication>,
    /// How many changes there were since the last save, in Redis's count.
    pub dirty: u64,
}

impl Effects {
    /// Whether nothing was done.
    pub fn is_empty(&self) -> bool {
        self.touched.is_empty() && self.propagated.is_empty() && self.published.is_empty() && self.dirty == 0
    }

    /// Adds what another batch did after this one.
    pub fn append(&mut self, after: Effects) {
        self.touched.extend(after.touched);
        self.propagated.extend(after.propagated);
        self.published.extend(after.published);
        self.dirty += after.dirty;
    }
}
