//! What a Sentinel is told: the masters to watch, and how.

use std::collections::BTreeMap;

use super::Address;

/// The times that are fixed but for SENTINEL DEBUG, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// Between two INFOs to one instance.
    pub info: i64,
    /// Between two PINGs.
    pub ping: i64,
    /// Between two questions whether a master is down.
    pub ask: i64,
    /// Between two hellos.
    pub publish: i64,
    /// `down-after-milliseconds` of masters that come without one.
    pub down_after: i64,
    /// `failover-timeout` of masters that come without one.
    pub failover_timeout: i64,
    /// A longer time between two ticks begins TILT.
    pub tilt_trigger: i64,
    /// How long TILT lasts.
    pub tilt: i64,
    /// How long a replica may take to accept its new master.
    pub reconf: i64,
    /// How long a link lives before it may be recycled.
    pub min_link: i64,
    /// How long a candidate waits for votes.
    pub election: i64,
    /// Not in use: scripts.
    pub script_max_runtime: i64,
    /// Not in use: scripts.
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
    /// The names of the times as SENTINEL DEBUG has them, in its order.
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

/// How one master is watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MasterSettings {
    /// Where it is at first.
    pub address: Address,
    /// How many Sentinels must see it down.
    pub quorum: u32,
    /// How long it may be silent, in milliseconds.
    pub down_after: i64,
    /// See section `failover-timeout` of Redis's documentation; in milliseconds.
    pub failover_timeout: i64,
    /// Replicas that are reconfigured at the same time.
    pub parallel_syncs: u32,
    /// The user for the master and its replicas; empty for the default user.
    pub auth_user: String,
    /// The password for them; empty for none.
    pub auth_pass: String,
    /// How long a master that has restarted may load, in milliseconds; 0 for as long as it likes.
    pub reboot_down_after: i64,
    /// What to send instead of a command, by its name in lower case.
    pub renames: BTreeMap<String, String>,
}

impl MasterSettings {
    /// The defaults, for a master at this address.
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

/// The configuration of a Sentinel, but for its masters.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings {
    /// The host that hello messages name; empty for the address of the connection.
    pub announce_ip: String,
    /// The port that hello messages name; 0 for the one it listens on.
    pub announce_port: u16,
    /// Whether addresses may be names of hosts.
    pub resolve_hostnames: bool,
    /// Whether names are told instead of addresses.
    pub announce_hostnames: bool,
    /// The user for other Sentinels; empty for the default user.
    pub sentinel_user: String,
    /// The password for them; empty for that of `requirepass`.
    pub sentinel_pass: String,
    /// The fixed times.
    pub times: Times,
}
