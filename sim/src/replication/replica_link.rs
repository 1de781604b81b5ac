//! A replica, as the node that feeds it sees it.

use bytes::Bytes;

use crate::time::Monotonic;

/// How far the feeding of a replica has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Feed {
    /// It has sent its port or its capabilities, but has not asked for the stream yet.
    Introduced,
    /// It waits for a snapshot, since this wall-clock second.
    WaitingForSnapshot {
        /// When it began to wait.
        since: i64,
        /// It has just come, and shares a snapshot that is being written already, if that suits it.
        may_share: bool,
    },
    /// The snapshot is being written, which takes as long as `rdb-key-save-delay` says.
    Saving {
        /// When it is written.
        until: Monotonic,
        /// What will be sent then.
        snapshot: Bytes,
        /// What it ends with, if it goes over the connection as it is written; otherwise it goes through a file first.
        mark: Option<String>,
        /// The offset that it stands at.
        offset: u64,
    },
    /// The snapshot goes over the connection; what was written since waits in the backlog until the replica says that it has
    /// loaded it. For all else it is online.
    Loading {
        /// The offset that it stands at.
        offset: u64,
    },
    /// It gets every byte of the stream.
    Online,
}

/// One replica.
#[derive(Debug, Clone)]
pub struct ReplicaLink {
    /// The port it listens on (REPLCONF listening-port); 0 if it did not say.
    pub port: u16,
    /// The address it wants to be known by (REPLCONF ip-address); empty if it did not say.
    pub ip: String,
    /// It can read a snapshot whose end is marked rather than announced (`capa eof`).
    pub eof: bool,
    /// It understands a change of the replication id (`capa psync2`).
    pub psync2: bool,
    /// It wants a snapshot and no stream (`rdb-only`), and in it libraries and no keys (`rdb-filter-only functions`).
    pub snapshot_only: bool,
    /// See [`snapshot_only`](ReplicaLink::snapshot_only).
    pub libraries_only: bool,
    /// It asked with SYNC, the old way, and never acknowledges.
    pub pre_psync: bool,
    /// How far its feeding has come.
    pub feed: Feed,
    /// The offset it has last acknowledged.
    pub acked: u64,
    /// The wall-clock second of that, or of a line break that came since: so a replica says that it is still loading.
    pub acked_at: i64,
}

impl Feed {
    /// From which offset on the stream is still kept for the replica.
    pub fn waits_from(&self) -> Option<u64> {
        match self {
            Feed::Saving { offset, .. } | Feed::Loading { offset } => Some(*offset),
            Feed::Introduced | Feed::WaitingForSnapshot { .. } | Feed::Online => None,
        }
    }
}

impl ReplicaLink {
    /// A replica that has not asked for anything yet.
    pub fn introduced(now_secs: i64) -> ReplicaLink {
        ReplicaLink {
            port: 0,
            ip: String::new(),
            eof: false,
            psync2: false,
            snapshot_only: false,
            libraries_only: false,
            pre_psync: false,
            feed: Feed::Introduced,
            acked: 0,
            acked_at: now_secs,
        }
    }

    /// Whether its initial synchronization has been sent, as INFO and ROLE report it.
    pub fn is_online(&self) -> bool {
        matches!(self.feed, Feed::Loading { .. } | Feed::Online)
    }

    /// Seconds since its last acknowledgement (or line break while it is loading); 0 while it is not online.
    pub fn lag_secs(&self, now_secs: i64) -> i64 {
        if self.is_online() { now_secs.saturating_sub(self.acked_at) } else { 0 }
    }

    /// The state as INFO names it.
    pub fn state(&self) -> &'static str {
        match self.feed {
            Feed::Introduced | Feed::WaitingForSnapshot { .. } | Feed::Saving { .. } => "wait_bgsave",
            Feed::Loading { .. } | Feed::Online => "online",
        }
    }
}
