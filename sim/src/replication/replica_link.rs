//! A replica, as its master sees it.

use bytes::Bytes;

use crate::time::Monotonic;

/// The state of the synchronization of a replica.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Feed {
    /// It has sent its port or its capabilities, but has not asked for the stream yet.
    Introduced,
    /// It waits for a snapshot, since this wall-clock second.
    WaitingForSnapshot {
        /// When it began to wait.
        since: i64,
        /// It has just attached, and may share a snapshot that is being written already.
        may_share: bool,
    },
    /// The snapshot is being written, which takes as long as `rdb-key-save-delay` says.
    Saving {
        /// When it is written.
        until: Monotonic,
        /// What will be sent then.
        snapshot: Bytes,
        /// The end mark of a diskless transfer; `None` if the snapshot goes through a file.
        mark: Option<String>,
        /// The offset that it stands at.
        offset: u64,
    },
    /// The snapshot is being transferred; writes since then wait in the backlog until the replica
    /// acknowledges that it has loaded it. In all other respects it is online.
    Loading {
        /// The offset that it stands at.
        offset: u64,
    },
    /// It receives the stream.
    Online,
}

/// One replica.
#[derive(Debug, Clone)]
pub struct ReplicaLink {
    /// The port it listens on (REPLCONF listening-port); 0 if unknown.
    pub port: u16,
    /// The address that it announces (REPLCONF ip-address); empty without one.
    pub ip: String,
    /// It can read a snapshot whose end is marked rather than announced (`capa eof`).
    pub eof: bool,
    /// It understands a change of the replication id (`capa psync2`).
    pub psync2: bool,
    /// It wants a snapshot and no stream (`rdb-only`), and in it libraries and no keys
    /// (`rdb-filter-only functions`).
    pub snapshot_only: bool,
    /// See [`snapshot_only`](ReplicaLink::snapshot_only).
    pub libraries_only: bool,
    /// It asked with SYNC, the old command, and never acknowledges.
    pub pre_psync: bool,
    /// The state of its synchronization.
    pub feed: Feed,
    /// The last offset that it acknowledged.
    pub acked: u64,
    /// The wall-clock second of that, or of a later line break, which a replica sends while it is
    /// loading.
    pub acked_at: i64,
}

impl Feed {
    /// The offset from which on the stream is kept for the replica.
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

    /// Seconds since its last acknowledgement (or line break while it is loading); 0 while it is
    /// not online.
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
