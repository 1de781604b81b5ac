//! One connection as the server knows it: its protocol, database, transaction, subscriptions and
//! name.

use std::collections::BTreeSet;

use bytes::Bytes;

use crate::{
    acl,
    effect::{Subscription, Tracking},
    event::ConnId,
    node::clients::{Names, ReplyBuffer},
    resp::{Decoder, Outbox, Protocol},
    time::Monotonic,
};

/// Whether an address as CLIENT LIST shows it is one of the node's own host.
pub fn is_local(peer: &str) -> bool {
    ["127.0.0.1:", "[::1]:"].iter().any(|own| peer.starts_with(own)) || is_file(peer)
}

/// Whether it is that of a file, which has no port.
pub fn is_file(peer: &str) -> bool {
    peer.ends_with(":0")
}

/// What a connection is to this node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Role {
    /// An ordinary client.
    #[default]
    Client,
    /// A replica that this node feeds.
    Replica,
    /// The master that this node follows.
    Master,
}

/// Which replies a client wants (CLIENT REPLY).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Replies {
    /// All of them.
    #[default]
    On,
    /// None.
    Off,
    /// Not the one of the next command (the state right after CLIENT REPLY SKIP).
    SkipNext,
    /// Not the one of the command being run.
    Skip,
}

/// Bytes of a pointer, by which tables refer to arguments and names.
pub(super) const POINTER: usize = 8;

/// A transaction being queued.
#[derive(Debug, Default)]
pub struct Transaction {
    /// The commands, in order.
    pub queue: Vec<Vec<Bytes>>,
    /// What their arguments take, and where those are.
    bytes: usize,
    /// A command was refused while queuing: EXEC will refuse the whole.
    pub broken: bool,
}

/// What the commands of a transaction take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Queued {
    /// How many there are.
    pub commands: usize,
    /// The bytes of their arguments, and of where those are.
    pub bytes: usize,
}

impl Transaction {
    /// Queues a command.
    pub fn push(&mut self, words: Vec<Bytes>) {
        self.bytes += words.iter().map(|word| word.len() + POINTER).sum::<usize>();
        self.queue.push(words);
    }

    /// What the commands take that are queued.
    pub fn queued(&self) -> Queued {
        Queued { commands: self.queue.len(), bytes: self.bytes }
    }
}

/// A watched key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Watched {
    /// The database number.
    pub db: usize,
    /// The key.
    pub key: Bytes,
    /// Whether the key was already past its expiry when WATCH was called: its removal is then no
    /// change.
    pub was_expired: bool,
}

/// What a client waits for.
#[derive(Debug)]
pub struct Blocked {
    /// The command to run again when a key is ready.
    pub args: Vec<Bytes>,
    /// The keys that can wake it, in its database; empty for waits that are not for keys (WAIT,
    /// CLIENT PAUSE).
    pub keys: Vec<Bytes>,
    /// When it gives up.
    pub deadline: Option<Monotonic>,
    /// The order of arrival: the longest waiting is served first.
    pub ticket: u64,
    /// What else it waits for.
    pub on: BlockedOn,
}

/// The kinds of waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockedOn {
    /// Data under one of the keys.
    Keys,
    /// `replicas` acknowledgements of the replication offset (WAIT).
    Replicas {
        /// How many.
        replicas: usize,
        /// Which offset.
        offset: u64,
    },
    /// Its own script, which does not end.
    Script,
    /// The end of CLIENT PAUSE.
    Pause,
    /// A manual clock on its way (DEBUG CLOCK ADVANCE).
    Clock,
    /// The end of the server (SHUTDOWN).
    Shutdown,
    /// The target of its MIGRATE.
    Migration,
    /// Data that it asked to have read (DEBUG RELOAD, DEBUG LOADAOF).
    Loading,
}

/// One connection.
#[derive(Debug)]
pub struct Session {
    /// Its id, which is also CLIENT ID's.
    pub id: ConnId,
    /// The remote address as text.
    pub peer: String,
    /// The local address as text.
    pub local: String,
    /// Client, replica or master.
    pub role: Role,
    /// Bytes not yet read as commands.
    pub decoder: Decoder,
    /// Bytes to send at the end of the step.
    pub out: Outbox,
    /// The room for them.
    pub reply_buffer: ReplyBuffer,
    /// Bytes sent before that the network has not taken: the driver keeps them, and says how many.
    pub unsent: usize,
    /// Since when it has left more unread than its soft limit allows.
    pub slow_since: Option<Monotonic>,
    /// It was to be sent more than it may leave unread.
    pub overran: bool,
    /// The memory of it that is part of [`Sessions::memory`](super::Sessions::memory).
    pub(crate) accounted: usize,
    /// The protocol version chosen with HELLO.
    pub protocol: Protocol,
    /// Whether AUTH succeeded, or was not needed when it came.
    pub authenticated: bool,
    /// The user it acts as.
    pub user: Bytes,
    /// The selected database.
    pub db: usize,
    /// CLIENT SETNAME.
    pub name: Bytes,
    /// CLIENT SETINFO.
    pub lib_name: Bytes,
    /// CLIENT SETINFO.
    pub lib_version: Bytes,
    /// Bytes that were there to be read when the commands being run were: a server holds them until
    /// all of them have run.
    pub reading: usize,
    /// The last long argument: its bytes, and when it came.
    pub(super) long_query: (usize, Monotonic),
    /// The arguments of the command being run: their bytes, and how many.
    pub argv: (usize, usize),
    /// MULTI, until EXEC or DISCARD.
    pub transaction: Option<Transaction>,
    /// The transaction that EXEC is running.
    pub executing: Option<Queued>,
    /// WATCH.
    pub watched: BTreeSet<Watched>,
    /// A watched key changed: EXEC will answer null.
    pub watch_broken: bool,
    /// SUBSCRIBE.
    pub channels: Names,
    /// PSUBSCRIBE.
    pub patterns: Names,
    /// SSUBSCRIBE.
    pub shards: Names,
    /// CLIENT REPLY.
    pub replies: Replies,
    /// CLIENT NO-EVICT.
    pub no_evict: bool,
    /// CLIENT TRACKING.
    pub tracking: Option<Tracking>,
    /// REDIRECT target; outlives tracking, so that pending invalidations still reach it.
    pub redirect: Option<ConnId>,
    /// The REDIRECT target is gone, as an invalidation has detected.
    pub redirect_broken: bool,
    /// MONITOR.
    pub monitor: bool,
    /// READONLY (cluster replicas).
    pub readonly: bool,
    /// ASKING: the next command may reach a slot that is being moved here.
    pub asks: bool,
    /// The command that is run follows ASKING.
    pub asking: bool,
    /// The slot of the keys of the command that is run, in a cluster.
    pub slot: Option<u16>,
    /// SCRIPT DEBUG: the next script is to run under the debugger.
    pub debugs: bool,
    /// Set while the client waits.
    pub blocked: Option<Blocked>,
    /// When it connected.
    pub since: Monotonic,
    /// The time of the last bytes from it or to it; for the connection to the master only bytes
    /// from it count.
    pub last_active: Monotonic,
    /// Its entry in [`Clients::idle_queue`](super::Clients::idle_queue).
    pub quiet_since: Monotonic,
    /// The last command's name.
    pub last_command: &'static str,
    /// The client asked for its end: close once the reply of the command being run is sent.
    pub quits: bool,
    /// Close after the replies so far are sent; nothing more is read or written.
    pub closing: bool,
    /// It is closing, and its unsent output is dropped.
    pub killed: bool,
    /// It is closing, but not yet: there is no reply after which it would be closed, so that it is
    /// left alone until its client goes, or it has not read its replies.
    pub lingers: bool,
    /// The replication offset after this client's last write, which WAIT waits for.
    pub last_write_offset: u64,
}

impl Session {
    /// Whether the client is on the node's own host, by its address: through a loopback interface
    /// or a Unix socket.
    pub fn is_local(&self) -> bool {
        is_local(&self.peer)
    }

    /// A connection that has just been made.
    pub fn new(id: ConnId, peer: String, local: String, now: Monotonic) -> Session {
        Session {
            id,
            peer,
            local,
            role: Role::Client,
            decoder: Decoder::default(),
            out: Outbox::default(),
            reply_buffer: ReplyBuffer::new(now),
            unsent: 0,
            slow_since: None,
            overran: false,
            accounted: 0,
            protocol: Protocol::Resp2,
            authenticated: true,
            user: acl::DEFAULT,
            db: 0,
            name: Bytes::new(),
            lib_name: Bytes::new(),
            lib_version: Bytes::new(),
            reading: 0,
            long_query: (0, now),
            argv: (0, 0),
            transaction: None,
            executing: None,
            watched: BTreeSet::new(),
            watch_broken: false,
            channels: Names::default(),
            patterns: Names::default(),
            shards: Names::default(),
            replies: Replies::On,
            no_evict: false,
            tracking: None,
            redirect: None,
            redirect_broken: false,
            monitor: false,
            readonly: false,
            asks: false,
            asking: false,
            slot: None,
            debugs: false,
            blocked: None,
            since: now,
            last_active: now,
            quiet_since: now,
            last_command: "NULL",
            quits: false,
            closing: false,
            killed: false,
            lingers: false,
            last_write_offset: 0,
        }
    }

    /// The subscriptions of one kind.
    pub fn subscribed(&self, kind: Subscription) -> &Names {
        match kind {
            Subscription::Channel => &self.channels,
            Subscription::Pattern => &self.patterns,
            Subscription::Shard => &self.shards,
        }
    }

    /// The subscriptions of one kind, to change. Only [`Node`](crate::node::Node) does, which
    /// updates its own index as well.
    pub(crate) fn subscribed_mut(&mut self, kind: Subscription) -> &mut Names {
        match kind {
            Subscription::Channel => &mut self.channels,
            Subscription::Pattern => &mut self.patterns,
            Subscription::Shard => &mut self.shards,
        }
    }

    /// The number that the replies of (un)subscribing carry: channels and patterns count together,
    /// shard channels apart.
    pub fn subscriptions_beside(&self, kind: Subscription) -> usize {
        match kind {
            Subscription::Channel | Subscription::Pattern => self.channels.len() + self.patterns.len(),
            Subscription::Shard => self.shards.len(),
        }
    }

    /// Whether its replies are suppressed now.
    pub fn is_silent(&self) -> bool {
        matches!(self.replies, Replies::Off | Replies::Skip)
    }

    /// Whether it is on its way out: it goes at the end of the step.
    pub fn is_leaving(&self) -> bool {
        self.closing && !self.lingers
    }

    /// Whether a RESP2 connection is confined to the subscribe commands.
    pub fn is_subscriber(&self) -> bool {
        !(self.channels.is_empty() && self.patterns.is_empty() && self.shards.is_empty())
    }
}
