//! Settings and their defaults, which are Redisson's where Redisson has the setting.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use redis::IntoConnectionInfo;

use crate::env::{Env, draw};
use crate::error::{Error, ErrorKind, Result};
use crate::tls::Connector;
#[cfg(feature = "tls")]
use crate::tls::Tls;

/// How many replicas must confirm a change before it counts.
///
/// Each change is followed by `WAIT` on the same connection. No setting makes Redis linearizable: a replica that
/// has not confirmed may still be the one that is promoted, unless it is [`ReplicaWait::All`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReplicaWait {
    /// Do not ask.
    #[default]
    None,
    /// One confirmation, when the master has any connected replica (Redisson's `checkLockSyncedSlaves`).
    Synced,
    /// As many as make a majority of all nodes together with the master.
    Majority,
    /// Every replica.
    All,
}

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    Tcp {
        host: String,
        port: u16,
    },
    /// A socket in the file system of this machine.
    Unix(PathBuf),
}

/// Whether connections to a server are made with TLS.
#[derive(Debug, Clone)]
pub(crate) enum Security {
    None,
    /// As the settings of the client say, which are not known yet. No connection is made without them.
    Wanted,
    #[cfg_attr(not(feature = "tls"), expect(dead_code, reason = "there is no connector"))]
    By(Connector),
}

/// Where a server is and how to log in, read from a URL: `redis[s]://[user[:password]@]host[:port][/db]` or
/// `redis+unix:///path[?db=..&user=..&pass=..]`.
#[derive(Debug, Clone)]
pub(crate) struct Endpoint {
    pub(crate) place: Place,
    pub(crate) security: Security,
    pub(crate) login: redis::RedisConnectionInfo,
}

impl Endpoint {
    /// Whether both lead to the same port of the same host, or to the same socket, as they are written.
    pub(crate) fn is_same_place(&self, other: &Self) -> bool {
        self.place == other.place
    }

    pub(crate) fn parse(url: &str) -> Result<Self> {
        // The URL may hold a password, so that errors do not repeat it.
        let bad = |error: &str| Error::config(format!("bad redis URL: {error}"));
        let mut parsed = redis::parse_redis_url(url).ok_or_else(|| bad("it does not parse"))?;
        // Which TLS there is depends on our features and not on those of the crate that reads the rest.
        let secure = matches!(parsed.scheme(), "rediss" | "valkeys");
        if secure {
            if cfg!(not(feature = "tls")) {
                return Err(Error::config("rediss:// needs the feature `tls` of lockstorm-client"));
            }
            parsed.set_scheme("redis").map_err(|()| bad("its scheme does not fit"))?;
        }
        let info = parsed.into_connection_info().map_err(|error| bad(&error.to_string()))?;
        let (place, parameters): (_, &[_]) = match info.addr() {
            redis::ConnectionAddr::Tcp(host, port) => {
                (Place::Tcp { host: host.clone(), port: *port }, &["protocol"])
            }
            redis::ConnectionAddr::Unix(path) => {
                (Place::Unix(path.clone()), &["protocol", "db", "user", "pass"])
            }
            _ => return Err(Error::config("only redis://, rediss:// and redis+unix:// are supported")),
        };
        check_parameters(url, parameters)?;
        let security = if secure { Security::Wanted } else { Security::None };
        Ok(Self { place, security, login: info.redis_settings().clone() })
    }
}

/// A parameter that means nothing here would be taken for one that works. Their values are not repeated in errors either.
fn check_parameters(url: &str, known: &[&str]) -> Result<()> {
    let Some(url) = redis::parse_redis_url(url) else { return Ok(()) };
    for (name, _) in url.query_pairs() {
        if !known.contains(&&*name) {
            let known = known.join("`, `");
            return Err(Error::config(format!(
                "unknown parameter `{name}` in a redis URL: there is only `{known}`"
            )));
        }
    }
    if url.fragment().is_some() {
        return Err(Error::config("a redis URL has no part behind `#`"));
    }
    Ok(())
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.place {
            Place::Tcp { host, port } => write!(f, "{host}:{port}"),
            Place::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

/// Turns the name the application uses into the one in Redis.
pub(crate) type NameMapper = Arc<dyn Fn(&str) -> String + Send + Sync>;

#[derive(Clone)]
pub(crate) struct Config {
    pub(crate) endpoints: Vec<Endpoint>,
    /// How long the caller of one operation waits for its outcome.
    pub(crate) call_timeout: Duration,
    pub(crate) response_timeout: Duration,
    pub(crate) connect_timeout: Duration,
    pub(crate) retry_attempts: u32,
    /// The delay before the first repeat is drawn from half of this to all of it; it doubles up to `retry_delay_max`.
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
            call_timeout: Duration::from_secs(10),
            response_timeout: Duration::from_secs(3),
            connect_timeout: Duration::from_secs(10),
            retry_attempts: 4,
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
        let open = self.endpoints.iter().find(|endpoint| matches!(endpoint.security, Security::None));
        if let (Some(_), Some(open)) = (tls, open) {
            return Err(Error::config(format!(
                "{open} would be reached without the TLS that is set: its URL is no rediss://"
            )));
        }
        let tls = tls.cloned().unwrap_or_default();
        let mut config = None;
        for endpoint in &mut self.endpoints {
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

    pub(crate) fn check(&self) -> Result<()> {
        if self.endpoints.is_empty() {
            return Err(Error::config("no endpoint"));
        }
        for (at, endpoint) in self.endpoints.iter().enumerate() {
            if self.endpoints[..at].iter().any(|other| other.is_same_place(endpoint)) {
                return Err(Error::config(format!("{endpoint} is named twice, and one server is no set")));
            }
        }
        for (what, value) in [
            ("call time-out", self.call_timeout),
            ("response time-out", self.response_timeout),
            ("connect time-out", self.connect_timeout),
            ("watchdog time-out", self.watchdog_timeout),
            ("subscription time-out", self.subscription_timeout),
        ] {
            check_lease(what, value)?;
        }
        Ok(())
    }

    /// The delay before repeat number `attempt`, which counts from 0: equal jitter, half fixed and half drawn.
    pub(crate) fn retry_delay(&self, env: &dyn Env, attempt: u32) -> Duration {
        let half = self.retry_delay_ceiling(attempt) / 2;
        half + Duration::from_micros(draw(env, u64::try_from(half.as_micros()).unwrap_or(u64::MAX)))
    }

    fn retry_delay_ceiling(&self, attempt: u32) -> Duration {
        self.retry_delay.saturating_mul(1 << attempt.min(20)).min(self.retry_delay_max)
    }

    /// How long one request may take, with the confirmations of its replicas.
    pub(crate) fn response_limit(&self) -> Duration {
        match self.replica_wait {
            ReplicaWait::None => self.response_timeout,
            _ => self.response_timeout + self.replica_timeout,
        }
    }

    /// The error of a request that took longer than [`Config::response_limit`].
    pub(crate) fn no_reply(&self) -> Error {
        Error::indefinite(ErrorKind::ResponseTimeout(self.response_limit()))
    }

    /// How long an unlock's result is remembered: longer than all its repeats can take.
    pub(crate) fn latch_ttl(&self) -> Duration {
        let once = self.response_timeout + self.retry_delay_ceiling(self.retry_attempts);
        once.saturating_mul(self.retry_attempts.max(1)).max(Duration::from_millis(1))
    }
}

/// How long a server remembers that it has granted or taken back permits that never end by themselves.
pub(crate) const PERMIT_MEMORY: Duration = Duration::from_secs(600);

/// How long a client asks what became of such a request, or repeats it: well within the time for which the server knows.
pub(crate) const PERMIT_PATIENCE: Duration = Duration::from_secs(300);

/// Redis counts whole milliseconds, a lease of zero would delete the key, and of one as short as [`drift_margin`](crate::wire::drift_margin)
/// nothing is left to hold.
pub(crate) fn check_lease(what: &str, lease: Duration) -> Result<()> {
    const MOST: Duration = Duration::from_secs(10 * 365 * 24 * 3600);
    if lease < Duration::from_millis(10) || lease > MOST {
        return Err(Error::config(format!("the {what} must be from 10 ms to ten years, not {lease:?}")));
    }
    Ok(())
}

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
    fn leases_that_cannot_work_are_refused() {
        for (lease, works) in [
            (Duration::ZERO, false),
            (Duration::from_millis(9), false),
            (Duration::from_millis(10), true),
            (Duration::from_secs(3600), true),
            (Duration::MAX, false),
        ] {
            assert_eq!(check_lease("lease", lease).is_ok(), works, "{lease:?}");
        }
    }

    #[test]
    fn urls() {
        let parsed = Endpoint::parse("redis://user:secret@10.0.0.1:7000/3").unwrap();
        assert_eq!((parsed.to_string().as_str(), parsed.login.db()), ("10.0.0.1:7000", 3));
        assert_eq!(parsed.login.username(), Some("user"));
        let parsed = Endpoint::parse("redis+unix:///run/redis.sock?db=3&user=clerk&pass=secret").unwrap();
        assert_eq!((parsed.to_string().as_str(), parsed.login.db()), ("/run/redis.sock", 3));
        assert_eq!(parsed.login.username(), Some("clerk"));
        for bad in ["", "10.0.0.1", "http://10.0.0.1", "redis+unix://"] {
            assert!(Endpoint::parse(bad).unwrap_err().is_definite(), "{bad}");
        }
    }

    #[test]
    fn a_secure_url_needs_the_feature() {
        let parsed = Endpoint::parse("rediss://user:secret@10.0.0.1/3");
        if cfg!(feature = "tls") {
            let parsed = parsed.unwrap();
            assert!(matches!(parsed.security, Security::Wanted));
            assert_eq!((parsed.to_string().as_str(), parsed.login.db()), ("10.0.0.1:6379", 3));
        } else {
            let error = parsed.unwrap_err();
            assert!(error.is_definite() && error.to_string().contains("the feature `tls`"), "{error}");
        }
    }

    /// `redis://host?timeout=5` looked as if it set something.
    #[test]
    fn unknown_url_parameters_were_accepted() {
        Endpoint::parse("redis://10.0.0.1?protocol=resp3").unwrap();
        for (bad, named) in [
            ("redis://10.0.0.1?timeout=5", "`timeout`"),
            ("redis://10.0.0.1/3?protocol=resp2&ssl=secret", "`ssl`"),
            ("redis://10.0.0.1#insecure", "`#`"),
            ("redis://10.0.0.1?db=1", "`db`"),
            ("redis+unix:///run/redis.sock?pass=secret&timeout=5", "`timeout`"),
        ] {
            let error = Endpoint::parse(bad).unwrap_err().to_string();
            assert!(error.contains(named) && !error.contains("secret"), "{bad}: {error}");
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
