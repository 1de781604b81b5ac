//! The options of Redis Cluster.

/// The options of Redis Cluster, with the defaults of `redis-server` 7.0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterOptions {
    /// `cluster-enabled`: true for a node of a cluster.
    pub enabled: bool,
    /// The file in which the node stores its view of the cluster.
    pub config_file: String,
    /// The port of the bus; 0 for the client port plus 10,000.
    pub port: u16,
    /// The silence after which a node counts as down, in milliseconds.
    pub node_timeout_ms: i64,
    /// The time after which a manual failover is given up, in milliseconds. Only Valkey has the
    /// option. A hand-over holds writes back for twice as long.
    pub manual_failover_timeout_ms: i64,
    /// The maximum number of node timeouts that a replica may have been without its master and
    /// still be elected; 0 for any number.
    pub replica_validity_factor: i64,
    /// The number of replicas that a master keeps when one of them migrates.
    pub migration_barrier: u64,
    /// Set if replicas migrate, and masters without slots become replicas.
    pub allow_replica_migration: bool,
    /// Set if the cluster is down when any slot is not served.
    pub require_full_coverage: bool,
    /// Set if this replica never starts a failover.
    pub replica_no_failover: bool,
    /// Set if reads are served while the cluster is down.
    pub allow_reads_when_down: bool,
    /// Set if sharded pub/sub works while the cluster is down.
    pub allow_pubsubshard_when_down: bool,
    /// The IP address announced to other nodes; empty for the address they see.
    pub announce_ip: String,
    /// The client port announced to other nodes; 0 for the own port.
    pub announce_port: u16,
    /// The bus port announced to other nodes; 0 for the own port.
    pub announce_bus_port: u16,
    /// The host name announced to clients; empty for none.
    pub announce_hostname: String,
    /// The address in redirections: `ip`, `hostname` or `unknown-endpoint`.
    pub preferred_endpoint: String,
    /// The maximum number of unread bytes of a bus connection; 0 for any number.
    pub link_send_buffer_limit: u64,
}

impl Default for ClusterOptions {
    fn default() -> ClusterOptions {
        ClusterOptions {
            enabled: false,
            config_file: "nodes.conf".into(),
            port: 0,
            node_timeout_ms: 15_000,
            manual_failover_timeout_ms: 5_000,
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

/// The default distance from the client port to the port of the bus.
const BUS_OFFSET: u16 = 10_000;

impl super::Config {
    /// Returns the port of the cluster bus; `None` if the client port is too high for one.
    pub fn bus_port(&self) -> Option<u16> {
        match self.cluster.port {
            0 => self.network.port.checked_add(BUS_OFFSET),
            port => Some(port),
        }
    }
}
