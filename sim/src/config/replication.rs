//! The options of replication. Times are in seconds, sizes in bytes.

use super::{Announce, Config, DisklessLoad};

/// The links between a master and its replicas (`REPLICATION` in `redis.conf`).
#[derive(Debug, Clone)]
pub struct ReplicationOptions {
    /// `replicaof`: host and port of the master to follow from the start.
    pub replicaof: Option<(String, u16)>,
    /// `masterauth`; empty for none.
    pub masterauth: String,
    /// `masteruser`; empty for the default user.
    pub masteruser: String,
    /// `replica-read-only`: set if a replica refuses writes of its clients.
    pub replica_read_only: bool,
    /// `replica-serve-stale-data`: set if a replica answers while its link to the master is down.
    pub replica_serve_stale_data: bool,
    /// `replica-ignore-disk-write-errors`: set if a replica continues when its disk fails.
    pub replica_ignore_disk_write_errors: bool,
    /// `min-replicas-to-write`: a master with fewer good replicas refuses writes; 0 for no such
    /// limit.
    pub min_replicas_to_write: usize,
    /// `min-replicas-max-lag`: the age in seconds of the last acknowledgement up to which a replica
    /// counts as good.
    pub min_replicas_max_lag: u64,
    /// `replica-announce-ip`, `replica-announce-port`, `replica-announced` and `replica-priority`:
    /// the properties that a replica announces to its master.
    pub announce: Announce,
    /// `repl-timeout`: the silence in seconds after which a replication link is closed.
    pub timeout: u64,
    /// `repl-ping-replica-period`: the time in seconds between two PINGs of a master to its
    /// replicas.
    pub ping_period: u64,
    /// `repl-diskless-sync`: snapshots for replicas go to the socket, after a delay for more
    /// replicas to join.
    pub diskless_sync: bool,
    /// `repl-diskless-sync-delay`: the time in seconds for which a snapshot waits for more
    /// replicas.
    pub diskless_sync_delay: u64,
    /// `repl-diskless-sync-max-replicas`: a snapshot begins immediately with this many waiting
    /// replicas; 0 to always wait for the delay.
    pub diskless_sync_max_replicas: usize,
    /// `repl-diskless-load`: the place of a snapshot that a replica receives, disk or memory.
    pub diskless_load: DisklessLoad,
    /// `repl-backlog-size`: the bytes of the stream kept for partial resynchronization.
    pub backlog_size: usize,
    /// `repl-backlog-ttl`: the time in seconds for which a master without replicas keeps the
    /// backlog; 0 for no limit.
    pub backlog_ttl: u64,
    /// `propagation-error-behavior`: `ignore`, or else the process ends when a command of the
    /// master fails.
    pub propagation_error_behavior: String,
}

impl Default for ReplicationOptions {
    fn default() -> ReplicationOptions {
        ReplicationOptions {
            replicaof: None,
            masterauth: String::new(),
            masteruser: String::new(),
            replica_read_only: true,
            replica_serve_stale_data: true,
            replica_ignore_disk_write_errors: false,
            min_replicas_to_write: 0,
            min_replicas_max_lag: 10,
            announce: Announce::default(),
            timeout: 60,
            ping_period: 10,
            diskless_sync: true,
            diskless_sync_delay: 5,
            diskless_sync_max_replicas: 0,
            diskless_load: DisklessLoad::Disabled,
            backlog_size: 1 << 20,
            backlog_ttl: 3600,
            propagation_error_behavior: "ignore".into(),
        }
    }
}

impl Config {
    /// Returns `replicaof` as two words; empty on a master.
    pub fn master_address(&self) -> String {
        self.replication.replicaof.as_ref().map_or(String::new(), |(host, port)| format!("{host} {port}"))
    }

    /// Sets `replicaof` from the text of [`Config::master_address`].
    pub fn set_master_address(&mut self, text: &str) {
        let address =
            text.split_once(' ').and_then(|(host, port)| Some((host.to_owned(), port.parse().ok()?)));
        self.replication.replicaof = address;
    }
}
