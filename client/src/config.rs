//! Settings and their defaults, which match Redisson's where Redisson has the setting.

use std::sync::Arc;
use std::time::Duration;

use crate::address::Topology;
use crate::endpoint::Endpoint;
#[cfg(feature = "tls")]
use crate::endpoint::{Place, Security};
use crate::env::{Env, draw};
use crate::error::{Error, ErrorKind, Result};
use crate::limits;
#[cfg(feature = "tls")]
use crate::tls::Tls;

/// The number of replicas that must confirm a change before it counts.
///
/// The client sends `WAIT` after each change, on the same connection. No setting makes Redis
/// linearizable. Except with [`ReplicaWait::All`], a replica that has not confirmed the change may
/// be the one that is promoted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReplicaWait {
    /// Requires no confirmation.
    #[default]
    None,
    /// Requires one confirmation if the master has any connected replica (Redisson's
    /// `checkLockSyncedSlaves`). A newly promoted master has no replicas until the others have
    /// found it; until then its grants are not confirmed.
    Synced,
    /// Requires as many confirmations as, together with the master, make a majority of all nodes.
    /// Replicas that are down count as nodes: while too few are connected, nothing is granted.
    Majority,
    /// Requires a confirmation of every replica, also of those that are down: while one is missing,
    /// nothing is granted.
    All,
}

/// The disks that must have a change before it counts.
///
/// The client sends `WAITAOF` after each change, on the same connection, and waits for up to
/// [`Builder::durability_timeout`](crate::Builder::durability_timeout). A grant that is not on disk
/// by then is released, and its caller gets [`ErrorKind::NotSynced`].
///
/// `WAITAOF` exists in Redis from version 7.2 on and in every Valkey, and the servers need
/// `appendonly yes`. Without it a call returns [`ErrorKind::NoAppendOnlyFile`] before it has
/// changed anything. The client never continues with less than was asked for.
///
/// With `appendfsync everysec` a Redis replies after its next sync, up to a second later. The
/// requests of a client follow one another on its connection, so each of them waits for the syncs
/// of those before it: use `appendfsync always` for more than a few changes per second. Valkey
/// 8.1.8 and 9.1.2 with `everysec` reply as soon as the change is written to the file, up to a
/// second before it is synced; a loss of power in that second loses the change all the same. With
/// `always` they reply after the sync. With `appendfsync no` no server ever confirms a sync.
///
/// Renewals and releases are confirmed as well. A release is sent whatever the disk does; its error
/// then says that a restart may bring the lock back until its lease is over. A [`Redlock`] waits
/// for no disk.
///
/// [`Redlock`]: crate::Redlock
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// Requires no disk: a change counts as soon as it is in memory.
    #[default]
    Memory,
    /// Requires the disk of the master. Replicas confirm as [`ReplicaWait`] requires, by `WAIT`.
    Master,
    /// Requires the disks of the master and of as many replicas as [`ReplicaWait`] requires, which
    /// then need an append-only file, too.
    All,
}

/// The masters that a client of a single server follows.
///
/// A server may become a replica, for example by FAILOVER. A Valkey names its master then, to
/// clients that say that they understand it (`CLIENT CAPA redirect`, `-REDIRECT host:port`). A
/// client that follows sends its login there, and trusts the named server with its locks. So it
/// follows only where the application allows it, to at most four servers for one request, and to
/// none of them twice.
///
/// When the server that it has followed cannot be reached, the client returns to its endpoint. No
/// other topology follows: replicated sets, Sentinels and clusters know their masters.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Redirects {
    /// Follows none: requests are repeated at the same server until it is a master again.
    #[default]
    Never,
    /// Follows to these servers, each given as `host` or `host:port` in the spelling of the server
    /// that names it.
    To(Vec<String>),
    /// Follows to any server, except from another machine to a loopback address.
    Anywhere,
}

impl Redirects {
    /// Returns true if a client may follow the server at `from`, `None` for a Unix socket, to this
    /// host and port.
    pub(crate) fn allow(&self, host: &str, port: u16, from: Option<&str>) -> bool {
        match self {
            Redirects::Never => false,
            Redirects::To(servers) => {
                let named = format!("{host}:{port}");
                servers.iter().any(|server| *server == host || *server == named)
            }
            // The loopback address of another machine is not the one of this machine.
            Redirects::Anywhere => !is_loopback(host) || from.is_none_or(is_loopback),
        }
    }
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback())
}

/// Maps the application's lock name to the Redis key.
pub(crate) type NameMapper = Arc<dyn Fn(&str) -> String + Send + Sync>;

#[derive(Clone)]
pub(crate) struct Config {
    pub(crate) endpoints: Vec<Endpoint>,
    pub(crate) topology: Topology,
    /// The interval at which Sentinels or cluster nodes are asked for the masters. `None`: the
    /// default of the topology.
    pub(crate) scan_interval: Option<Duration>,
    /// The time that the caller of one operation waits for its outcome.
    pub(crate) call_timeout: Duration,
    pub(crate) response_timeout: Duration,
    pub(crate) connect_timeout: Duration,
    /// `None`: as many as fit into `call_timeout`.
    pub(crate) retry_attempts: Option<u32>,
    /// The delay before the first retry is drawn from half of this to all of it; it doubles with
    /// each retry up to `retry_delay_max`.
    pub(crate) retry_delay: Duration,
    pub(crate) retry_delay_max: Duration,
    /// The lease that the watchdog sets. It renews the lease every third of this time.
    pub(crate) watchdog_timeout: Duration,
    /// The maximum number of locks per renewal script.
    pub(crate) renew_batch: usize,
    /// The time for which a queued waiter of a fair lock counts as alive if it set no limit of its
    /// own.
    pub(crate) fair_wait_timeout: Duration,
    pub(crate) subscription_timeout: Duration,
    pub(crate) ping_interval: Duration,
    pub(crate) replica_wait: ReplicaWait,
    pub(crate) replica_timeout: Duration,
    pub(crate) durability: Durability,
    pub(crate) durability_timeout: Duration,
    pub(crate) redirects: Redirects,
    pub(crate) close_timeout: Duration,
    pub(crate) name_mapper: Option<NameMapper>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            endpoints: Vec::new(),
            topology: Topology::default(),
            scan_interval: None,
            call_timeout: Duration::from_secs(10),
            response_timeout: Duration::from_secs(3),
            connect_timeout: Duration::from_secs(10),
            retry_attempts: None,
            retry_delay: Duration::from_secs(1),
            retry_delay_max: Duration::from_secs(2),
            watchdog_timeout: Duration::from_secs(30),
            renew_batch: 100,
            fair_wait_timeout: Duration::from_secs(300),
            subscription_timeout: Duration::from_millis(7500),
            ping_interval: Duration::from_secs(30),
            replica_wait: ReplicaWait::None,
            replica_timeout: Duration::from_secs(1),
            durability: Durability::Memory,
            durability_timeout: Duration::from_secs(3),
            redirects: Redirects::Never,
            close_timeout: Duration::from_secs(10),
            name_mapper: None,
        }
    }
}

impl Config {
    /// Secures the connections to the `rediss://` endpoints with the settings `tls`, or with the
    /// defaults.
    #[cfg(feature = "tls")]
    pub(crate) fn secure(&mut self, tls: Option<&Tls>, env: &Arc<dyn Env>) -> Result<()> {
        let nodes = match &mut self.topology {
            Topology::Sentinel { nodes, .. } => Some(&mut **nodes),
            Topology::Set | Topology::Cluster => None,
        };
        let mut all: Vec<&mut Endpoint> = self.endpoints.iter_mut().chain(nodes).collect();
        let open = all.iter().find(|endpoint| matches!(endpoint.security, Security::None));
        if let (Some(_), Some(open)) = (tls, open) {
            return Err(Error::config(format!(
                "{open} would be reached without the TLS that is set: its URL is no rediss://"
            )));
        }
        let tls = tls.cloned().unwrap_or_default();
        let mut config = None;
        for endpoint in &mut all {
            if let (Security::Wanted, Place::Tcp { host, .. }) = (&endpoint.security, &endpoint.place) {
                let config = match &config {
                    Some(config) => config,
                    None => config.insert(tls.config(env)?),
                };
                endpoint.security = Security::By(tls.connector(host, config)?);
            }
        }
        Ok(())
    }

    /// Returns the names by which two clients are found to use the same servers: the endpoints,
    /// each prefixed with the name of the master if they are Sentinels.
    pub(crate) fn deployment(&self) -> impl Iterator<Item = String> + '_ {
        let master = match &self.topology {
            Topology::Sentinel { master, .. } => format!("{master} by "),
            Topology::Set | Topology::Cluster => String::new(),
        };
        self.endpoints.iter().map(move |endpoint| format!("{master}{endpoint}"))
    }

    /// Returns the number of the database that holds the keys.
    pub(crate) fn database(&self) -> i64 {
        match &self.topology {
            Topology::Sentinel { nodes, .. } => nodes.db(),
            Topology::Set | Topology::Cluster => self.endpoints.first().map_or(0, Endpoint::db),
        }
    }

    pub(crate) fn check(&self) -> Result<()> {
        if self.endpoints.is_empty() {
            return Err(Error::config("no endpoint"));
        }
        for (at, endpoint) in self.endpoints.iter().enumerate() {
            if self.endpoints[..at].iter().any(|other| other.is_same_place(endpoint)) {
                return Err(Error::config(format!("{endpoint} is named twice, and one server is no set")));
            }
        }
        for (limits, value) in [
            (limits::CALL_TIMEOUT, Some(self.call_timeout)),
            (limits::RESPONSE_TIMEOUT, Some(self.response_timeout)),
            (limits::CONNECT_TIMEOUT, Some(self.connect_timeout)),
            (limits::WATCHDOG_TIMEOUT, Some(self.watchdog_timeout)),
            (limits::SUBSCRIPTION_TIMEOUT, Some(self.subscription_timeout)),
            (limits::SCAN_INTERVAL, self.scan_interval),
        ] {
            value.map_or(Ok(()), |value| limits.check(value))?;
        }
        Ok(())
    }

    /// Returns the delay before retry `attempt`, counted from 0. Equal jitter: half is fixed and
    /// half is drawn.
    pub(crate) fn retry_delay(&self, env: &dyn Env, attempt: u32) -> Duration {
        let half = self.retry_delay_ceiling(attempt) / 2;
        half + Duration::from_micros(draw(env, u64::try_from(half.as_micros()).unwrap_or(u64::MAX)))
    }

    fn retry_delay_ceiling(&self, attempt: u32) -> Duration {
        self.retry_delay.saturating_mul(1 << attempt.min(20)).min(self.retry_delay_max)
    }

    /// Returns the time limit of one more request, after the longest delay before it.
    pub(crate) fn repeat_limit(&self) -> Duration {
        self.retry_delay_max.saturating_add(self.response_limit())
    }

    /// Returns the time limit of one request, including the confirmations of its replicas.
    pub(crate) fn response_limit(&self) -> Duration {
        self.response_timeout.saturating_add(self.confirmation_limit())
    }

    /// Returns true if changes must be confirmed before they count.
    pub(crate) fn confirms(&self) -> bool {
        self.replica_wait != ReplicaWait::None || self.durability != Durability::Memory
    }

    /// Returns the extra time that a request may take for its confirmations.
    pub(crate) fn confirmation_limit(&self) -> Duration {
        let by_replicas = match (self.replica_wait, self.durability) {
            // With the last one WAITAOF asks the replicas as well.
            (ReplicaWait::None, _) | (_, Durability::All) => Duration::ZERO,
            _ => self.replica_timeout,
        };
        match self.durability {
            Durability::Memory => by_replicas,
            Durability::Master | Durability::All => by_replicas.saturating_add(self.durability_timeout),
        }
    }

    /// Returns the error of a request that took longer than [`Config::response_limit`].
    pub(crate) fn no_reply(&self) -> Error {
        Error::indefinite(ErrorKind::ResponseTimeout(self.response_limit()))
    }

    /// Returns the time for which a server remembers the result of an unlock. It exceeds the time
    /// for which the client retries after a lost reply.
    pub(crate) fn latch_ttl(&self) -> Duration {
        let repeats = self.retry_attempts.unwrap_or(REPEATS_OF_LOST);
        let once = self.response_limit() + self.retry_delay_ceiling(repeats);
        once.saturating_mul(repeats.max(1)).max(Duration::from_millis(1))
    }

    /// Returns true if a call that was retried `repeats` times may be retried once more.
    pub(crate) fn may_repeat(&self, repeats: u32) -> bool {
        self.retry_attempts.is_none_or(|most| repeats < most)
    }
}

/// The time for which a server remembers that it has granted or taken back permits that never
/// expire.
pub(crate) const PERMIT_MEMORY: Duration = Duration::from_secs(600);

/// The number of retries, each with a timeout, that fit into the memory of an unlock.
const REPEATS_OF_LOST: u32 = 4;

/// The time for which a client asks about the outcome of a request for a permit that never expires,
/// or retries it. It is well below the time for which the server remembers ([`PERMIT_MEMORY`]). No
/// release of any kind is retried for longer.
pub(crate) const PERMIT_PATIENCE: Duration = Duration::from_secs(300);

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::TokioEnv;

    #[tokio::test]
    async fn repeats_are_delayed_by_half_fixed_and_half_drawn() {
        let (config, env) = (Config::default(), TokioEnv::current().unwrap());
        for (attempt, least, most) in [(0, 500, 1000), (1, 1000, 2000), (2, 1000, 2000), (1000, 1000, 2000)] {
            for _ in 0..100 {
                let delay = config.retry_delay(&env, attempt).as_millis();
                assert!((least..=most).contains(&delay), "attempt {attempt}: {delay} ms");
            }
        }
    }

    /// By default a client repeats a release four times: each time it waits 3 s for the reply and
    /// pauses for 2 s.
    #[test]
    fn an_unlock_is_remembered_for_all_its_repeats() {
        assert_eq!(Config::default().latch_ttl(), Duration::from_secs(20));
    }

    /// Loopback addresses of other machines are no servers that a client reaches.
    #[test]
    fn a_client_follows_where_it_may() {
        let to = |servers: &[&str]| Redirects::To(servers.iter().map(ToString::to_string).collect());
        for (redirects, host, from, is_followed) in [
            (Redirects::Never, "10.0.0.2", Some("10.0.0.1"), false),
            (to(&["10.0.0.2"]), "10.0.0.2", Some("10.0.0.1"), true),
            (to(&["10.0.0.3", "10.0.0.2:6379"]), "10.0.0.2", Some("10.0.0.1"), true),
            (to(&["10.0.0.2:6380", "10.0.0.21"]), "10.0.0.2", Some("10.0.0.1"), false),
            (to(&["127.0.0.1"]), "127.0.0.1", Some("10.0.0.1"), true),
            (Redirects::Anywhere, "10.0.0.2", Some("10.0.0.1"), true),
            (Redirects::Anywhere, "127.0.0.1", Some("10.0.0.1"), false),
            (Redirects::Anywhere, "::1", Some("db.internal"), false),
            (Redirects::Anywhere, "localhost", Some("127.0.0.1"), true),
            (Redirects::Anywhere, "127.0.0.1", None, true),
        ] {
            assert_eq!(redirects.allow(host, 6379, from), is_followed, "{redirects:?} {host} {from:?}");
        }
    }

    #[test]
    fn a_request_may_take_as_long_as_its_confirmations() {
        let wait = ReplicaWait::Synced;
        for (replica_wait, durability, seconds) in [
            (ReplicaWait::None, Durability::Memory, 3),
            (wait, Durability::Memory, 4),
            (ReplicaWait::None, Durability::Master, 6),
            (wait, Durability::Master, 7),
            (wait, Durability::All, 6),
        ] {
            let config = Config { replica_wait, durability, ..Config::default() };
            assert_eq!(
                config.response_limit(),
                Duration::from_secs(seconds),
                "{replica_wait:?} {durability:?}"
            );
        }
    }

    #[test]
    fn one_server_named_twice_was_taken_for_a_set() {
        let endpoints = ["redis://10.0.0.1", "redis://u:p@10.0.0.1:6379/1"];
        let endpoints = endpoints.into_iter().map(|url| Endpoint::parse(url).unwrap()).collect();
        let error = Config { endpoints, ..Config::default() }.check().unwrap_err();
        assert!(error.to_string().contains("10.0.0.1:6379 is named twice"), "{error}");
    }
}
