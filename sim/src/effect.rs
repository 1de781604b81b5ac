//! What a command did to the data, reported rather than acted on.
//!
//! A command never names replication, pub/sub, WATCH or the blocked clients: it leaves [`Effects`], and
//! `server/settle.rs` alone spends them. All effects of one EVAL or EXEC form one batch.

use bytes::Bytes;

use crate::keyspace::Db;

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
    /// `m`: a key was asked for and is not there. Only reported where it is listened to, and no change.
    Miss,
}

impl Class {
    /// The letter of `notify-keyspace-events`.
    pub fn letter(self) -> u8 {
        match self {
            Class::Generic => b'g',
            Class::String => b'$',
            Class::List => b'l',
            Class::Set => b's',
            Class::Hash => b'h',
            Class::SortedSet => b'z',
            Class::Stream => b't',
            Class::Expired => b'x',
            Class::Evicted => b'e',
            Class::New => b'n',
            Class::Miss => b'm',
        }
    }
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
    /// Databases that lost all their keys at once, with what was in them. That makes no keyspace events.
    pub flushed: Vec<(usize, Db)>,
    /// Databases that changed places.
    pub swapped: Vec<(usize, usize)>,
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
