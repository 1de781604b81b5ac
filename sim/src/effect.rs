//! What a command did to the data, reported rather than acted on.
//!
//! A command never names replication, pub/sub, WATCH or the blocked clients: it leaves [`Effects`], and
//! `server/settle.rs` alone spends them. All effects of one EVAL or EXEC form one batch.

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
    /// `t`: a group is gone, which those who wait in it are told.
    StreamGroupGone,
    /// `g`: an expiry was set.
    Expiry,
    /// `x`: a key was found expired.
    Expired,
    /// `e`: a key was evicted for memory.
    Evicted,
    /// `n`: a key was created.
    New,
    /// `m`: a key was asked for and is not there. Only reported where it is listened to, and no change.
    Miss,
    /// None: those who have read a key, or watch it, are told apart from the event, or there is none.
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

    /// When those who have read a key are told of such a change of it, unless the command has a way of its own.
    fn signal(self) -> Signal {
        match self {
            // That a key is new is told beside how it changed.
            Class::StreamGroup | Class::StreamGroupGone | Class::New | Class::Miss => Signal::Apart,
            Class::Expired => Signal::Last,
            _ => Signal::First,
        }
    }
}

/// When those who have read a key, or watch it, are told that it has changed.
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
    /// Who changed it, for client-side caching.
    pub changer: Changer,
    /// When those who have read it, or watch it, are told.
    pub signal: Signal,
    /// The client whose command it was gets the event after its reply.
    pub after_reply: bool,
}

impl Touch {
    /// A touch that is told as its class is.
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

/// Who changed a key, as far as NOLOOP of CLIENT TRACKING spares it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changer {
    /// The client whose command it was, or who had waited for it.
    Client,
    /// No client: a script, whoever runs it, or the server itself.
    Server,
    /// Nobody anew: what was pushed to a list goes to who waited, and that it changed is told of the push.
    Pusher,
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
    /// Those of every command.
    #[default]
    Given,
    /// Only after CLIENT CACHING YES (`OPTIN`).
    OptIn,
    /// Not after CLIENT CACHING NO (`OPTOUT`).
    OptOut,
}

/// How a connection is told of changes (CLIENT TRACKING).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tracking {
    /// It hears of every key that begins with one of these, whether it asked for it or not (`BCAST`).
    pub prefixes: Option<BTreeSet<Bytes>>,
    /// Which keys are remembered, without `BCAST`.
    pub consent: Consent,
    /// What it changes itself is not told (`NOLOOP`).
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

/// A subscription that the client of a transaction began or ended inside it: messages of the same transaction from before go
/// by what was before.
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
    pub to: Recipients,
}

/// Who repeats what a command did. Scripts can choose (`redis.set_repl`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Recipients {
    /// Replicas, and the append-only file.
    #[default]
    All,
    /// Replicas alone.
    Replicas,
    /// The append-only file alone.
    Log,
    /// None of them.
    Nobody,
}

/// What a command did that matters to client-side caching alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cached {
    /// It read a key for a client that wants to be told when the key changes.
    Read(Bytes),
    /// It emptied databases.
    Flushed,
    /// It chose how its connection is told of what comes: none for not at all.
    Retracked(Option<Tracking>),
}

/// Everything that a batch of commands did. Empty for reads.
#[derive(Debug, Default)]
pub struct Effects {
    /// Keys that changed, in order.
    pub touched: Vec<Touch>,
    /// What replicas and the append-only file are to repeat, in order.
    pub propagated: Vec<Propagated>,
    /// They are repeated one by one, and not as one transaction.
    pub apart: bool,
    /// Messages, in order, each with how many keys had been touched before it.
    pub published: Vec<(usize, Publication)>,
    /// Databases that lost all their keys at once, with what was in them. That makes no keyspace events.
    pub flushed: Vec<(usize, Db)>,
    /// What client-side caching goes by besides the keys that changed, each with how many of those came before it.
    pub cached: Vec<(usize, Cached)>,
    /// Where the commands of a transaction end: how many keys had been touched then, and how many messages published.
    pub cuts: Vec<(usize, usize)>,
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
    pub fn cut(&mut self) {
        self.cuts.push((self.touched.len(), self.published.len()));
    }

    /// Whether there is nothing that anybody is to be told of.
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
        self.apart |= after.apart;
        self.published.extend(after.published.into_iter().map(|(at, message)| (before + at, message)));
        self.cuts.extend(
            after.cuts.into_iter().map(|(touched, messages)| (before + touched, published + messages)),
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
