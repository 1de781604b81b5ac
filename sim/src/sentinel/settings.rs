//! The configuration of a Sentinel: its own settings, and those of each master.

use std::collections::BTreeMap;

use super::Address;

/// Times that only SENTINEL DEBUG changes, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// Between two INFO commands to one instance.
    pub info: i64,
    /// Between two PINGs.
    pub ping: i64,
    /// Between two questions to another Sentinel whether a master is down.
    pub ask: i64,
    /// Between two hellos.
    pub publish: i64,
    /// `down-after-milliseconds` of a master without its own setting.
    pub down_after: i64,
    /// `failover-timeout` of a master without its own setting.
    pub failover_timeout: i64,
    /// Between two ticks: a longer time begins TILT.
    pub tilt_trigger: i64,
    /// The time in milliseconds for which TILT lasts, in which nothing is decided.
    pub tilt: i64,
    /// The time that a replica has to accept its new master.
    pub reconf: i64,
    /// The age at which a silent connection may be replaced.
    pub min_link: i64,
    /// The time for which a candidate waits for votes.
    pub election: i64,
    /// Unused: there are no scripts.
    pub script_max_runtime: i64,
    /// Unused: there are no scripts.
    pub script_retry_delay: i64,
}

impl Default for Times {
    fn default() -> Times {
        Times {
            info: 10_000,
            ping: 1_000,
            ask: 1_000,
            publish: 2_000,
            down_after: 30_000,
            failover_timeout: 180_000,
            tilt_trigger: 2_000,
            tilt: 30_000,
            reconf: 10_000,
            min_link: 15_000,
            election: 10_000,
            script_max_runtime: 60_000,
            script_retry_delay: 30_000,
        }
    }
}

impl Times {
    /// The times with their names in SENTINEL DEBUG, in its order.
    pub fn named(&mut self) -> [(&'static str, &mut i64); 13] {
        [
            ("INFO-PERIOD", &mut self.info),
            ("PING-PERIOD", &mut self.ping),
            ("ASK-PERIOD", &mut self.ask),
            ("PUBLISH-PERIOD", &mut self.publish),
            ("DEFAULT-DOWN-AFTER", &mut self.down_after),
            ("DEFAULT-FAILOVER-TIMEOUT", &mut self.failover_timeout),
            ("TILT-TRIGGER", &mut self.tilt_trigger),
            ("TILT-PERIOD", &mut self.tilt),
            ("SLAVE-RECONF-TIMEOUT", &mut self.reconf),
            ("MIN-LINK-RECONNECT-PERIOD", &mut self.min_link),
            ("ELECTION-TIMEOUT", &mut self.election),
            ("SCRIPT-MAX-RUNTIME", &mut self.script_max_runtime),
            ("SCRIPT-RETRY-DELAY", &mut self.script_retry_delay),
        ]
    }
}

/// The settings of one monitored master, as `sentinel.conf` has them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MasterSettings {
    /// The address given by `sentinel monitor`, before any failover.
    pub address: Address,
    /// Number of Sentinels that must see it down.
    pub quorum: u32,
    /// Milliseconds of silence after which an instance of its group is SDOWN.
    pub down_after: i64,
    /// `failover-timeout` in milliseconds; see Redis's documentation.
    pub failover_timeout: i64,
    /// Number of replicas that are reconfigured at the same time.
    pub parallel_syncs: u32,
    /// The user for the master and its replicas; empty for the default user.
    pub auth_user: String,
    /// The password for the master and its replicas; empty for none.
    pub auth_pass: String,
    /// Milliseconds for which a restarted master may load; 0 for any time.
    pub reboot_down_after: i64,
    /// The name to send instead of a command, by the command's name in lower case.
    pub renames: BTreeMap<String, String>,
}

impl MasterSettings {
    /// The default settings for a master at this address.
    pub fn new(address: Address, quorum: u32) -> MasterSettings {
        let times = Times::default();
        MasterSettings {
            address,
            quorum,
            down_after: times.down_after,
            failover_timeout: times.failover_timeout,
            parallel_syncs: 1,
            auth_user: String::new(),
            auth_pass: String::new(),
            reboot_down_after: 0,
            renames: BTreeMap::new(),
        }
    }
}

/// The configuration of a Sentinel, except that of its masters.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings {
    /// The host in hello messages; empty for the address of the connection.
    pub announce_ip: String,
    /// The port in hello messages; 0 for the one on which it listens.
    pub announce_port: u16,
    /// True if addresses may be host names.
    pub resolve_hostnames: bool,
    /// True if host names are shown instead of addresses.
    pub announce_hostnames: bool,
    /// The user for other Sentinels; empty for the default user.
    pub sentinel_user: String,
    /// The password for other Sentinels; empty for that of `requirepass`.
    pub sentinel_pass: String,
    /// The times that only SENTINEL DEBUG changes.
    pub times: Times,
}
