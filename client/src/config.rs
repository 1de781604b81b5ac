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

    /// Returns the time limit of one request, including the confirmations of its replicas.
    pub(crate) fn response_limit(&self) -> Duration {
        self.response_timeout + self.confirmation_limit()
    }

    /// Returns the extra time that a request may take for the confirmations of replicas.
    pub(crate) fn confirmation_limit(&self) -> Duration {
        match self.replica_wait {
            ReplicaWait::None => Duration::ZERO,
            _ => self.replica_timeout,
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

    /// Four retries of 3 s for the reply and 2 s of delay.
    #[test]
    fn an_unlock_is_remembered_for_all_its_repeats() {
        assert_eq!(Config::default().latch_ttl(), Duration::from_secs(20));
    }

    #[test]
    fn one_server_named_twice_was_taken_for_a_set() {
        let endpoints = ["redis://10.0.0.1", "redis://u:p@10.0.0.1:6379/1"];
        let endpoints = endpoints.into_iter().map(|url| Endpoint::parse(url).unwrap()).collect();
        let error = Config { endpoints, ..Config::default() }.check().unwrap_err();
        assert!(error.to_string().contains("10.0.0.1:6379 is named twice"), "{error}");
    }
}
