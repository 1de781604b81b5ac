//! One connection as the server knows it: its protocol, database, transaction, subscriptions and name.

use std::{collections::BTreeSet, time::Duration};

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
    /// Whether the key was already past its expiry when WATCH was called: its removal is then no change.
    pub was_expired: bool,
}

/// What a client waits for.
#[derive(Debug)]
pub struct Blocked {
    /// The command to run again when a key is ready.
    pub args: Vec<Bytes>,
    /// The keys that can wake it, in its database; empty for waits that are not for keys (WAIT, CLIENT PAUSE).
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

/// Where an argument or a name is, in a table.
const POINTER: usize = 8;

/// What a node holds for a connection, in bytes. Measured on `redis-server`, so that clients see the figures they know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// Commands that are being read.
    pub query: usize,
    /// Room for more of them.
    pub query_free: usize,
    /// The arguments of the command being read or run.
    pub argv: usize,
    /// The commands of its transaction.
    pub queued: usize,
    /// Replies to be sent.
    pub output: usize,
    /// How many blocks hold those that had no more room.
    pub output_blocks: usize,
    /// What these blocks take.
    pub output_listed: usize,
    /// All in all.
    pub total: usize,
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
    pub room: ReplyBuffer,
    /// Bytes sent before that the network has not taken: the driver keeps them, and says how many.
    pub unsent: usize,
    /// Since when it has left more unread than its soft limit allows.
    pub slow_since: Option<Monotonic>,
    /// It was to be sent more than it may leave unread.
    pub overran: bool,
    /// What it counted for when all connections were last weighed.
    pub(crate) weighed: usize,
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
    /// Bytes that were there to be read when the commands being run were: a server holds them until all of them have run.
    pub reading: usize,
    /// The last long argument: its bytes, and when it came.
    long_query: (usize, Monotonic),
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
    /// SCRIPT DEBUG: the next script is to run under the debugger.
    pub debugs: bool,
    /// Set while the client waits.
    pub blocked: Option<Blocked>,
    /// When it connected.
    pub since: Monotonic,
    /// When it last sent something, or was sent something; of the master's connection only the first counts.
    pub last_active: Monotonic,
    /// Its entry in [`Clients::idle_queue`](super::Clients::idle_queue).
    pub quiet_since: Monotonic,
    /// The last command's name.
    pub last_command: &'static str,
    /// The client asked for its end: close once the reply of the command being run is sent.
    pub quits: bool,
    /// Close after the replies so far are sent; nothing more is read or written.
    pub closing: bool,
    /// It is closing, and what it has not read by now is not for it any more.
    pub killed: bool,
    /// It is closing, but not yet: there is no reply after which it would be closed, so that it is left alone until its client goes,
    /// or it has not read its replies.
    pub lingers: bool,
    /// The replication offset after this client's last write, which WAIT waits for.
    pub last_write_offset: u64,
}

impl Session {
    /// Whether the client is on the node's own host, by its address: through a loopback interface or a Unix socket.
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
            room: ReplyBuffer::new(now),
            unsent: 0,
            slow_since: None,
            overran: false,
            weighed: 0,
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

    /// What the node holds for this connection at `now`, as `redis-server` computes it.
    pub fn memory(&self, now: Monotonic) -> Memory {
        let query = self.reading.max(self.decoder.unread());
        // Room for a long argument is made when its length is known, and kept until the next periodic work has seen that it is
        // not needed any more. Who is silent keeps none.
        let awaited = self.decoder.awaited();
        let (long, since) = self.long_query;
        let kept = if now.since(since) < Session::LONG_KEPT { long } else { 0 };
        let is_idle = query == 0 && awaited == 0 && now.since(self.last_active) >= Session::IDLE_AFTER;
        let least = if is_idle { 0 } else { Session::QUERY.max(kept) };
        let room = query.max(least).max(if awaited >= Session::LONG { awaited } else { 0 });
        let sum = |args: &[Bytes]| args.iter().map(Bytes::len).fold(0, usize::saturating_add);
        let parsed = self.blocked.as_ref().map_or(self.decoder.parsed(), |blocked| &blocked.args[..]);
        let (argv, args) = if self.argv.1 > 0 { self.argv } else { (sum(parsed), parsed.len()) };
        let queued =
            self.transaction.as_ref().map(Transaction::queued).or(self.executing).unwrap_or_default();
        let output = self.waiting().min(self.room.size());
        let (output_blocks, output_listed) = self.listed();
        // Tables and arrays grow by doubling.
        let slots = |len: usize, least: usize| if len == 0 { 0 } else { len.next_power_of_two().max(least) };
        let table = |len: usize| len * Session::PER_NAME + slots(len, 4) * POINTER;
        let listens =
            table(self.channels.len()) + table(self.shards.len()) + self.patterns.len() * Session::PER_NAME;
        let prefixes =
            self.tracking.iter().flat_map(|tracking| &tracking.prefixes).map(BTreeSet::len).sum::<usize>();
        let total = [
            Session::IDLE,
            self.room.size(),
            room,
            prefixes * Session::PER_PREFIX,
            argv,
            args.saturating_mul(POINTER),
            queued.bytes,
            slots(queued.commands, 2) * Session::PER_COMMAND,
            self.watched.len() * Session::PER_WATCH,
            listens,
            output_listed,
        ];
        let total = total.into_iter().fold(0, usize::saturating_add);
        let query_free = room - query;
        Memory { query, query_free, argv, queued: queued.bytes, output, output_blocks, output_listed, total }
    }

    /// What the connection counts for where keys must go for lack of memory: all of it except the query buffer that every connection has.
    pub(crate) fn weight(&self) -> usize {
        // As if it had been quiet since, but not for long.
        let memory = self.memory(self.last_active + Session::LONG_KEPT);
        memory.total - memory.query_free.min(Session::QUERY)
    }

    /// Notes that an argument of so many bytes is being read, for which there must be room.
    pub(crate) fn note_length(&mut self, bytes: usize, now: Monotonic) {
        if bytes >= Session::LONG {
            self.long_query = (bytes, now);
        }
    }

    /// Bytes that wait to be sent.
    fn waiting(&self) -> usize {
        self.out.len().saturating_add(self.unsent)
    }

    /// How many blocks hold the replies that had no more room, and what these take: it is what
    /// `client-output-buffer-limit` is about.
    pub fn listed(&self) -> (usize, usize) {
        let blocks = self.waiting().saturating_sub(self.room.size()).div_ceil(Session::BLOCK);
        (blocks, blocks * (Session::BLOCK + Session::PER_BLOCK))
    }

    /// A connection without any room.
    const IDLE: usize = 774;
    /// A connection that has been idle for so long keeps no query buffer.
    const IDLE_AFTER: Duration = Duration::from_secs(3);
    /// The most that a connection takes besides its weight: the query buffer that every connection has, or a larger one that was
    /// kept after a longer command.
    pub(crate) const ROOMS_MAX: usize = Session::QUERY;
    /// An argument that room is made for at once.
    const LONG: usize = 32 << 10;
    /// How long that room is kept.
    const LONG_KEPT: Duration = Duration::from_millis(200);
    /// The room for what is read, which grows with a command that is longer.
    const QUERY: usize = 20_474;
    /// What goes into a listed block, and what it takes beside that.
    const BLOCK: usize = 20_464;
    const PER_BLOCK: usize = 40;
    /// A channel or a pattern, but for its name.
    const PER_NAME: usize = 24;
    /// A tracked prefix of keys.
    const PER_PREFIX: usize = 32;
    /// A watched key, but for its name.
    const PER_WATCH: usize = 56;
    /// A queued command, but for its arguments.
    const PER_COMMAND: usize = 24;

    /// What is listened to of one kind.
    pub fn subscribed(&self, kind: Subscription) -> &Names {
        match kind {
            Subscription::Channel => &self.channels,
            Subscription::Pattern => &self.patterns,
            Subscription::Shard => &self.shards,
        }
    }

    /// The same, to change. Only [`Node`](crate::node::Node) does, which knows the other side as well.
    pub(crate) fn subscribed_mut(&mut self, kind: Subscription) -> &mut Names {
        match kind {
            Subscription::Channel => &mut self.channels,
            Subscription::Pattern => &mut self.patterns,
            Subscription::Shard => &mut self.shards,
        }
    }

    /// The number that the replies of (un)subscribing carry: channels and patterns count together, shard channels apart.
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
