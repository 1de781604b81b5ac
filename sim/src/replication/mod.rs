//! The state of replication: a node's id and offset, the master that it follows, and its replicas.
//!
//! This module neither sends nor dials. Commands change the state, and `server/replication_cron.rs`
//! carries out the consequences. Source: the replication chapter of Redis's documentation, and the
//! behaviour of `redis-server` 7.0 on the wire.

mod backlog;
mod failover;
mod history;
mod master_link;
mod own_expiries;
mod replica_link;
mod stream;

pub use backlog::Backlog;
pub use failover::Failover;
pub use history::{History, NO_ID};
pub use master_link::{Answer, MasterLink, Payload, Stage};
pub use own_expiries::OwnExpiries;
pub use replica_link::{Feed, ReplicaLink};
pub use stream::{encode, encode_batch};

use std::collections::{BTreeMap, BTreeSet};

use crate::{event::ConnId, time::Monotonic};

/// The replication state of a node.
#[derive(Debug)]
pub struct Replication {
    /// The replication id and offset of this node's data.
    pub history: History,
    /// The backlog, for replicas that lost their link; `None` until the first replica.
    pub backlog: Option<Backlog>,
    /// The database that the stream has selected; `None` if the next command needs a SELECT.
    pub selected: Option<usize>,
    /// The link to the master; `None` on a master.
    pub master: Option<MasterLink>,
    /// The keys that this node expires by itself while it follows a master.
    pub own_expiries: OwnExpiries,
    /// The failover in progress.
    pub failover: Option<Failover>,
    /// The connections that introduced themselves as replicas, synchronized or not, in order of
    /// connection.
    pub replicas: BTreeMap<ConnId, ReplicaLink>,
    /// Number of replicas whose last acknowledgement was recent at the last count
    /// (`min-replicas-to-write`).
    pub good_replicas: usize,
    /// The wall-clock second since which there is no replica.
    pub no_replicas_since: i64,
    /// Counters of full and partial resynchronizations.
    pub syncs: Syncs,
    /// Clients that wait for acknowledgements (WAIT, WAITAOF). Some may not wait any longer.
    pub waiting: BTreeSet<ConnId>,
    /// The database selected in the stream at the position of a snapshot from disk; `None` once it
    /// is used.
    pub loaded_db: Option<usize>,
    /// True if a client waits for acknowledgements: the replicas are asked (REPLCONF GETACK) at the
    /// end of the step.
    pub ack_wanted: bool,
    /// Connections to close at the end of the step.
    pub to_close: Vec<ConnId>,
    /// True if the role changed in this step: clients that wait for data are unblocked with an
    /// error.
    pub role_changed: bool,
    /// The time at which the replication cron is due, once a second; `None` without a peer.
    pub cron_due: Option<Monotonic>,
}

/// Counters of resynchronizations, as INFO prints them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Syncs {
    /// Full resynchronizations.
    pub full: u64,
    /// Partial resynchronizations that were granted.
    pub partial: u64,
    /// Partial resynchronizations that were requested and not granted.
    pub partial_refused: u64,
}

impl Replication {
    /// Creates the state of a node that begins a new stream.
    pub fn new(id: String) -> Replication {
        Replication {
            history: History::new(id),
            backlog: None,
            selected: None,
            master: None,
            own_expiries: OwnExpiries::default(),
            failover: None,
            replicas: BTreeMap::new(),
            good_replicas: 0,
            no_replicas_since: 0,
            syncs: Syncs::default(),
            waiting: BTreeSet::new(),
            loaded_db: None,
            ack_wanted: false,
            to_close: Vec::new(),
            role_changed: false,
            cron_due: None,
        }
    }

    /// The connections that PSYNC or SYNC has turned into replicas, online or not.
    pub fn attached(&self) -> impl Iterator<Item = (&ConnId, &ReplicaLink)> {
        self.replicas.iter().filter(|(_, replica)| replica.feed != Feed::Introduced)
    }

    /// Returns true if this node writes a stream: it is a master that has, or had, replicas.
    pub fn streams(&self) -> bool {
        self.master.is_none() && (self.backlog.is_some() || self.attached().next().is_some())
    }

    /// Returns true if no replication work can become due.
    pub fn is_idle(&self) -> bool {
        self.master.is_none()
            && self.replicas.is_empty()
            && self.waiting.is_empty()
            && self.to_close.is_empty()
            && !self.role_changed
    }

    /// Begins to follow another master. A node that was a master itself first requests to continue
    /// from its own history.
    pub fn follow(&mut self, host: String, port: u16, backlog_size: usize, now_secs: i64) {
        let (resume, down_since) = match self.master.take() {
            None => {
                self.backlog.get_or_insert_with(|| Backlog::new(backlog_size, self.history.offset));
                (Some(self.selected.unwrap_or(0)), None)
            }
            Some(old) => {
                self.to_close.extend(old.conn);
                (old.resume, old.is_up().then_some(now_secs).or(old.down_since))
            }
        };
        self.master = Some(MasterLink { down_since, ..MasterLink::new(host, port, resume, now_secs) });
        self.role_changed = true;
    }

    /// Becomes a master: the stream continues under a new id, and the old id is remembered.
    pub fn promote(&mut self, id: String, now_secs: i64) {
        let Some(old) = self.master.take() else { return };
        self.to_close.extend(old.conn);
        self.history.fork(id);
        // The replicas have to reconnect: a partial resynchronization gives them the new id.
        self.drop_replicas();
        self.selected = None;
        self.no_replicas_since = now_secs;
        self.role_changed = true;
    }

    /// Closes the connections of all replicas. None of them receives more of the stream, which has
    /// another replication id from here on: a replica that read on under the old one could not
    /// resynchronize partially.
    pub fn drop_replicas(&mut self) {
        for (&conn, replica) in
            self.replicas.iter_mut().filter(|(_, replica)| replica.feed != Feed::Introduced)
        {
            replica.feed = Feed::Introduced;
            self.to_close.push(conn);
        }
    }

    /// Makes the backlog keep the bytes that replicas wait for, and otherwise no more than its
    /// size.
    pub fn keep_for_replicas(&mut self) {
        let wanted = self.replicas.values().filter_map(|replica| replica.feed.waits_from()).min();
        self.backlog.iter_mut().for_each(|backlog| backlog.keep(wanted));
    }

    /// The time at which the next snapshot for replicas is complete; `None` if none is being
    /// written.
    pub fn saved_at(&self) -> Option<Monotonic> {
        let saving = self.replicas.values().filter_map(|replica| match replica.feed {
            Feed::Saving { until, .. } => Some(until),
            _ => None,
        });
        saving.min()
    }

    /// Disconnects the replicas that wait for a snapshot that will not be written.
    pub fn give_up_snapshots(&mut self) {
        for (&conn, replica) in &mut self.replicas {
            if matches!(replica.feed, Feed::Saving { .. }) {
                replica.feed = Feed::Introduced;
                self.to_close.push(conn);
            }
        }
    }

    /// Counts the online replicas whose last acknowledgement is at most `lag_max` seconds old.
    pub fn count_good(&mut self, now_secs: i64, lag_max: u64) {
        let recent =
            |replica: &&ReplicaLink| replica.is_online() && replica.lag_secs(now_secs) <= lag_max as i64;
        self.good_replicas = self.replicas.values().filter(recent).count();
    }

    /// Returns the number of online replicas that have acknowledged the stream up to `offset`.
    pub fn acknowledged(&self, offset: u64) -> usize {
        let reached = |replica: &&ReplicaLink| replica.is_online() && replica.acked >= offset;
        self.replicas.values().filter(reached).count()
    }

    /// Returns the number of online replicas whose append-only files are synced up to `offset`, as
    /// far as they have acknowledged.
    pub fn synced(&self, offset: u64) -> usize {
        let reached = |replica: &&ReplicaLink| replica.is_online() && replica.synced >= offset;
        self.replicas.values().filter(reached).count()
    }
}
