//! The rate limiter, Redisson's `RRateLimiter`: a number of permits in any window of a given
//! length.
//!
//! # Data in Redis
//!
//! Observed from Redisson 4.7 on a real server, for the limiter `name`. If `name` has braces,
//! `{name}` stands for `name` itself.
//!
//! | key | type | content |
//! | --- | --- | --- |
//! | `name` | hash | `rate`, the permits; `interval`, the window in ms; `type`, 0 for all clients together and 1 for each client by itself; `keepAliveTime` in ms, 0 for none |
//! | `{name}:value` | string | the permits that are left, as of the last request |
//! | `{name}:permits` | sorted set | the grants of the window, by their time in Unix ms. A member is the byte 16, 16 random bytes, and the number of permits in four bytes, the lowest first |
//!
//! For type 1 the last two keys are `{name}:value:CLIENT` and `{name}:permits:CLIENT`, with the id
//! of the client.
//!
//! * A request removes the grants whose time plus the window is over, and adds their permits to
//!   those that are left. A grant adds a new member and subtracts its permits. The client sends the
//!   time with the request. If `value` does not exist, as many permits are left as the rate,
//!   whatever the set contains.
//! * A refused caller gets the time at which the oldest grant ends, and asks again then: no message
//!   is published. A request for more permits than the rate, or to a limiter without a rate, is an
//!   error. `tryAcquire(n, wait)` returns false at the end of `wait`.
//! * `trySetRate` sets the four fields if they do not exist. `setRate` overwrites them and deletes
//!   `value` and `permits` (for type 1, those of its own client): all permits are available again.
//! * With a `keepAliveTime` each request, refused or not, sets the TTL of the three keys to it.
//!   Otherwise the last two get the TTL of the first, if it has one.
//!
//! Processes of both kinds can share a limiter. Differences here:
//!
//! * The time is the server's. A grant with a time in the server's future is dated to now.
//! * A grant counts 1 ms longer, because times are whole milliseconds.
//! * If `value` is lost, it is computed again from the set.
//! * `set_rate` forgets no grant.
//! * A refused caller sleeps until enough grants have ended.
//! * The two keys of a client expire after two windows without a grant.

use std::time::Duration;

use redis::Value;

use crate::attempt::{Answer, Sleep, read_number};
use crate::client::Client;
use crate::config::millis;
use crate::error::{Error, ErrorKind, Result};
use crate::limits::{RATE, RATE_INTERVAL};
use crate::locks::semaphore::{Change, Counter, read_count};
use crate::rights;
use crate::route::{Confirm, Persistence};
use crate::script::{Call, Script, script};
use crate::wait::{Caller, WaitLimit, Wanted, wait};
use crate::wire::{rate_grants, rate_permits, unlock_latch};

script!(ACQUIRE, "window.lua", "acquire.lua");
script!(AVAILABLE, "window.lua", "available.lua");
script!(SET_RATE, "window.lua", "set_rate.lua");

impl Client {
    /// Returns a handle on a limit of permits in any window of a given length, by the server's
    /// clock.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> lockstorm_client::Result<()> {
    /// # let server = lockstorm_sim::TestServer::start().await.expect("a free port");
    /// # let url = server.url();
    /// # let client = lockstorm_client::Client::connect(&url).await?;
    /// use lockstorm_client::RateMode;
    /// let calls = client.rate_limiter("calls");
    /// calls.try_set_rate(RateMode::Overall, 100, Duration::from_secs(1)).await?;
    /// calls.acquire(1).await?; // waits while there were a hundred in the last second
    /// assert_eq!(calls.available().await?, 99);
    /// # Ok(()) }
    /// ```
    pub fn rate_limiter(&self, name: &str) -> RateLimiter {
        RateLimiter(Counter::new(self.session.clone(), &rights::RATE_LIMITER, name))
    }
}

/// The scope in which a [`RateLimiter`] counts permits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateMode {
    /// Counts the permits of all clients together.
    Overall,
    /// Counts the permits of each client separately: each has the whole rate.
    PerClient,
}

/// The rate of a [`RateLimiter`], the same for all its clients: it is stored in Redis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateConfig {
    /// The scope in which permits are counted.
    pub mode: RateMode,
    /// The number of permits in each window.
    pub rate: u32,
    /// The length of the window, in whole milliseconds.
    pub interval: Duration,
}

/// The handle of a rate limiter: [`Client::rate_limiter`]. Cheap to clone; it holds nothing by
/// itself.
///
/// In any window of the interval the grants do not exceed the rate, by the server's clock. If that
/// clock is set forward, or a failover loses grants, there may be more in true time. If it is set
/// back, the grants made before count for one more interval. Needs Redis 5 or later, where scripts
/// may read the clock.
///
/// # Lost replies
///
/// After a lost reply the request is retried under the same name. The server finds that name among
/// the grants of the window, so permits are taken once. If the retry comes only after the window,
/// the first grant no longer counts.
///
/// # What the user of the server must be allowed to do
///
/// The crate documentation [lists the
/// rights](crate#what-the-user-of-the-server-must-be-allowed-to-do).
#[derive(Clone)]
pub struct RateLimiter(Counter);

impl RateLimiter {
    /// Sets the rate if none is set. Returns false if one is. The interval is counted in whole
    /// milliseconds.
    ///
    /// # Cancel safety
    /// When the future is dropped, or the client's [`call_timeout`](crate::Builder::call_timeout)
    /// is over, the request is completed in the background.
    ///
    /// # Errors
    /// When no server answers in time, when the rate is zero or above 2,147,483,647, and when the
    /// interval is below 10 ms or above ten years.
    pub async fn try_set_rate(&self, mode: RateMode, rate: u32, interval: Duration) -> Result<bool> {
        self.set(mode, rate, interval, true).await
    }

    /// Sets the rate. Earlier grants still count, so a lower rate may leave no permits for a while.
    /// With [`RateMode::PerClient`] another client may use up its old number of permits until its
    /// window is empty once.
    ///
    /// # Cancel safety
    /// As [`RateLimiter::try_set_rate`].
    ///
    /// # Errors
    /// As [`RateLimiter::try_set_rate`].
    pub async fn set_rate(&self, mode: RateMode, rate: u32, interval: Duration) -> Result<()> {
        self.set(mode, rate, interval, false).await.map(drop)
    }

    async fn set(&self, mode: RateMode, rate: u32, interval: Duration, only_new: bool) -> Result<bool> {
        RATE_INTERVAL.check(interval)?;
        if !RATE.takes(rate) {
            return Err(Error::config(format!("the rate must be from 1 to {}, not {rate}", RATE.most)));
        }
        let keys = self.keys();
        let write = move |change: &Change<'_>, _publish: &str| {
            let keys = keys.clone().into_iter().chain([unlock_latch(change.key, change.request)]);
            let call =
                SET_RATE.call(keys.chain(change.spent.iter().cloned())).arg(rate).arg(millis(interval));
            call.arg(u8::from(mode == RateMode::PerClient)).arg(u8::from(only_new)).arg(change.memory_ms)
        };
        Ok(read_count(&self.0.change(write).await?)? == 1)
    }

    /// Returns the rate, or `None` if none is set.
    ///
    /// # Errors
    /// When no server answers in time or the server refuses the query.
    pub async fn config(&self) -> Result<Option<RateConfig>> {
        let mut question = redis::cmd("HMGET");
        let reply = self.0.ask(question.arg(self.key()).arg(&["rate", "interval", "type"])).await?;
        let unexpected = || Error::unexpected(&reply);
        let Value::Array(fields) = &reply else { return Err(unexpected()) };
        let [rate, interval, mode] = fields.as_slice() else { return Err(unexpected()) };
        let (Some(rate), Some(interval)) = (read_number(rate)?, read_number(interval)?) else {
            return Ok(None);
        };
        Ok(Some(RateConfig {
            mode: if read_number(mode)? == Some(1) { RateMode::PerClient } else { RateMode::Overall },
            rate: u32::try_from(rate).map_err(|_| unexpected())?,
            interval: Duration::from_millis(interval),
        }))
    }

    /// Returns the number of permits that could be taken now.
    ///
    /// # Errors
    /// [`ErrorKind::NoRate`], and when no server answers in time or the server refuses the query.
    pub async fn available(&self) -> Result<u32> {
        let left = read_count(&self.0.run_repeatable(&self.call(&AVAILABLE)).await?)?;
        u32::try_from(left).map_err(|_| self.no_rate())
    }

    /// Waits until `permits` permits are available and takes them all together. Waiters are served
    /// in no particular order.
    ///
    /// # Cancel safety
    /// When the future is dropped, a request under way may still take permits. They end with the
    /// window.
    ///
    /// # Errors
    /// [`ErrorKind::NoRate`] when no rate is set, [`ErrorKind::OverRate`] when the rate is lower
    /// than `permits`, when `permits` is zero, and when no server answers within the client's
    /// [`call_timeout`](crate::Builder::call_timeout).
    pub async fn acquire(&self, permits: u32) -> Result<()> {
        // An acquisition without a limit never ends with `None`.
        self.acquire_within(permits, WaitLimit::Unbounded).await?.ok_or_else(Error::shutdown)
    }

    /// Takes `permits` permits if they are available now; returns false if not. Cancel safe as
    /// [`RateLimiter::acquire`].
    ///
    /// # Errors
    /// As [`RateLimiter::acquire`].
    pub async fn try_acquire(&self, permits: u32) -> Result<bool> {
        Ok(self.acquire_within(permits, WaitLimit::NoWait).await?.is_some())
    }

    /// Waits for `permits` permits, for at most `limit`; returns false if they were not available.
    /// Cancel safe as [`RateLimiter::acquire`].
    ///
    /// # Errors
    /// As [`RateLimiter::acquire`].
    pub async fn try_acquire_for(&self, permits: u32, limit: Duration) -> Result<bool> {
        Ok(self.acquire_within(permits, WaitLimit::For(limit)).await?.is_some())
    }

    async fn acquire_within(&self, permits: u32, limit: WaitLimit) -> Result<Option<()>> {
        self.0.router()?;
        if permits < RATE.least {
            return Err(Error::config("no permits are asked for"));
        }
        if permits > RATE.most {
            return Err(self.over_rate(permits));
        }
        let member = self.member(permits);
        wait(&self.0.session, limit, Permits { limiter: self.clone(), permits, member }).await
    }

    /// Makes a unique member for a grant in the set.
    fn member(&self, permits: u32) -> Vec<u8> {
        let env = self.0.session.env();
        let (one, other) = (env.random().to_be_bytes(), env.random().to_be_bytes());
        [&[16][..], &one, &other, &permits.to_le_bytes()].concat()
    }

    fn keys(&self) -> [String; 5] {
        let (key, client) = (self.key(), &self.0.session.client_id);
        let (permits, grants) = (rate_permits(key), rate_grants(key));
        let of_client = [format!("{permits}:{client}"), format!("{grants}:{client}")];
        let [permits_of_client, grants_of_client] = of_client;
        [key.to_owned(), permits, permits_of_client, grants, grants_of_client]
    }

    fn call(&self, script: &'static Script) -> Call {
        script.call(self.keys())
    }

    fn no_rate(&self) -> Error {
        Error::definite(ErrorKind::NoRate { limiter: self.key().to_owned() })
    }

    fn over_rate(&self, permits: u32) -> Error {
        Error::definite(ErrorKind::OverRate { limiter: self.key().to_owned(), permits })
    }

    /// Returns the limiter's key in Redis.
    pub fn key(&self) -> &str {
        &self.0.key
    }
}

impl std::fmt::Debug for RateLimiter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RateLimiter").field("key", &self.key()).finish_non_exhaustive()
    }
}

/// A request for permits, with the same member in all retries.
struct Permits {
    limiter: RateLimiter,
    permits: u32,
    member: Vec<u8>,
}

impl Wanted for Permits {
    type Got = ();

    async fn ask(&mut self, caller: &mut Caller<()>) -> Result<Answer<()>> {
        let session = &self.limiter.0.session;
        let call = self.limiter.call(&ACQUIRE).arg(self.permits).bytes(self.member.clone());
        let _turn = caller.turn(session).await?;
        caller.progress.sent();
        // Once the request may have been sent, its outcome is unknown.
        let failed = |error: &Error| caller.progress.failed(&error.clone().made_indefinite());
        let until = session.env().boottime() + session.config.call_timeout;
        // No limit is needed: a grant that has left its window does not count any more.
        let memory = Duration::MAX;
        let persistence = Persistence { until, is_unlimited: false, memory, failed: &failed };
        let done = session.router.run_remembered(&call, Confirm::AsConfigured, &persistence).await;
        let reply = match done {
            Ok(done) => done.reply,
            Err(error) => return Err(self.limiter.0.explained(&call.keys(), error).await),
        };
        match reply {
            Value::Nil => Ok(Answer::Got(())),
            Value::Int(ms @ 1..) => Ok(Answer::Busy(Sleep::Left(Duration::from_millis(ms.unsigned_abs())))),
            Value::Int(-1) => Err(self.limiter.no_rate()),
            Value::Int(-2) => Err(self.limiter.over_rate(self.permits)),
            other => Err(Error::unexpected(&other)),
        }
    }

    /// Limited, because the rate may change during the sleep.
    fn sleep(&mut self, busy: Sleep) -> Duration {
        let most = self.limiter.0.session.config.watchdog_timeout;
        match busy {
            Sleep::Left(left) => left.min(most),
            Sleep::Unknown => most,
        }
    }

    /// The router retries the request itself.
    fn repeat_delay(&self, _repeats: u32) -> Option<Duration> {
        None
    }
}
