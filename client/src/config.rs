//! Settings and their defaults, which are Redisson's where Redisson has the setting.

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

/// How many replicas must confirm a change before it counts.
///
/// Each change is followed by `WAIT` on the same connection. No setting makes Redis linearizable: a
/// replica that has not confirmed may still be the one that is promoted, unless it is
/// [`ReplicaWait::All`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReplicaWait {
    /// Do not ask.
    #[default]
    None,
    /// One confirmation, when the master has any connected replica (Redisson's
    /// `checkLockSyncedSlaves`). A replica that has become the master has none until the others
    /// have found it: what it grants by then is not confirmed.
    Synced,
    /// As many as make a majority of all nodes together with the master. Replicas that are down
    /// count: while too few are there, nothing is granted.
    Majority,
    /// Every replica, also those that are down: while one is missing, nothing is granted.
    All,
}

/// Turns the name the application uses into the one in Redis.
pub(crate) type NameMapper = Arc<dyn Fn(&str) -> String + Send + Sync>;

#[derive(Clone)]
pub(crate) struct Config {
    pub(crate) endpoints: Vec<Endpoint>,
    /// What the endpoints are.
    pub(crate) topology: Topology,
    /// How often Sentinels or nodes of a cluster are asked for the masters, if the default does not
    /// do.
    pub(crate) scan_interval: Option<Duration>,
    /// How long the caller of one operation waits for its outcome.
    pub(crate) call_timeout: Duration,
    pub(crate) response_timeout: Duration,
    pub(crate) connect_timeout: Duration,
    /// `None`: as many as the time of a call allows.
    pub(crate) retry_attempts: Option<u32>,
    /// The delay before the first repeat is drawn from half of this to all of it; it doubles up to
    /// `retry_delay_max`.
    pub(crate) retry_delay: Duration,
    pub(crate) retry_delay_max: Duration,
    /// The lease that the watchdog writes; it renews every third of it.
    pub(crate) watchdog_timeout: Duration,
    /// Locks per renewal script.
    pub(crate) renew_batch: usize,
    /// How long a queued waiter of a fair lock counts as alive when it gave no wait of its own.
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
    /// Has connections to the `rediss://` endpoints made as `tls` says, or by default.
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

    /// The deployments that two clients have in common make them no independent ones. What names
    /// this one: its servers or, where Sentinels or nodes of a cluster tell which these are, what
    /// they are asked for.
    pub(crate) fn deployment(&self) -> impl Iterator<Item = String> + '_ {
        let master = match &self.topology {
            Topology::Sentinel { master, .. } => format!("{master} by "),
            Topology::Set | Topology::Cluster => String::new(),
        };
        self.endpoints.iter().map(move |endpoint| format!("{master}{endpoint}"))
    }

    /// The number of the database that has the keys.
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

    /// The delay before repeat number `attempt`, which counts from 0: equal jitter, half fixed and
    /// half drawn.
    pub(crate) fn retry_delay(&self, env: &dyn Env, attempt: u32) -> Duration {
        let half = self.retry_delay_ceiling(attempt) / 2;
        half + Duration::from_micros(draw(env, u64::try_from(half.as_micros()).unwrap_or(u64::MAX)))
    }

    fn retry_delay_ceiling(&self, attempt: u32) -> Duration {
        self.retry_delay.saturating_mul(1 << attempt.min(20)).min(self.retry_delay_max)
    }

    /// How long one request may take, with the confirmations of its replicas.
    pub(crate) fn response_limit(&self) -> Duration {
        self.response_timeout + self.confirmation_limit()
    }

    /// How much longer a request may take because replicas confirm it.
    pub(crate) fn confirmation_limit(&self) -> Duration {
        match self.replica_wait {
            ReplicaWait::None => Duration::ZERO,
            _ => self.replica_timeout,
        }
    }

    /// The error of a request that took longer than [`Config::response_limit`].
    pub(crate) fn no_reply(&self) -> Error {
        Error::indefinite(ErrorKind::ResponseTimeout(self.response_limit()))
    }

    /// How long an unlock's result is remembered: longer than it is repeated once a reply was lost.
    pub(crate) fn latch_ttl(&self) -> Duration {
        let repeats = self.retry_attempts.unwrap_or(REPEATS_OF_LOST);
        let once = self.response_limit() + self.retry_delay_ceiling(repeats);
        once.saturating_mul(repeats.max(1)).max(Duration::from_millis(1))
    }

    /// Whether a call is repeated once more that was repeated so often.
    pub(crate) fn may_repeat(&self, repeats: u32) -> bool {
        self.retry_attempts.is_none_or(|most| repeats < most)
    }
}

/// How long a server remembers that it has granted or taken back permits that never end by
/// themselves.
pub(crate) const PERMIT_MEMORY: Duration = Duration::from_secs(600);

/// How many repeats with time-outs fit into the memory of an unlock.
const REPEATS_OF_LOST: u32 = 4;

/// How long a client asks what became of such a request, or repeats it: well within the time for
/// which the server knows. No release of whatever is repeated for longer.
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

    /// Four repeats of 3 s for the reply and 2 s of delay.
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
