//! The rate limiter, Redisson's `RRateLimiter`: so many permits in any time of a certain length.
//!
//! # What it is in Redis
//!
//! Observed from Redisson 4.7 on a real server, for the limiter `name`; `{name}` is `name` itself
//! where that has braces.
//!
//! | key | type | content |
//! | --- | --- | --- |
//! | `name` | hash | `rate`, the permits; `interval`, the window in ms; `type`, 0 for all clients together and 1 for each client by itself; `keepAliveTime` in ms, 0 for none |
//! | `{name}:value` | string | the permits that are left, as of the last look |
//! | `{name}:permits` | sorted set | the grants of the window, by their time in Unix ms. A member is the byte 16, 16 random bytes, and the number of permits in four bytes, the lowest first |
//!
//! Of type 1 the last two are `{name}:value:CLIENT` and `{name}:permits:CLIENT`, with the id of the
//! client.
//!
//! * A look takes grants out whose time plus the window is over, adds their permits to those that
//!   are left, and grants by a new member and fewer permits left. The time is that of the client,
//!   which sends it along. Without `value` there are as many permits left as the rate has, whatever
//!   is in the set.
//! * A refused caller learns when the oldest grant ends, and asks again then: no message is
//!   published. A request for more permits than the rate has is an error, and so is one to a
//!   limiter without a rate. `tryAcquire(n, wait)` is false at the end of `wait`.
//! * `trySetRate` sets the four fields where they are missing, `setRate` overwrites them and
//!   deletes `value` and `permits`, of type 1 those of its own client: all permits are there again.
//! * With a `keepAliveTime` each request, refused or not, gives the three keys that time to live.
//!   Otherwise the last two get the time to live of the first, if it has one.
//!
//! Processes of both kinds share a limiter. What is different here: the time is the server's, that
//! of a grant in its future is taken for now; a grant counts 1 ms longer, because times are whole
//! milliseconds; a lost `value` is counted anew from the set; `set_rate` forgets no grant; a
//! refused caller sleeps until enough grants have ended; and the two keys of a client end after two
//! windows without a grant.

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
    /// So many permits in any time of a certain length, by the server's clock.
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

/// Whose permits a [`RateLimiter`] counts together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateMode {
    /// The permits of all clients together.
    Overall,
    /// The permits of each client by itself: each has the whole rate.
    PerClient,
}

/// The rate of a [`RateLimiter`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateConfig {
    /// Whose permits are counted together.
    pub mode: RateMode,
    /// How many permits there are in each window.
    pub rate: u32,
    /// The length of the window, in whole milliseconds.
    pub interval: Duration,
}

/// The handle of a rate limiter: [`Client::rate_limiter`]. Cheap to clone; holds nothing by itself.
///
/// In any window of the interval there are no more grants than the rate, by the clock of the
/// server. When that is set forward, or a failover loses grants, there may be more in true time.
/// When it is set back, those granted before count for one more interval. It needs Redis 5 or
/// later, whose scripts may read the clock.
///
/// # Lost replies
///
/// A request whose reply is lost is sent again under the name of the first, which the server finds
/// among the grants of the window: permits are taken once. When it is found only after the window,
/// there is nothing left of it to count.
///
/// # What the user of the server must be allowed to do
///
/// It is [in the documentation of the
/// crate](crate#what-the-user-of-the-server-must-be-allowed-to-do).
#[derive(Clone)]
pub struct RateLimiter(Counter);

impl RateLimiter {
    /// Sets the rate, unless there is one; false when there is. The interval counts in whole
    /// milliseconds.
    ///
    /// # Cancel safety
    /// When the future is dropped the request is seen through in the background, and so it is when
    /// the client's [`call_timeout`](crate::Builder::call_timeout) is over.
    ///
    /// # Errors
    /// When no server answers in time, when the rate is zero or above 2,147,483,647, and when the
    /// interval is below 10 ms or above ten years.
    pub async fn try_set_rate(&self, mode: RateMode, rate: u32, interval: Duration) -> Result<bool> {
        self.set(mode, rate, interval, true).await
    }

    /// Sets the rate. What was granted before counts on, so that a lower rate may leave nothing for
    /// a while. Of [`RateMode::PerClient`] another client may use its old number of permits up
    /// until its window is empty once.
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

    /// The rate; `None` when there is none.
    ///
    /// # Errors
    /// When Redis cannot be asked.
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

    /// How many permits could be taken now.
    ///
    /// # Errors
    /// [`ErrorKind::NoRate`], and when Redis cannot be asked.
    pub async fn available(&self) -> Result<u32> {
        let left = read_count(&self.0.run_repeatable(&self.call(&AVAILABLE)).await?)?;
        u32::try_from(left).map_err(|_| self.no_rate())
    }

    /// Waits until so many permits are there and takes them, all at once. No order is kept among
    /// waiters.
    ///
    /// # Cancel safety
    /// When the future is dropped, a request that is under way may still take permits, which end
    /// with the window.
    ///
    /// # Errors
    /// [`ErrorKind::NoRate`] when no rate is set, [`ErrorKind::OverRate`] when the rate is lower,
    /// when no permits are asked for, and when no server answers within the client's
    /// [`call_timeout`](crate::Builder::call_timeout).
    pub async fn acquire(&self, permits: u32) -> Result<()> {
        // Without a limit there is no coming to nothing.
        self.acquire_within(permits, WaitLimit::Unbounded).await?.ok_or_else(Error::shutdown)
    }

    /// Takes so many permits if they are there now; false when they are not. Cancel safe as
    /// [`RateLimiter::acquire`].
    ///
    /// # Errors
    /// As [`RateLimiter::acquire`].
    pub async fn try_acquire(&self, permits: u32) -> Result<bool> {
        Ok(self.acquire_within(permits, WaitLimit::NoWait).await?.is_some())
    }

    /// Waits for so many permits for at most `limit`; false when they were not there. Cancel safe
    /// as [`RateLimiter::acquire`].
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

    /// The name of a grant in the set, which no other has.
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

    /// The limiter's key in Redis.
    pub fn key(&self) -> &str {
        &self.0.key
    }
}

impl std::fmt::Debug for RateLimiter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RateLimiter").field("key", &self.key()).finish_non_exhaustive()
    }
}

/// Permits that are asked for, under one name however often.
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
        // Once it may have been sent, what became of it is not known for sure.
        let failed = |error: &Error| caller.progress.failed(&error.clone().made_indefinite());
        let until = session.env().boottime() + session.config.call_timeout;
        // A grant that has left its window is of no more use.
        let memory = Duration::MAX;
        let persistence = Persistence { until, is_unlimited: false, memory, failed: &failed };
        let done = session.router.run_remembered(&call, Confirm::AsConfigured, &persistence).await;
        let reply = match done {
            Ok(done) => done.reply,
            Err(error) => return Err(self.limiter.0.explained(call.keys(), error).await),
        };
        match reply {
            Value::Nil => Ok(Answer::Got(())),
            Value::Int(ms @ 1..) => Ok(Answer::Busy(Sleep::Left(Duration::from_millis(ms.unsigned_abs())))),
            Value::Int(-1) => Err(self.limiter.no_rate()),
            Value::Int(-2) => Err(self.limiter.over_rate(self.permits)),
            other => Err(Error::unexpected(&other)),
        }
    }

    /// The rate may be another one meanwhile.
    fn sleep(&mut self, busy: Sleep) -> Duration {
        let most = self.limiter.0.session.config.watchdog_timeout;
        match busy {
            Sleep::Left(left) => left.min(most),
            Sleep::Unknown => most,
        }
    }

    /// A request repeats by itself.
    fn repeat_delay(&self, _repeats: u32) -> Option<Duration> {
        None
    }
}
