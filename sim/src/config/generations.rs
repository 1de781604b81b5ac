//! The defaults of each generation of servers.

use super::{Config, LazyFree};
use crate::generation::Generation;

impl Config {
    /// Returns the defaults of a generation of servers.
    ///
    /// ```
    /// use lockstorm_sim::{config::Config, generation::Generation};
    ///
    /// assert_eq!(Config::of(Generation::Redis70).replication.backlog_size, 1 << 20);
    /// assert_eq!(Config::of(Generation::Valkey91).replication.backlog_size, 10 << 20);
    /// ```
    pub fn of(generation: Generation) -> Config {
        let mut config = Config { generation, ..Config::default() };
        if generation == Generation::Redis62 {
            config.security.acl_pubsub_default = true;
            config.replication.diskless_sync = false;
        }
        if generation.is_valkey() {
            config.memory.lazy_free =
                LazyFree { eviction: true, expire: true, server_del: true, user_del: true, user_flush: true };
            config.replication.backlog_size = 10 << 20;
        }
        config
    }
}
