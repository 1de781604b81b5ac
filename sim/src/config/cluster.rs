//! The options of Redis Cluster.

/// The options of Redis Cluster, with the defaults of `redis-server` 7.0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterOptions {
    /// Whether the node is one of a cluster.
    pub enabled: bool,
    /// The file in which the node remembers the cluster.
    pub config_file: String,
    /// The port of the bus; 0 for the port for clients and 10,000.
    pub port: u16,
    /// How long a node is silent before it counts as down, in milliseconds.
    pub node_timeout_ms: i64,
    /// How many node timeouts a replica may have been without its master, and be elected still; 0
    /// for any number.
    pub replica_validity_factor: i64,
    /// How many replicas a master keeps when one of them migrates.
    pub migration_barrier: u64,
    /// Whether replicas migrate, and masters without slots become replicas.
    pub allow_replica_migration: bool,
    /// Whether the cluster is down when a slot is.
    pub require_full_coverage: bool,
    /// Whether this replica leaves failovers to others.
    pub replica_no_failover: bool,
    /// Whether reads are answered while the cluster is down.
    pub allow_reads_when_down: bool,
    /// Whether sharded pub/sub works while the cluster is down.
    pub allow_pubsubshard_when_down: bool,
    /// The IP address that others are told; empty for the one they see.
    pub announce_ip: String,
    /// The port for clients that others are told; 0 for the own one.
    pub announce_port: u16,
    /// The port of the bus that others are told; 0 for the own one.
    pub announce_bus_port: u16,
    /// The host name that clients are told; empty for none.
    pub announce_hostname: String,
    /// Where clients are sent: `ip`, `hostname` or `unknown-endpoint`.
    pub preferred_endpoint: String,
    /// How many bytes a connection of the bus may leave unread; 0 for any number.
    pub link_send_buffer_limit: u64,
}

impl Default for ClusterOptions {
    fn default() -> ClusterOptions {
        ClusterOptions {
            enabled: false,
            config_file: "nodes.conf".into(),
            port: 0,
            node_timeout_ms: 15_000,
            replica_validity_factor: 10,
            migration_barrier: 1,
            allow_replica_migration: true,
            require_full_coverage: true,
            replica_no_failover: false,
            allow_reads_when_down: false,
            allow_pubsubshard_when_down: true,
            announce_ip: String::new(),
            announce_port: 0,
            announce_bus_port: 0,
            announce_hostname: String::new(),
            preferred_endpoint: "ip".into(),
            link_send_buffer_limit: 0,
        }
    }
}

/// What the port of the bus is above the port for clients.
const BUS_OFFSET: u16 = 10_000;

impl super::Config {
    /// The port of the cluster bus; `None` if there is none, because the port for clients is too
    /// high.
    pub fn bus_port(&self) -> Option<u16> {
        match self.cluster.port {
            0 => self.port.checked_add(BUS_OFFSET),
            port => Some(port),
        }
    }
}
