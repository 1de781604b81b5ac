//! The options of a node, as for CONFIG GET and CONFIG SET, with the defaults of `redis-server`
//! 7.0. Each section of [`Config`] has its own file, which also says the units.

use std::collections::BTreeMap;

mod announce;
mod aof;
mod clients;
mod cluster;
mod diskless_load;
mod generations;
mod keyspace;
mod large_commands;
mod memory;
mod monitoring;
mod mutations;
mod network;
mod notify;
mod persistence;
mod replication;
mod scripts;
mod security;
mod server;

pub mod file;
pub mod options;

pub use announce::Announce;
pub use aof::{AofOptions, Fsync};
pub use clients::{BufferLimit, ClientOptions};
pub use cluster::ClusterOptions;
pub use diskless_load::DisklessLoad;
pub use keyspace::KeyspaceOptions;
pub use large_commands::LargeCommands;
pub use memory::{Eviction, LazyFree, MemoryOptions, Share};
pub use monitoring::MonitoringOptions;
pub use mutations::Mutations;
pub use network::NetworkOptions;
pub use notify::Notify;
pub use persistence::PersistenceOptions;
pub use replication::ReplicationOptions;
pub use scripts::ScriptOptions;
pub use security::{Allowed, SecurityOptions};
pub use server::ServerOptions;

use crate::{generation::Generation, keyspace::ExpiryRule};

/// The options a node reads while it runs, in sections as `redis.conf` and INFO group them.
///
/// ```
/// use lockstorm_sim::config::{Config, Fsync};
///
/// let config = Config::default().with(|config| {
///     config.replication.replicaof = Some(("m".into(), 6379));
///     config.aof.appendonly = true;
///     config.aof.appendfsync = Fsync::Always;
///     config.persistence.save.clear();
/// });
/// assert_eq!(config.master_address(), "m 6379");
/// assert_eq!(config.network.port, 6379);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// The server that the node imitates. Default Redis 8.2.
    pub generation: Generation,
    /// The sockets that the node listens on.
    pub network: NetworkOptions,
    /// The limits of clients and of their buffers.
    pub clients: ClientOptions,
    /// Passwords, users and guarded commands.
    pub security: SecurityOptions,
    /// The links between a master and its replicas.
    pub replication: ReplicationOptions,
    /// Snapshots and the folder of all files.
    pub persistence: PersistenceOptions,
    /// The append-only file.
    pub aof: AofOptions,
    /// The limits of memory, eviction and lazy freeing.
    pub memory: MemoryOptions,
    /// The databases, encodings and keyspace events.
    pub keyspace: KeyspaceOptions,
    /// The limits of scripts.
    pub scripts: ScriptOptions,
    /// SLOWLOG, COMMANDLOG and LATENCY.
    pub monitoring: MonitoringOptions,
    /// The log, the periodic work and the end of the process.
    pub server: ServerOptions,
    /// The options of Redis Cluster.
    pub cluster: ClusterOptions,
    /// The intentional bugs of the node.
    pub mutations: Mutations,
    /// Options that are stored and reported but have no effect here, by name.
    pub others: BTreeMap<String, String>,
}

impl Config {
    /// Returns the configuration after `change`, for one expression that sets some options.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Config)) -> Config {
        change(&mut self);
        self
    }

    /// Returns the rule for keys that have expired at `now_ms` of the wall clock.
    pub fn expiry_rule(&self, now_ms: i64) -> ExpiryRule {
        if self.mutations.expire_at_the_millisecond {
            ExpiryRule::early(now_ms)
        } else {
            ExpiryRule::at(now_ms)
        }
    }
}
