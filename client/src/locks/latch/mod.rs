//! The count-down latch, Redisson's `RCountDownLatch`: a number that some count down while others
//! wait for zero.

use std::time::Duration;

use crate::attempt::{Answer, Sleep};
use crate::client::Client;
use crate::error::{Error, Result};
use crate::explain::explained_alone;
use crate::limits::LATCH_COUNT;
use crate::locks::semaphore::{Change, Counter, read_count};
use crate::rights;
use crate::script::{Script, script};
use crate::wait::{Caller, WaitLimit, Wanted, wait};
use crate::wake::{Subscription, Wake, Wakes};
use crate::wire::{Slot, latch_channel, unlock_latch};

script!(TRY_SET, "repeat.lua", "try_set.lua");
script!(COUNT_DOWN, "repeat.lua", "count_down.lua");
script!(DELETE, "repeat.lua", "delete.lua");

impl Client {
    /// Returns a handle on a count that several callers count down and several wait for.
    ///
    /// The latch is closed after [`try_set`](Latch::try_set) until it was counted down that many
    /// times. A latch that was never set, was counted down to zero, was deleted or has expired is
    /// open.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> lockstorm_client::Result<()> {
    /// # let server = lockstorm_sim::TestServer::start().await.expect("a free port");
    /// # let url = server.url();
    /// # let client = lockstorm_client::Client::connect(&url).await?;
    /// let ready = client.latch("ready");
    /// ready.try_set(2).await?;
    /// ready.count_down().await?; // here, or in another process
    /// assert_eq!(ready.count().await?, 1);
    /// ready.count_down().await?;
    /// ready.wait().await?;
    /// # Ok(()) }
    /// ```
    pub fn latch(&self, name: &str) -> Latch {
        Latch(Counter::new(self.session.clone(), &rights::LATCH, name))
    }
}

/// The handle of a count-down latch: [`Client::latch`]. Cheap to clone; it holds nothing by itself.
///
/// # Lost replies
///
/// Nothing is counted down twice. The server remembers each change for ten minutes, in a separate
/// key that Redisson ignores. After a lost reply the client ends the old connection on the server
/// and retries the same request for five minutes. If the outcome is still unknown then, it returns
/// an error that is not [definite](Error::is_definite).
///
/// # Latches that vanish
///
/// The key of a latch may vanish without a message: by expiry, if someone gave it a TTL, or by
/// FLUSHALL. A waiter therefore checks again after
/// [`watchdog_timeout`](crate::Builder::watchdog_timeout), 30 s by default, and whenever its client
/// has subscribed again. It continues once the latch does not exist any more, while Redisson's
/// waiters keep waiting.
///
/// # Names with braces, in a cluster
///
/// The name of the latch's channel always adds braces, so with a name such as `my{tag}` its slot
/// differs from that of the key. Redisson declares the channel as a key of its scripts, which then
/// all fail with CROSSSLOT. This client does not declare it. Where other messages stay within the
/// node of their slot (SPUBLISH), such a latch's message goes to all nodes (PUBLISH).
///
/// # What the user of the server must be allowed to do
///
/// The crate documentation [lists the
/// rights](crate#what-the-user-of-the-server-must-be-allowed-to-do).
#[derive(Clone)]
pub struct Latch(Counter);

impl Latch {
    /// Sets the count if the latch has none. Returns false if the latch is closed already.
    ///
    /// # Cancel safety
    /// When the future is dropped, or the client's [`call_timeout`](crate::Builder::call_timeout)
    /// is over, the request is completed in the background.
    ///
    /// # Errors
    /// When no server answers in time, and when `count` is zero, which would be an open latch.
    /// [`ErrorKind::NotPublished`](crate::ErrorKind::NotPublished) when the count was set, but the
    /// user may not publish that.
    pub async fn try_set(&self, count: u32) -> Result<bool> {
        if !LATCH_COUNT.takes(count) {
            return Err(Error::config("a latch with a count of zero is open already"));
        }
        Ok(self.change(&TRY_SET, Some(count)).await? == 1)
    }

    /// Counts down by one, and returns the rest. Returns `None`, and changes nothing, if the latch
    /// is open.
    ///
    /// # Cancel safety
    /// As [`Latch::try_set`].
    ///
    /// # Errors
    /// When no server answers in time. [`ErrorKind::NotPublished`](crate::ErrorKind::NotPublished)
    /// when this call has opened the latch, but the user may not publish that.
    pub async fn count_down(&self) -> Result<Option<u64>> {
        Ok(u64::try_from(self.change(&COUNT_DOWN, None).await?).ok())
    }

    /// Deletes the latch, which releases all its waiters. Returns false if it did not exist.
    ///
    /// # Cancel safety
    /// As [`Latch::try_set`].
    ///
    /// # Errors
    /// As [`Latch::count_down`].
    pub async fn delete(&self) -> Result<bool> {
        Ok(self.change(&DELETE, None).await? == 1)
    }

    async fn change(&self, script: &'static Script, count: Option<u32>) -> Result<i64> {
        let write = move |change: &Change<'_>, publish: &str| {
            let keys = [change.key.to_owned(), unlock_latch(change.key, change.request)];
            let call = script.call(keys.into_iter().chain(change.spent.iter().cloned()));
            let channel = latch_channel(change.key);
            // A script can use SPUBLISH only for the shard of its own keys.
            let publish = if Slot::of(&channel) == call.slot() { publish } else { "PUBLISH" };
            let call = call.arg(publish).arg(change.memory_ms).arg(channel);
            count.into_iter().fold(call, |call, count| call.arg(count))
        };
        read_count(&self.0.change(write).await?)
    }

    /// Returns the number of times that the latch must be counted down until it opens; zero if it
    /// is open.
    ///
    /// # Errors
    /// When no server answers in time or the server refuses the query.
    pub async fn count(&self) -> Result<u64> {
        Ok(u64::try_from(self.0.left().await?).unwrap_or(0))
    }

    /// Waits until the latch is open, without a time limit. The latch was open at some time during
    /// the call.
    ///
    /// # Cancel safety
    /// Dropping the future leaves nothing behind.
    ///
    /// # Errors
    /// When no server answers within the client's [`call_timeout`](crate::Builder::call_timeout),
    /// and when the server refuses something that waiting needs.
    pub async fn wait(&self) -> Result<()> {
        // A wait without a limit never ends with `None`.
        self.wait_within(WaitLimit::Unbounded).await?.ok_or_else(Error::shutdown)
    }

    /// Waits until the latch is open, for at most `limit`. Returns false if it is still closed
    /// then. Cancel safe as [`Latch::wait`].
    ///
    /// # Errors
    /// As [`Latch::wait`].
    pub async fn wait_for(&self, limit: Duration) -> Result<bool> {
        Ok(self.wait_within(WaitLimit::For(limit)).await?.is_some())
    }

    async fn wait_within(&self, limit: WaitLimit) -> Result<Option<()>> {
        self.0.router()?;
        wait(&self.0.session, limit, Opening(self.clone())).await
    }

    /// Returns the latch's key in Redis.
    pub fn key(&self) -> &str {
        &self.0.key
    }
}

impl std::fmt::Debug for Latch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Latch").field("key", &self.key()).finish_non_exhaustive()
    }
}

/// A waiter of a latch: it is granted when the latch is open.
struct Opening(Latch);

impl Wanted for Opening {
    type Got = ();

    async fn ask(&mut self, caller: &mut Caller<()>) -> Result<Answer<()>> {
        let _turn = caller.turn(&self.0.0.session).await?;
        // The query changes nothing, even if its reply is lost.
        let failed = |error: &Error| caller.progress.failed(&error.clone().made_definite());
        let left = self.0.0.left_noting(&failed).await.map_err(Error::made_definite)?;
        Ok(if left <= 0 { Answer::Got(()) } else { Answer::Busy(Sleep::Unknown) })
    }

    fn listen(&self) -> Option<Subscription> {
        let channel = latch_channel(self.0.key());
        let (hub, slot) = (&self.0.0.session.hub, self.0.0.key.slot());
        // Every message makes all waiters check: the latch has opened, was set again, or was
        // deleted by Redisson.
        Some(Subscription::to(
            hub,
            Wakes { channel, policy: |_| Wake::All, exclusive: false, in_turns: false },
            slot,
            false,
        ))
    }

    fn sleep(&mut self, _busy: Sleep) -> Duration {
        self.0.0.session.config.watchdog_timeout
    }

    fn explained(&self, refusal: Error) -> Error {
        explained_alone(&rights::LATCH, &self.0.0.key, refusal)
    }

    /// The query itself is retried by the router.
    fn repeat_delay(&self, _repeats: u32) -> Option<Duration> {
        None
    }
}
