//! The connections of a node: their sessions, their output, and their subscriptions, watches,
//! blocking keys and tracking.

mod description;
mod invalidation;
mod memory;
mod output;
mod pubsub;
mod reply_buffer;
mod session;
mod sessions;
mod tracking;
mod waiting;
mod watching;

pub use memory::Memory;
pub use pubsub::{Names, PubSub};
pub use reply_buffer::{ReplyBuffer, ReplyBufferChanges, ReplyBufferRules};
pub use session::{
    Blocked, BlockedOn, Queued, ReplyMode, Role, Session, Transaction, Watched, is_file, is_local,
};
pub use sessions::Sessions;
pub use tracking::{Notice, TrackingTable};
pub use waiting::Waiting;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;

use crate::{event::ConnId, resp::Sink, time::Monotonic};

/// The connections of a node, and indexes to find them.
#[derive(Debug, Default)]
pub struct Clients {
    /// The connections, by id, in order of arrival.
    pub sessions: Sessions,
    /// The subscribers of each channel, pattern and shard channel.
    pub pubsub: PubSub,
    /// The watching clients (WATCH), by database and key.
    pub watchers: BTreeMap<(usize, Bytes), BTreeSet<ConnId>>,
    /// The blocked clients.
    pub waiting: Waiting,
    /// The keys that clients may have cached (CLIENT TRACKING).
    pub tracking: TrackingTable,
    /// Connections that receive every command (MONITOR).
    pub monitors: BTreeSet<ConnId>,
    /// Connections whose unread output exceeds their soft limit.
    pub slow_readers: BTreeSet<ConnId>,
    /// Clients by the time of their last known activity, for `timeout`. The queue is only updated
    /// when a client's time seems to be up, so that commands need not update it.
    pub idle_queue: BTreeSet<(Monotonic, ConnId)>,
    /// Connections that have output to send or are to be closed at the end of the step.
    pub pending: Vec<ConnId>,
    /// Connections that are no longer blocked and whose input since then must be processed.
    pub woken: VecDeque<ConnId>,
    /// The next value of [`Blocked::ticket`](crate::node::clients::Blocked::ticket).
    pub tickets: u64,
    /// A client has used CLIENT NO-TOUCH.
    pub may_spare_usage: bool,
}

impl Clients {
    /// Leaves a transaction without running it, and forgets the watched keys.
    pub fn discard(&mut self, conn: ConnId) {
        self.unwatch_all(conn);
        if let Some(session) = self.sessions.get_mut(conn) {
            session.transaction = None;
        }
    }

    /// Closes a connection at the end of the step, after its output has been sent.
    pub fn close(&mut self, conn: ConnId) {
        let Some(session) = self.sessions.get_mut(conn) else { return };
        session.closing = true;
        session.lingers = false;
        self.pending.push(conn);
    }

    /// Closes a connection after the reply that was just written. A connection with CLIENT REPLY
    /// OFF and no unsent output is never closed, as on a server.
    pub fn close_after_reply(&mut self, conn: ConnId) {
        let Some(session) = self.sessions.get_mut(conn) else { return };
        let has_all = session.out.is_empty() && session.unsent == 0;
        if session.is_silent() && has_all && !session.killed {
            session.closing = true;
            session.lingers = true;
        } else {
            self.close(conn);
        }
    }

    /// Closes a connection at the end of the step, and drops its unsent output.
    pub fn kill(&mut self, conn: ConnId) {
        if let Some(session) = self.sessions.get_mut(conn) {
            session.out.clear();
            session.killed = true;
        }
        self.close(conn);
    }

    /// Blocks a connection until one of its keys is ready, or another condition holds.
    pub fn wait(&mut self, conn: ConnId, blocked: Blocked) {
        let Some(session) = self.sessions.get_mut(conn) else { return };
        if matches!(blocked.on, BlockedOn::Keys | BlockedOn::Clock) {
            self.waiting.enter(session.db, conn, &blocked);
        }
        session.blocked = Some(blocked);
    }

    /// Ends the wait of a connection for keys or for a clock. The caller sends the reply. Other
    /// waits are unchanged.
    pub fn stop_waiting(&mut self, conn: ConnId) -> Option<Blocked> {
        let session = self.sessions.get_mut(conn)?;
        let blocked =
            session.blocked.take_if(|blocked| matches!(blocked.on, BlockedOn::Keys | BlockedOn::Clock))?;
        self.waiting.leave(session.db, conn, &blocked);
        Some(blocked)
    }

    /// Ends the state that lasts for one command of a connection: CLIENT REPLY SKIP, the exception
    /// of CLIENT CACHING, and after QUIT the connection itself.
    pub fn command_over(&mut self, conn: ConnId) {
        if self.sessions.get(conn).is_some_and(|session| session.quits) {
            self.close_after_reply(conn);
        }
        let Some(session) = self.sessions.get_mut(conn) else { return };
        session.argv = (0, 0);
        session.replies = match session.replies {
            ReplyMode::SkipNext => ReplyMode::Skip,
            ReplyMode::Skip => ReplyMode::On,
            other => other,
        };
        // CLIENT CACHING applies to the next command or to a whole transaction.
        if session.transaction.is_none() && !session.last_command.starts_with("client|") {
            session.tracking.iter_mut().for_each(|tracking| tracking.exception = false);
        }
    }

    /// Writes bytes that are no reply to a connection, such as the replication stream.
    pub fn send_raw(&mut self, conn: ConnId, bytes: &[u8]) {
        // A connection that is being closed gets no more: a killed replica misses the writes of the
        // same step.
        let Some(session) = self.sessions.get_mut(conn).filter(|session| !session.closing) else { return };
        if session.out.is_empty() {
            self.pending.push(conn);
        }
        session.out.extend_from_slice(bytes);
    }

    /// Records that a client was active at `at`, for [`Clients::idle_queue`].
    pub fn note_active(&mut self, conn: ConnId, at: Monotonic) {
        let Some(session) = self.sessions.get_mut(conn) else { return };
        self.idle_queue.remove(&(session.quiet_since, conn));
        session.quiet_since = at;
        self.idle_queue.insert((at, conn));
    }
}
