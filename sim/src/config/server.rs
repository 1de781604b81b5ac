//! The options of the process: its log, its periodic work and its end. Times are in seconds.

use crate::log::Level;

/// The process of a node (`GENERAL` and `SHUTDOWN` in `redis.conf`).
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// `hz`: runs of the periodic work per second, which bounds the delay of active expiry.
    pub hz: u32,
    /// The file of the options, which CONFIG REWRITE writes; empty for none.
    pub config_file: String,
    /// The process id in INFO. A simulated node is the only process of its machine, and has id 1.
    pub process_id: u32,
    /// `logfile`: the file of the log; empty for the standard output.
    pub logfile: String,
    /// `loglevel`: lines of lower importance are not logged. Default `notice`.
    pub loglevel: Level,
    /// `shutdown-timeout`: the time in seconds that SHUTDOWN waits for replicas.
    pub shutdown_timeout: u64,
    /// `shutdown-on-sigint`: the options of the SHUTDOWN that the signal triggers.
    pub shutdown_on_sigint: String,
    /// `shutdown-on-sigterm`: the options of the SHUTDOWN that SIGTERM triggers.
    pub shutdown_on_sigterm: String,
    /// `extended-redis-compatibility`: Valkey calls itself Redis in HELLO.
    pub extended_redis_compatibility: bool,
}

impl Default for ServerOptions {
    fn default() -> ServerOptions {
        ServerOptions {
            hz: 10,
            config_file: String::new(),
            process_id: 1,
            logfile: String::new(),
            loglevel: Level::Notice,
            shutdown_timeout: 10,
            shutdown_on_sigint: "default".into(),
            shutdown_on_sigterm: "default".into(),
            extended_redis_compatibility: false,
        }
    }
}
