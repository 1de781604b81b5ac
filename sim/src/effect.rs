//! The effects of commands on the data, which are reported rather than acted on.
//!
//! A command never names replication, pub/sub, WATCH or the blocked clients: it reports
//! [`Effects`], and only `server/settle.rs` carries them out. All effects of one EVAL or EXEC form
//! one batch.

use std::collections::BTreeSet;

use bytes::Bytes;

use crate::{config::Notify, keyspace::Db, resp::Reply};

/// The class of a keyspace event, one letter of `notify-keyspace-events`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// `g`: commands that work on any type.
    Generic,
    /// `$`: commands on strings, such as SET.
    String,
    /// `l`: commands on lists, such as LPUSH.
    List,
    /// `s`: commands on sets, such as SADD.
    Set,
    /// `h`: commands on hashes, such as HSET.
    Hash,
    /// `z`: commands on sorted sets, such as ZADD.
    SortedSet,
    /// `t`: entries were removed.
    Stream,
    /// `t`: entries were added, which clients wait for.
    StreamEntry,
    /// `t`: the groups or counters of a stream changed, which WATCH does not notice.
    StreamGroup,
    /// `t`: a consumer group was destroyed, which unblocks its clients.
    StreamGroupGone,
    /// `g`: an expiry was set.
    Expiry,
    /// `x`: a key was found expired.
    Expired,
    /// `e`: a key was evicted for memory.
    Evicted,
    /// `n`: a key was created.
    New,
    /// `m`: a lookup found no key. Only reported if someone listens; it is no change.
    Miss,
    /// No letter: the change is signalled to trackers and watchers separately from the event, or
    /// there is no event.
    Unannounced,
}

impl Class {
    /// Returns the letter of `notify-keyspace-events`.
    pub fn letter(self) -> u8 {
        match self {
            Class::Generic | Class::Expiry => b'g',
            Class::String => b'$',
            Class::List => b'l',
            Class::Set => b's',
            Class::Hash => b'h',
            Class::SortedSet => b'z',
            Class::Stream | Class::StreamEntry | Class::StreamGroup | Class::StreamGroupGone => b't',
            Class::Expired => b'x',
            Class::Evicted => b'e',
            Class::New => b'n',
            Class::Miss => b'm',
            Class::Unannounced => 0,
        }
    }

    /// Returns the time at which a change of this class is signalled, unless the command decides
    /// otherwise.
    fn signal(self) -> Signal {
        match self {
            // The event `new` comes in addition to that of the change.
            Class::StreamGroup | Class::StreamGroupGone | Class::New | Class::Miss => Signal::Apart,
            Class::Expired => Signal::Last,
            _ => Signal::First,
        }
    }
}

/// The time at which a change is signalled to the clients that track or watch the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// Before the event is published, as for most changes.
    First,
    /// After the event is published.
    Last,
    /// Together with another touch, or not at all.
    Apart,
}

/// A key that changed, with the event's name in keyspace notifications.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Touch {
    /// The database number.
    pub db: usize,
    /// The key that changed, as clients name it.
    pub key: Bytes,
    /// The class of the event.
    pub class: Class,
    /// The event, such as `hset`.
    pub event: &'static str,
    /// The setting of `notify-keyspace-events` at the time.
    pub wanted: Notify,
    /// The client that changed it, for client-side caching.
    pub changer: Changer,
    /// The time at which it is signalled to trackers and watchers.
    pub signal: Signal,
    /// Set if the client whose command caused it gets the event after its reply.
    pub after_reply: bool,
}

impl Touch {
    /// Returns a touch that is signalled at the time its class determines.
    pub fn new(
        db: usize,
        key: Bytes,
        (class, event): (Class, &'static str),
        wanted: Notify,
        changer: Changer,
    ) -> Touch {
        Touch { db, key, class, event, wanted, changer, signal: class.signal(), after_reply: false }
    }
}

/// The client that changed a key, for NOLOOP of CLIENT TRACKING.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changer {
    /// The client of the command, or the blocked client that it served.
    Client,
    /// No client: a script, or the server itself.
    Server,
    /// The client of the push: the pushed element has served a blocked client, and the change
    /// belongs to the push.
    Pusher,
}

/// A message for the subscribers of a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publication {
    /// The channel, without any pattern.
    pub channel: Bytes,
    /// The payload, which is delivered unchanged.
    pub message: Bytes,
    /// True for SPUBLISH, which reaches only shard subscribers of the channel.
    pub sharded: bool,
}

/// The three kinds of subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subscription {
    /// SUBSCRIBE: one channel.
    Channel,
    /// PSUBSCRIBE: every channel that matches a pattern.
    Pattern,
    /// SSUBSCRIBE: one shard channel.
    Shard,
}

/// The commands whose keys are remembered for invalidations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Consent {
    /// The keys of every command.
    #[default]
    Given,
    /// Only after CLIENT CACHING YES (`OPTIN`).
    OptIn,
    /// Not after CLIENT CACHING NO (`OPTOUT`).
    OptOut,
}

/// The options by which a connection gets invalidations (CLIENT TRACKING).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tracking {
    /// The prefixes of `BCAST`: it gets invalidations of every key with one of them, read or not.
    pub prefixes: Option<BTreeSet<Bytes>>,
    /// The commands whose keys are remembered, without `BCAST`.
    pub consent: Consent,
    /// Set if it gets no invalidations of its own changes (`NOLOOP`).
    pub no_loop: bool,
    /// Set if CLIENT CACHING was called for the next command.
    pub exception: bool,
}

impl Tracking {
    /// Returns true if the keys that the connection reads now are remembered.
    pub fn remembers(&self) -> bool {
        let consents = match self.consent {
            Consent::Given => true,
            Consent::OptIn => self.exception,
            Consent::OptOut => !self.exception,
        };
        consents && self.prefixes.is_none()
    }
}

/// A subscription that the client of a transaction began or ended inside it. Earlier messages of
/// the same transaction follow the subscriptions from before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resubscription {
    /// The kind: channel, pattern or shard channel.
    pub kind: Subscription,
    /// The channel or the pattern.
    pub name: Bytes,
    /// True if it was subscribed to until then.
    pub was: bool,
    /// The numbers of keys touched and of messages published until then.
    pub at: (usize, usize),
}

/// One command for the replication stream and the append-only file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Propagated {
    /// The database it works on.
    pub db: usize,
    /// Name and arguments.
    pub args: Vec<Bytes>,
    /// The destinations of the command.
    pub to: PropagateTo,
}

/// The destinations of a propagated command. Scripts can choose them (`redis.set_repl`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PropagateTo {
    /// Replicas and the append-only file.
    #[default]
    All,
    /// Only replicas: the command is missing after a restart from the append-only file.
    Replicas,
    /// Only the append-only file.
    Aof,
    /// Neither of them.
    None,
}

/// The frame in which the commands of a batch are propagated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Framing {
    /// One transaction if there are several.
    #[default]
    Several,
    /// One transaction even if there is only one.
    Always,
    /// One by one.
    Never,
}

/// An effect of a command that concerns only client-side caching.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cached {
    /// It read a key for a tracking client.
    Read(Bytes),
    /// It emptied databases.
    Flushed,
    /// Its connection changed its tracking; `None` means that it is off.
    TrackingChanged(Option<Tracking>),
}

/// All effects of a batch of commands. Empty for reads.
#[derive(Debug, Default)]
pub struct Effects {
    /// Keys that changed, in order.
    pub touched: Vec<Touch>,
    /// The commands to propagate to replicas and the AOF, in order.
    pub propagated: Vec<Propagated>,
    /// The frame of the commands for replicas and the AOF.
    pub framing: Framing,
    /// Messages, in order, each with the number of keys touched before it.
    pub published: Vec<(usize, Publication)>,
    /// Databases that lost all their keys in one step, with their former data. That causes no
    /// keyspace events.
    pub flushed: Vec<(usize, Db)>,
    /// Effects that concern only client-side caching, each with the number of keys touched before
    /// it.
    pub cached: Vec<(usize, Cached)>,
    /// The ends of the commands of a transaction: the numbers of keys touched and of messages
    /// published until then.
    pub command_ends: Vec<(usize, usize)>,
    /// The subscriptions that the client of a transaction began or ended, in order.
    pub resubscribed: Vec<Resubscription>,
    /// Databases that were swapped.
    pub swapped: Vec<(usize, usize)>,
    /// The number of changes for the save points, as Redis counts them.
    pub dirty: u64,
    /// The lines of MONITOR about the batch for the client that ran it, which gets them after its
    /// reply.
    pub monitor_lines: Vec<Reply>,
}

impl Effects {
    /// Records an effect that concerns only client-side caching.
    pub fn cache(&mut self, cached: Cached) {
        self.cached.push((self.touched.len(), cached));
    }

    /// Records a message.
    pub fn publish(&mut self, publication: Publication) {
        self.published.push((self.touched.len(), publication));
    }

    /// Records that the client of a transaction is about to begin or end a subscription; `was`
    /// is true if it has been subscribed until now.
    pub fn resubscribe(&mut self, kind: Subscription, name: Bytes, was: bool) {
        self.resubscribed.push(Resubscription {
            kind,
            name,
            was,
            at: (self.touched.len(), self.published.len()),
        });
    }

    /// Records that a command of a transaction ends here.
    pub fn end_command(&mut self) {
        self.command_ends.push((self.touched.len(), self.published.len()));
    }

    /// Returns true if there is nothing to deliver.
    pub fn is_untold(&self) -> bool {
        self.touched.is_empty()
            && self.cached.is_empty()
            && self.propagated.is_empty()
            && self.published.is_empty()
            && self.flushed.is_empty()
            && self.swapped.is_empty()
    }

    /// Returns true if the batch had no effects.
    pub fn is_empty(&self) -> bool {
        self.touched.is_empty()
            && self.cached.is_empty()
            && self.propagated.is_empty()
            && self.published.is_empty()
            && self.dirty == 0
    }

    /// Adds the effects of a later batch.
    pub fn append(&mut self, after: Effects) {
        let (before, published) = (self.touched.len(), self.published.len());
        self.cached.extend(after.cached.into_iter().map(|(at, cached)| (before + at, cached)));
        self.touched.extend(after.touched);
        self.propagated.extend(after.propagated);
        self.framing = self.framing.max(after.framing);
        self.published.extend(after.published.into_iter().map(|(at, message)| (before + at, message)));
        self.command_ends.extend(
            after
                .command_ends
                .into_iter()
                .map(|(touched, messages)| (before + touched, published + messages)),
        );
        self.resubscribed.extend(after.resubscribed.into_iter().map(|mut change| {
            change.at = (before + change.at.0, published + change.at.1);
            change
        }));
        self.flushed.extend(after.flushed);
        self.swapped.extend(after.swapped);
        self.dirty += after.dirty;
        self.monitor_lines.extend(after.monitor_lines);
    }
}
