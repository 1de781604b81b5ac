//! The handle of an expirable semaphore, and the guard of its permits.

use std::sync::Arc;
use std::time::Duration;

use redis::Value;

use super::ids::{PermitId, PermitIds};
use super::{COUNT, Permits, UPDATE, release};
use crate::acquire::Acquisition;
use crate::acquire_options::{Acquire, AcquireOptions};
use crate::client::Client;
use crate::config::millis;
use crate::error::{Error, Result};
use crate::guard::Guard;
use crate::limits::{LEASE, PERMITS_WITH_IDS};
use crate::locks::semaphore::Counter;
use crate::rights;
use crate::wait::WaitLimit;
use crate::wire::permit_deadlines;

impl Client {
    /// Returns a handle on a number of permits with ids and leases. A permit comes back when its
    /// lease ends, so the permits of a process that dies are not lost.
    ///
    /// The semaphore has no permits until some are [set](PermitSemaphore::set_permits) or
    /// [added](PermitSemaphore::add_permits). If no lease is set, the watchdog renews permits until
    /// their release; Redisson's permits without a lease never end. The [plain
    /// semaphore](Client::semaphore) of the same name uses the same key for the number of permits,
    /// and should not be used beside it.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> lockstorm_client::Result<()> {
    /// # let server = lockstorm_sim::TestServer::start().await.expect("a free port");
    /// # let url = server.url();
    /// # let client = lockstorm_client::Client::connect(&url).await?;
    /// let workers = client.permit_semaphore("workers");
    /// workers.set_permits(3).await?;
    /// let one = workers.acquire(1).await?; // renewed until it is released
    /// let two = workers.acquire(2).lease(Duration::from_secs(10)).await?;
    /// assert!(workers.try_acquire(1).await?.is_none());
    /// one.release().await?; // or drop it
    /// // Handed over: another process releases them by their ids.
    /// let ids = two.forget();
    /// assert!(workers.release(&ids).await?);
    /// assert_eq!(workers.available().await?, 3);
    /// # Ok(()) }
    /// ```
    pub fn permit_semaphore(&self, name: &str) -> PermitSemaphore {
        PermitSemaphore(Counter::new(self.session.clone(), &rights::PERMIT_SEMAPHORE, name))
    }
}

/// The guard of permits with ids. The calls of [`Guard`] apply to all of its permits together. It
/// is lost as soon as one of its permits is.
pub type PermitGuard = Guard<PermitIds>;

impl PermitGuard {
    /// Returns the ids of the permits. Any client can release them by their ids.
    pub fn ids(&self) -> &[PermitId] {
        self.got().as_slice()
    }

    /// Drops the guard but keeps the permits, and returns their ids for
    /// [`PermitSemaphore::release`]. They are not renewed any more: they come back when their lease
    /// ends, which [`PermitSemaphore::update_lease`] can change.
    #[must_use = "the permits are to be given back by their ids"]
    pub fn forget(self) -> Vec<PermitId> {
        let ids = self.ids().to_vec();
        self.forgotten();
        ids
    }
}

/// The handle of an expirable semaphore: [`Client::permit_semaphore`]. Cheap to clone; it holds
/// nothing by itself.
///
/// # Clocks
///
/// This client decides by the server's clock if a permit has expired. Each Redisson client decides
/// by its own clock, and writes deadlines by it. So for this client a permit that Redisson took
/// ends earlier or later by the error of that clock. A Redisson client whose clock is ahead takes
/// back permits of this client that have not expired; only synchronized clocks prevent that.
///
/// # Lost replies
///
/// The client draws the ids before it requests permits. So after a lost reply it can check if those
/// ids were granted. A permit that leaks because no server answers comes back when its lease ends.
///
/// # What the user of the server must be allowed to do
///
/// The crate documentation [lists the
/// rights](crate#what-the-user-of-the-server-must-be-allowed-to-do).
#[derive(Clone)]
pub struct PermitSemaphore(Counter);

impl PermitSemaphore {
    /// Waits until `permits` permits are available and takes them all together, at most 10,000. If
    /// no [lease](Acquire::lease) is set, the watchdog renews them until their release.
    /// Waiters are served in no particular order.
    ///
    /// # Cancel safety
    /// When the future is dropped no permits are kept: what a request under way takes is released
    /// in the background.
    ///
    /// # Errors
    /// When no server answers within the client's [`call_timeout`](crate::Builder::call_timeout),
    /// when the server refuses something that waiting needs, and when `permits` is zero or too
    /// large.
    pub fn acquire(&self, permits: u32) -> Acquire<PermitGuard> {
        let of = self.0.clone();
        Acquire::unbounded(move |options| acquire(of, permits, options))
    }

    /// Takes `permits` permits if they are available now. Cancel safe as
    /// [`PermitSemaphore::acquire`].
    ///
    /// # Errors
    /// As [`PermitSemaphore::acquire`].
    pub fn try_acquire(&self, permits: u32) -> Acquire<Option<PermitGuard>> {
        self.limited(permits, WaitLimit::NoWait)
    }

    /// Waits for `permits` permits, for at most `limit`. Cancel safe as
    /// [`PermitSemaphore::acquire`].
    ///
    /// # Errors
    /// As [`PermitSemaphore::acquire`].
    pub fn try_acquire_for(&self, permits: u32, limit: Duration) -> Acquire<Option<PermitGuard>> {
        self.limited(permits, WaitLimit::For(limit))
    }

    fn limited(&self, permits: u32, limit: WaitLimit) -> Acquire<Option<PermitGuard>> {
        let of = self.0.clone();
        Acquire::new(limit, move |options| acquire(of, permits, options))
    }

    /// Releases permits by their ids, whichever client took them. Releases all of them, or returns
    /// false and releases none if any of them is not held any more.
    ///
    /// # Cancel safety
    /// When the future is dropped, or the client's [`call_timeout`](crate::Builder::call_timeout)
    /// is over, the request is completed in the background.
    ///
    /// # Errors
    /// When no server answers in time. [`ErrorKind::NotPublished`](crate::ErrorKind::NotPublished)
    /// when the permits were released, but the user may not publish that.
    pub async fn release(&self, permits: &[PermitId]) -> Result<bool> {
        if permits.is_empty() {
            return self.0.router().map(|_| true);
        }
        let ids = permits.to_vec();
        let reply = self.0.change(move |change, publish| release(change, "all", publish, &ids)).await?;
        Ok(reply == Value::Int(1))
    }

    /// Sets the lease of a permit to `lease` from now, whether that is longer or shorter. Returns
    /// false if the permit is not held any more. The guard of the permit, if one exists, is not
    /// updated.
    ///
    /// # Errors
    /// When no server answers in time or the server refuses the query.
    pub async fn update_lease(&self, permit: PermitId, lease: Duration) -> Result<bool> {
        LEASE.check(lease)?;
        let call = UPDATE.call([permit_deadlines(self.key())]).arg(millis(lease)).bytes(*permit.as_bytes());
        Ok(self.0.run_repeatable(&call).await? == Value::Int(1))
    }

    /// Returns the number of available permits, including expired ones. Zero if the semaphore does
    /// not exist; negative if more permits are held than exist.
    ///
    /// # Errors
    /// When no server answers in time or the server refuses the query.
    pub async fn available(&self) -> Result<i64> {
        self.count().await.map(|(available, _)| available)
    }

    /// Returns the number of permits that are held and have not expired.
    ///
    /// # Errors
    /// When no server answers in time or the server refuses the query.
    pub async fn acquired(&self) -> Result<u64> {
        self.count().await.map(|(_, acquired)| acquired)
    }

    async fn count(&self) -> Result<(i64, u64)> {
        let call = COUNT.call([self.key().to_owned(), permit_deadlines(self.key())]);
        let reply = self.0.run_repeatable(&call).await?;
        redis::from_redis_value(reply.clone()).map_err(|_| Error::unexpected(&reply))
    }

    /// Sets the number of permits if the semaphore does not exist yet. Returns false if it does.
    ///
    /// # Errors
    /// As [`PermitSemaphore::release`].
    pub async fn set_permits(&self, permits: u32) -> Result<bool> {
        self.0.set(permits).await
    }

    /// Adds permits permanently, or removes some if the number is negative, even if they are held:
    /// the number of [available](PermitSemaphore::available) permits may then be negative.
    ///
    /// # Errors
    /// As [`PermitSemaphore::release`].
    pub async fn add_permits(&self, permits: i64) -> Result<()> {
        self.0.add(permits).await
    }

    /// Returns the semaphore's key in Redis.
    pub fn key(&self) -> &str {
        &self.0.key
    }
}

impl std::fmt::Debug for PermitSemaphore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PermitSemaphore").field("key", &self.key()).finish_non_exhaustive()
    }
}

async fn acquire(of: Counter, permits: u32, options: AcquireOptions) -> Result<Option<PermitGuard>> {
    of.router()?;
    if !PERMITS_WITH_IDS.takes(permits) {
        let most = PERMITS_WITH_IDS.most;
        return Err(Error::config(format!("from 1 to {most} permits can be asked for, not {permits}")));
    }
    let Counter { session, key, .. } = of;
    let ids = PermitIds::fresh(session.env(), permits);
    // The permits have no owner but their ids.
    let (field, AcquireOptions { lease, limit, .. }) = (ids.name(), options);
    Acquisition::new(session, Arc::new(Permits { ids }), key, field, lease, limit)?.acquire().await
}
