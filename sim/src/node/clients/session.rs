//! The server's state of one connection: its protocol, database, transaction, subscriptions and
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

/// Returns true if an address in the form of CLIENT LIST is one of the node's own host.
pub fn is_local(peer: &str) -> bool {
    ["127.0.0.1:", "[::1]:"].iter().any(|own| peer.starts_with(own)) || is_file(peer)
}

/// Returns true if an address is that of a Unix socket, which has no port.
pub fn is_file(peer: &str) -> bool {
    peer.ends_with(":0")
}

/// The role of a connection for this node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Role {
    /// An ordinary client, a subscriber included.
    #[default]
    Client,
    /// A replica that receives this node's replication stream.
    Replica,
    /// The master that this node follows.
    Master,
    /// The source of a slot migration to this node (CLUSTER SYNCSLOTS ESTABLISH).
    Source,
}

/// The replies that a client wants (CLIENT REPLY).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReplyMode {
    /// All replies: the state of a new connection.
    #[default]
    On,
    /// No replies, not even errors (CLIENT REPLY OFF).
    Off,
    /// Suppress the reply of the next command (the state right after CLIENT REPLY SKIP).
    SkipNext,
    /// Suppress the reply of the command being run.
    Skip,
}

/// The size in bytes of a pointer from a table to an argument or a name.
pub(super) const POINTER: usize = 8;

/// A transaction being queued.
#[derive(Debug, Default)]
pub struct Transaction {
    /// The commands, in order.
    pub queue: Vec<Vec<Bytes>>,
    /// The bytes of their arguments and of the pointers to these.
    bytes: usize,
    /// A command was refused while queuing: EXEC will refuse the transaction.
    pub broken: bool,
}

/// The size of a queued transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Queued {
    /// The number of commands.
    pub commands: usize,
    /// The bytes of their arguments, and of the pointers to these.
    pub bytes: usize,
}

impl Transaction {
    /// Queues a command.
    pub fn push(&mut self, words: Vec<Bytes>) {
        self.bytes += words.iter().map(|word| word.len() + POINTER).sum::<usize>();
        self.queue.push(words);
    }

    /// Returns the size of the queued commands.
    pub fn queued(&self) -> Queued {
        Queued { commands: self.queue.len(), bytes: self.bytes }
    }
}

/// A key that WATCH has marked for a connection.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Watched {
    /// The database number.
    pub db: usize,
    /// The key, in database `db`.
    pub key: Bytes,
    /// True if the key had already expired at WATCH: its removal is then no change.
    pub was_expired: bool,
}

/// A blocked client's command, and the condition it waits for.
#[derive(Debug)]
pub struct Blocked {
    /// The command to run again when a key is ready.
    pub args: Vec<Bytes>,
    /// The keys that can wake it, in its database; empty for waits that are not for keys (WAIT,
    /// CLIENT PAUSE).
    pub keys: Vec<Bytes>,
    /// The end of the wait, if it has a timeout.
    pub deadline: Option<Monotonic>,
    /// The order of arrival: the client that has waited longest is served first.
    pub ticket: u64,
    /// The condition it waits for.
    pub on: BlockedOn,
}

/// The kinds of waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockedOn {
    /// Data at one of the keys, as for BLPOP.
    Keys,
    /// Acknowledgements of the replication offset by replicas (WAIT).
    Replicas {
        /// The number of replicas that must acknowledge.
        replicas: usize,
        /// The offset they must acknowledge.
        offset: u64,
    },
    /// Synced append-only files, up to the replication offset (WAITAOF).
    Files {
        /// True if this node's own file must be synced.
        local: bool,
        /// The number of replicas whose files must be synced.
        replicas: usize,
        /// The offset up to which they must be synced.
        offset: u64,
    },
    /// The end of its own script, which exceeds its time limit.
    Script,
    /// The end of CLIENT PAUSE.
    Pause,
    /// A manual clock that is advancing (DEBUG CLOCK ADVANCE).
    Clock,
    /// The end of the server (SHUTDOWN).
    Shutdown,
    /// The answers of the target of its MIGRATE.
    Migration,
    /// The end of the loading that it asked for (DEBUG RELOAD, DEBUG LOADAOF).
    Loading,
}

impl BlockedOn {
    /// Returns true for WAIT and WAITAOF, whose wait ends with acknowledgements of replicas.
    pub fn awaits_offset(self) -> bool {
        matches!(self, BlockedOn::Replicas { .. } | BlockedOn::Files { .. })
    }
}

/// One connection: its identity, its input and output, and the state that commands set in it.
#[derive(Debug)]
pub struct Session {
    /// The id, as in CLIENT ID.
    pub id: ConnId,
    /// The remote address as text.
    pub peer: String,
    /// The local address as text.
    pub local: String,
    /// Client, replica, master, or source of a migration.
    pub role: Role,
    /// Reads commands from the bytes received.
    pub decoder: Decoder,
    /// Bytes to send at the end of the step.
    pub out: Outbox,
    /// The simulated size of the buffer for `out`.
    pub reply_buffer: ReplyBuffer,
    /// The number of bytes sent before that the network has not taken. The driver keeps the bytes
    /// and reports their number.
    pub unsent: usize,
    /// The time since which its unread output has exceeded the soft limit.
    pub slow_since: Option<Monotonic>,
    /// Set once its unread output has exceeded a limit.
    pub overran: bool,
    /// The part of [`Sessions::memory`](super::Sessions::memory) that this connection accounts for.
    pub(crate) accounted: usize,
    /// The protocol version chosen with HELLO.
    pub protocol: Protocol,
    /// True if AUTH succeeded, or no password was needed when it connected.
    pub authenticated: bool,
    /// The user whose permissions apply.
    pub user: Bytes,
    /// The selected database.
    pub db: usize,
    /// The name set by CLIENT SETNAME.
    pub name: Bytes,
    /// The library name set by CLIENT SETINFO.
    pub lib_name: Bytes,
    /// The library version set by CLIENT SETINFO.
    pub lib_version: Bytes,
    /// The number of bytes read together with the commands being run. A server keeps them until all
    /// of these commands have run.
    pub reading: usize,
    /// The last long argument: its number of bytes, and the time at which its length became known.
    pub(super) long_query: (usize, Monotonic),
    /// The arguments of the command being run: their bytes, and their number.
    pub argv: (usize, usize),
    /// The transaction from MULTI until EXEC or DISCARD.
    pub transaction: Option<Transaction>,
    /// The transaction that EXEC is running.
    pub executing: Option<Queued>,
    /// The keys watched by WATCH.
    pub watched: BTreeSet<Watched>,
    /// A watched key changed: EXEC will answer null.
    pub watch_broken: bool,
    /// The channels of SUBSCRIBE.
    pub channels: Names,
    /// The patterns of PSUBSCRIBE.
    pub patterns: Names,
    /// The shard channels of SSUBSCRIBE.
    pub shards: Names,
    /// The state of CLIENT REPLY.
    pub replies: ReplyMode,
    /// Set by CLIENT NO-EVICT.
    pub no_evict: bool,
    /// Set by CLIENT NO-TOUCH.
    pub no_touch: bool,
    /// The options of CLIENT TRACKING, while it is on.
    pub tracking: Option<Tracking>,
    /// The REDIRECT target. It outlives tracking, so that pending invalidations still reach it.
    pub redirect: Option<ConnId>,
    /// Set once an invalidation found that the REDIRECT target is gone.
    pub redirect_broken: bool,
    /// Set by MONITOR.
    pub monitor: bool,
    /// Set by READONLY (replicas).
    pub readonly: bool,
    /// Set by CLIENT CAPA redirect: a replica sends it to its master.
    pub redirects: bool,
    /// Set by ASKING: the next command may access a slot that is being imported here.
    pub asks: bool,
    /// Set while the command being run follows ASKING.
    pub asking: bool,
    /// The slot of the keys of the command being run, in a cluster.
    pub slot: Option<u16>,
    /// Set by SCRIPT DEBUG: the next script runs under the debugger.
    pub debugs: bool,
    /// Set while the client waits.
    pub blocked: Option<Blocked>,
    /// The time at which it connected.
    pub since: Monotonic,
    /// The time of the last bytes from it or to it. For the connection to the master only bytes
    /// from it count.
    pub last_active: Monotonic,
    /// Its entry in [`Clients::idle_queue`](super::Clients::idle_queue).
    pub quiet_since: Monotonic,
    /// The last command's name.
    pub last_command: &'static str,
    /// The client asked to be disconnected: close after the reply of the command being run is sent.
    pub quits: bool,
    /// Close after the replies so far are sent; nothing more is read or written.
    pub closing: bool,
    /// Close, and drop the unsent output.
    pub killed: bool,
    /// The connection is closing but stays open until its client closes it or reads its replies:
    /// either there is no reply after which to close it, or some replies are unread.
    pub lingers: bool,
    /// The replication offset after this client's last write. WAIT waits for it.
    pub last_write_offset: u64,
    /// The number of bytes received from it.
    pub received: u64,
    /// The number of bytes sent to it.
    pub sent: u64,
    /// The number of its commands that have run, those of its transactions and scripts included.
    pub commands: u64,
    /// The bytes of the request being run, in generations with COMMANDLOG.
    pub request_len: usize,
    /// The bytes of its reply so far.
    pub reply_len: usize,
    /// Set by MULTI and WATCH. Valkey then keeps a queue for the connection, empty or not.
    pub has_queued: bool,
}

impl Session {
    /// Returns true if the client is on the node's own host by its address: a loopback address or a
    /// Unix socket.
    pub fn is_local(&self) -> bool {
        is_local(&self.peer)
    }

    /// Returns a connection that has just been made.
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
            replies: ReplyMode::On,
            no_evict: false,
            no_touch: false,
            tracking: None,
            redirect: None,
            redirect_broken: false,
            monitor: false,
            readonly: false,
            redirects: false,
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
            received: 0,
            sent: 0,
            commands: 0,
            request_len: 0,
            reply_len: 0,
            has_queued: false,
        }
    }

    /// Returns the subscriptions of one kind.
    pub fn subscribed(&self, kind: Subscription) -> &Names {
        match kind {
            Subscription::Channel => &self.channels,
            Subscription::Pattern => &self.patterns,
            Subscription::Shard => &self.shards,
        }
    }

    /// Returns the subscriptions of one kind, to change. [`Clients`](super::Clients) updates its
    /// index along with them.
    pub(crate) fn subscribed_mut(&mut self, kind: Subscription) -> &mut Names {
        match kind {
            Subscription::Channel => &mut self.channels,
            Subscription::Pattern => &mut self.patterns,
            Subscription::Shard => &mut self.shards,
        }
    }

    /// Returns the number in the replies of (un)subscribing: channels and patterns count together,
    /// shard channels apart.
    pub fn subscriptions_beside(&self, kind: Subscription) -> usize {
        match kind {
            Subscription::Channel | Subscription::Pattern => self.channels.len() + self.patterns.len(),
            Subscription::Shard => self.shards.len(),
        }
    }

    /// Returns true if replies are suppressed now.
    pub fn is_silent(&self) -> bool {
        matches!(self.replies, ReplyMode::Off | ReplyMode::Skip)
    }

    /// Returns true if it is closed at the end of the step.
    pub fn is_leaving(&self) -> bool {
        self.closing && !self.lingers
    }

    /// Returns true if it has subscriptions, which confine a RESP2 connection to the subscribe
    /// commands.
    pub fn is_subscriber(&self) -> bool {
        !(self.channels.is_empty() && self.patterns.is_empty() && self.shards.is_empty())
    }
}
