//! What a command did to the data, reported rather than acted on.
//!
//! A command never names replication, pub/sub, WATCH or the blocked clients: it leaves [`Effects`],
//! and `server/settle.rs` alone spends them. All effects of one EVAL or EXEC form one batch.

use std::collections::BTreeSet;

use bytes::Bytes;

use crate::{config::Notify, keyspace::Db, resp::Reply};

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
    /// `t`: fewer entries.
    Stream,
    /// `t`: new entries, which clients wait for.
    StreamEntry,
    /// `t` as well: the groups and counters of a stream, which WATCH does not see.
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
    /// `m`: a key was asked for and is not there. Only reported where it is listened to, and no
    /// change.
    Miss,
    /// None: the change is signalled to trackers and watchers separately from the event, or there
    /// is no event.
    Unannounced,
}

impl Class {
    /// The letter of `notify-keyspace-events`.
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

    /// When the invalidation of such a change is sent, unless the command says otherwise.
    fn signal(self) -> Signal {
        match self {
            // The event `new` comes in addition to that of the change.
            Class::StreamGroup | Class::StreamGroupGone | Class::New | Class::Miss => Signal::Apart,
            Class::Expired => Signal::Last,
            _ => Signal::First,
        }
    }
}

/// When a change is signalled to the clients that track or watch the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// Before the event is published, as of most changes.
    First,
    /// Once it is published.
    Last,
    /// With another touch, or not at all.
    Apart,
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
    /// What was to be published of such events at the time.
    pub wanted: Notify,
    /// The client that changed it, for client-side caching.
    pub changer: Changer,
    /// When it is signalled to trackers and watchers.
    pub signal: Signal,
    /// The client whose command it was gets the event after its reply.
    pub after_reply: bool,
}

impl Touch {
    /// A touch that is signalled as its class is.
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
    /// The client of the push: a pushed element has served a blocked client, and the change belongs
    /// to the push.
    Pusher,
}

/// A message for the subscribers of a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publication {
    /// The channel.
    pub channel: Bytes,
    /// The message.
    pub message: Bytes,
    /// Whether it was SPUBLISH, which goes only to shard subscribers of the channel.
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

/// Whether the keys of a command are remembered without being asked for.
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

/// How a connection gets invalidations (CLIENT TRACKING).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tracking {
    /// It gets invalidations of every key with one of these prefixes, read or not (`BCAST`).
    pub prefixes: Option<BTreeSet<Bytes>>,
    /// Which keys are remembered, without `BCAST`.
    pub consent: Consent,
    /// It gets no invalidations of its own changes (`NOLOOP`).
    pub no_loop: bool,
    /// CLIENT CACHING was called for the next command.
    pub exception: bool,
}

impl Tracking {
    /// Whether the keys that the connection reads now are remembered.
    pub fn remembers(&self) -> bool {
        let consents = match self.consent {
            Consent::Given => true,
            Consent::OptIn => self.exception,
            Consent::OptOut => !self.exception,
        };
        consents && self.prefixes.is_none()
    }
}

/// A subscription that the client of a transaction began or ended inside it: messages of the same
/// transaction from before go by what was before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resubscription {
    /// The kind of subscription.
    pub kind: Subscription,
    /// The channel or the pattern.
    pub name: Bytes,
    /// Whether it was subscribed to until then.
    pub was: bool,
    /// How many keys had been touched then, and how many messages published.
    pub at: (usize, usize),
}

/// One command for the replication stream and the append-only file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Propagated {
    /// The database it works on.
    pub db: usize,
    /// Name and arguments.
    pub args: Vec<Bytes>,
    /// Which of the two it goes to.
    pub to: PropagateTo,
}

/// Where a command is propagated. Scripts can choose (`redis.set_repl`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PropagateTo {
    /// Replicas, and the append-only file.
    #[default]
    All,
    /// Replicas alone.
    Replicas,
    /// The append-only file alone.
    Aof,
    /// None of them.
    None,
}

/// What a command did that matters to client-side caching alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cached {
    /// It read a key for a tracking client.
    Read(Bytes),
    /// It emptied databases.
    Flushed,
    /// Its connection changed its tracking: `None` for off.
    TrackingChanged(Option<Tracking>),
}

/// Everything that a batch of commands did. Empty for reads.
#[derive(Debug, Default)]
pub struct Effects {
    /// Keys that changed, in order.
    pub touched: Vec<Touch>,
    /// The commands to propagate to replicas and the AOF, in order.
    pub propagated: Vec<Propagated>,
    /// They are propagated one by one, and not as one transaction.
    pub separately: bool,
    /// Messages, in order, each with how many keys had been touched before it.
    pub published: Vec<(usize, Publication)>,
    /// Databases that lost all their keys at once, with what was in them. That makes no keyspace
    /// events.
    pub flushed: Vec<(usize, Db)>,
    /// What client-side caching goes by besides the keys that changed, each with how many of those
    /// came before it.
    pub cached: Vec<(usize, Cached)>,
    /// Where the commands of a transaction end: how many keys had been touched then, and how many
    /// messages published.
    pub command_ends: Vec<(usize, usize)>,
    /// What the client of a transaction began or stopped to listen to, in order.
    pub resubscribed: Vec<Resubscription>,
    /// Databases that changed places.
    pub swapped: Vec<(usize, usize)>,
    /// How many changes there were since the last save, in Redis's count.
    pub dirty: u64,
    /// MONITOR's lines about the batch for the client that ran it, which gets them after its reply.
    pub monitor_lines: Vec<Reply>,
}

impl Effects {
    /// Notes what matters to client-side caching alone.
    pub fn cache(&mut self, cached: Cached) {
        self.cached.push((self.touched.len(), cached));
    }

    /// Notes a message.
    pub fn publish(&mut self, publication: Publication) {
        self.published.push((self.touched.len(), publication));
    }

    /// Notes that the client of a transaction is about to begin or end a subscription.
    pub fn resubscribe(&mut self, kind: Subscription, name: Bytes, was: bool) {
        self.resubscribed.push(Resubscription {
            kind,
            name,
            was,
            at: (self.touched.len(), self.published.len()),
        });
    }

    /// Notes that a command of a transaction ends here.
    pub fn end_command(&mut self) {
        self.command_ends.push((self.touched.len(), self.published.len()));
    }

    /// Whether there is nothing to deliver.
    pub fn is_untold(&self) -> bool {
        self.touched.is_empty()
            && self.cached.is_empty()
            && self.propagated.is_empty()
            && self.published.is_empty()
            && self.flushed.is_empty()
            && self.swapped.is_empty()
    }

    /// Whether nothing was done.
    pub fn is_empty(&self) -> bool {
        self.touched.is_empty()
            && self.cached.is_empty()
            && self.propagated.is_empty()
            && self.published.is_empty()
            && self.dirty == 0
    }

    /// Adds what another batch did after this one.
    pub fn append(&mut self, after: Effects) {
        let (before, published) = (self.touched.len(), self.published.len());
        self.cached.extend(after.cached.into_iter().map(|(at, cached)| (before + at, cached)));
        self.touched.extend(after.touched);
        self.propagated.extend(after.propagated);
        self.separately |= after.separately;
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
