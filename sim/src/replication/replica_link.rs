//! A replica as its master sees it.

use bytes::Bytes;

use crate::{generation::Generation, time::Monotonic};

/// The state of the synchronization of a replica.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Feed {
    /// It has sent its port or its capabilities, but has not requested the stream yet.
    Introduced,
    /// It waits for the master to begin a snapshot.
    WaitingForSnapshot {
        /// The wall-clock second at which it began to wait.
        since: i64,
        /// True if it has just attached: it may share a snapshot that is being written already.
        may_share: bool,
    },
    /// The snapshot is being written, which takes as long as `rdb-key-save-delay` says.
    Saving {
        /// The time at which the snapshot is written.
        until: Monotonic,
        /// The snapshot, which will be sent at that time.
        snapshot: Bytes,
        /// The end mark of a diskless transfer; `None` if the snapshot goes through a file.
        mark: Option<String>,
        /// The offset in the stream that the snapshot's data has.
        offset: u64,
    },
    /// The snapshot is being transferred. Later writes wait in the backlog until the replica
    /// acknowledges that it has loaded the snapshot. In all other respects the replica is online.
    Loading {
        /// The offset in the stream that the snapshot's data has.
        offset: u64,
    },
    /// It receives the stream.
    Online,
}

/// A replica of this node: its announced address and abilities, and the state of its stream.
#[derive(Debug, Clone)]
pub struct ReplicaLink {
    /// The port on which it listens (REPLCONF listening-port); 0 if unknown.
    pub port: u16,
    /// The address that it announces (REPLCONF ip-address); empty without one.
    pub ip: String,
    /// True if it can read a snapshot that ends with a mark instead of having a length (`capa
    /// eof`).
    pub eof: bool,
    /// True if it understands a change of the replication id (`capa psync2`).
    pub psync2: bool,
    /// The major version of the Valkey that it is (`version`); `None` for any other server.
    pub version: Option<u8>,
    /// True if it wants only a snapshot, and no stream (`rdb-only`).
    pub snapshot_only: bool,
    /// True if it wants libraries and no keys in the snapshot (`rdb-filter-only functions`).
    pub libraries_only: bool,
    /// True if it requested with SYNC, the old command: it never acknowledges.
    pub pre_psync: bool,
    /// The state of its synchronization.
    pub feed: Feed,
    /// The last offset that it acknowledged.
    pub acked: u64,
    /// The last offset up to which its append-only file was synced, as it acknowledged; 0 without
    /// such a file.
    pub synced: u64,
    /// The wall-clock second of that acknowledgement, or of a later line break, which a replica
    /// sends while it is loading.
    pub acked_at: i64,
}

impl Feed {
    /// The offset after which the stream is kept for the replica; `None` if nothing is kept.
    pub fn waits_from(&self) -> Option<u64> {
        match self {
            Feed::Saving { offset, .. } | Feed::Loading { offset } => Some(*offset),
            Feed::Introduced | Feed::WaitingForSnapshot { .. } | Feed::Online => None,
        }
    }
}

impl ReplicaLink {
    /// Creates a replica that has not requested anything yet.
    pub fn introduced(now_secs: i64) -> ReplicaLink {
        ReplicaLink {
            port: 0,
            ip: String::new(),
            eof: false,
            psync2: false,
            version: None,
            snapshot_only: false,
            libraries_only: false,
            pre_psync: false,
            feed: Feed::Introduced,
            acked: 0,
            synced: 0,
            acked_at: now_secs,
        }
    }

    /// Returns the version of the snapshots that it gets from a master of this generation.
    pub fn rdb_version(&self, master: Generation) -> u16 {
        master.rdb_version_for_replica(self.version)
    }

    /// Returns true if its initial synchronization has been sent, as INFO and ROLE report it.
    pub fn is_online(&self) -> bool {
        matches!(self.feed, Feed::Loading { .. } | Feed::Online)
    }

    /// Seconds since its last acknowledgement (or line break while it is loading); 0 while it is
    /// not online.
    pub fn lag_secs(&self, now_secs: i64) -> i64 {
        if self.is_online() { now_secs.saturating_sub(self.acked_at) } else { 0 }
    }

    /// The name of the state in INFO.
    pub fn state(&self) -> &'static str {
        match self.feed {
            Feed::Introduced | Feed::WaitingForSnapshot { .. } | Feed::Saving { .. } => "wait_bgsave",
            Feed::Loading { .. } | Feed::Online => "online",
        }
    }
}
