//! One connection as the server knows it: its protocol, database, transaction, subscriptions and name.

use std::collections::BTreeSet;

use bytes::Bytes;

use crate::{
    acl,
    event::ConnId,
    pubsub::{Names, Subscription},
    resp::{Decoder, Protocol},
    time::Monotonic,
    tracking::Tracking,
};

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
    /// What the commands take that are queued.
    pub fn queued(&self) -> Queued {
        let words = self.queue.iter().flatten();
        let bytes = words.map(|word| word.len() + POINTER).fold(0, usize::saturating_add);
        Queued { commands: self.queue.len(), bytes }
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

/// What a node holds for a connection, in bytes. Measured on `redis-server`, so that clients see the figures they know; what was sent
/// and is not read yet is with the driver.
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
    pub out: Vec<u8>,
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
    /// MONITOR.
    pub monitor: bool,
    /// READONLY (cluster replicas).
    pub readonly: bool,
    /// Set while the client waits.
    pub blocked: Option<Blocked>,
    /// When it connected.
    pub since: Monotonic,
    /// When it last sent a command.
    pub last_active: Monotonic,
    /// What [`Node::quiet`](crate::node::Node::quiet) has for it.
    pub quiet_since: Monotonic,
    /// The last command's name.
    pub last_command: &'static str,
    /// The client asked for its end: close once the reply of the command being run is sent.
    pub quits: bool,
    /// Close after the replies so far are sent; nothing more is read or written.
    pub closing: bool,
    /// It is closing, and there is no reply after which it would be closed: it is left alone until its client goes.
    pub lingers: bool,
    /// The replication offset after this client's last write, which WAIT waits for.
    pub last_write_offset: u64,
}

impl Session {
    /// A connection that has just been made.
    pub fn new(id: ConnId, peer: String, local: String, now: Monotonic) -> Session {
        Session {
            id,
            peer,
            local,
            role: Role::Client,
            decoder: Decoder::default(),
            out: Vec::new(),
            protocol: Protocol::Resp2,
            authenticated: true,
            user: acl::DEFAULT,
            db: 0,
            name: Bytes::new(),
            lib_name: Bytes::new(),
            lib_version: Bytes::new(),
            reading: 0,
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
            monitor: false,
            readonly: false,
            blocked: None,
            since: now,
            last_active: now,
            quiet_since: now,
            last_command: "NULL",
            quits: false,
            closing: false,
            lingers: false,
            last_write_offset: 0,
        }
    }

    /// What the node holds for this connection, as `redis-server` reckons it.
    pub fn memory(&self) -> Memory {
        let query = self.reading.max(self.decoder.unread());
        let room = query.max(Session::QUERY);
        let sum = |args: &[Bytes]| args.iter().map(Bytes::len).fold(0, usize::saturating_add);
        let parsed = self.blocked.as_ref().map_or(self.decoder.parsed(), |blocked| &blocked.args[..]);
        let (argv, args) = if self.argv.1 > 0 { self.argv } else { (sum(parsed), parsed.len()) };
        let queued =
            self.transaction.as_ref().map(Transaction::queued).or(self.executing).unwrap_or_default();
        let output = self.out.len().min(Session::OUTPUT);
        let output_blocks = (self.out.len() - output).div_ceil(Session::BLOCK);
        let output_listed = output_blocks * (Session::BLOCK + Session::PER_BLOCK);
        // Tables and arrays grow by doubling.
        let slots = |len: usize, least: usize| if len == 0 { 0 } else { len.next_power_of_two().max(least) };
        let listens = self.channels.len() * Session::PER_NAME
            + slots(self.channels.len(), 4) * POINTER
            + self.patterns.len() * Session::PER_NAME;
        let total = [
            Session::IDLE,
            room - Session::QUERY,
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

    /// A connection that does nothing.
    const IDLE: usize = 22_272;
    /// The room for what is read, which grows with a command that is longer.
    const QUERY: usize = 20_474;
    /// The room for what is sent, before blocks are listed.
    pub const OUTPUT: usize = 1024;
    /// What goes into a listed block, and what it takes beside that.
    const BLOCK: usize = 20_464;
    const PER_BLOCK: usize = 40;
    /// A channel or a pattern, but for its name.
    const PER_NAME: usize = 24;
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

    /// Whether it is to be sent no replies now.
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
