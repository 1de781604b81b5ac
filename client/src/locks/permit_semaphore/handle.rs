//! The handle of an expirable semaphore, and the guard of its permits.

use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use redis::Value;

use super::ids::{PermitId, PermitIds};
use super::{COUNT, Permits, UPDATE, release};
use crate::acquire::{Request, acquire};
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
    /// A number of permits that have ids, and leases after which they come back by themselves:
    /// those of a process that dies are not gone.
    ///
    /// There are none until some are [set](PermitSemaphore::set_permits) or
    /// [added](PermitSemaphore::add_permits). Without a lease the watchdog renews permits until
    /// their release; Redisson's permits without a lease never end. The [plain
    /// semaphore](Client::semaphore) of the same name shares the key that has their number, and
    /// should not be used beside it.
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
    /// // Handed over: another process gives them back by their ids.
    /// let ids = two.forget();
    /// assert!(workers.release(&ids).await?);
    /// assert_eq!(workers.available().await?, 3);
    /// # Ok(()) }
    /// ```
    pub fn permit_semaphore(&self, name: &str) -> PermitSemaphore {
        PermitSemaphore(Counter::new(self.session.clone(), &rights::PERMIT_SEMAPHORE, name))
    }
}

/// The guard of permits with ids: what [`Guard`] says of a lock is true of all of them together. It
/// is lost with the first of its permits that is gone.
pub type PermitGuard = Guard<PermitIds>;

impl PermitGuard {
    /// The ids of the permits, by which any client can give them back.
    pub fn ids(&self) -> &[PermitId] {
        self.got().as_slice()
    }

    /// Keeps the permits without this guard, and returns their ids for
    /// [`PermitSemaphore::release`]. They are not renewed any more: they come back with their
    /// lease, or what [`PermitSemaphore::update_lease`] makes of it.
    #[must_use = "the permits are to be given back by their ids"]
    pub fn forget(self) -> Vec<PermitId> {
        let ids = self.ids().to_vec();
        self.forgotten();
        ids
    }
}

/// The handle of an expirable semaphore: [`Client::permit_semaphore`]. Cheap to clone; holds
/// nothing by itself.
///
/// # Clocks
///
/// The server's clock says when a permit expires, here; Redisson's clients each go by their own,
/// and write deadlines by it. So a permit that Redisson took ends earlier or later for this client
/// by as much as that clock is wrong. A Redisson client whose clock is ahead takes back permits of
/// this client that have not expired, which only a synchronized clock prevents.
///
/// # Lost replies
///
/// Ids are drawn before a permit is asked for, so that a client that misses a reply looks whether
/// they are there. A permit that is leaked all the same, because no server answered, comes back
/// with its lease.
///
/// # What the user of the server must be allowed to do
///
/// It is [in the documentation of the
/// crate](crate#what-the-user-of-the-server-must-be-allowed-to-do).
#[derive(Clone)]
pub struct PermitSemaphore(Counter);

impl PermitSemaphore {
    /// Waits until so many permits can be had and takes them, all at once, at most 10,000. Without
    /// a [lease](AcquirePermits::lease) the watchdog renews them until their release. No order is
    /// kept among waiters.
    ///
    /// # Cancel safety
    /// When the future is dropped no permits are kept: what a request under way takes is given back
    /// in the background.
    ///
    /// # Errors
    /// When no server answers within the client's [`call_timeout`](crate::Builder::call_timeout),
    /// when the server refuses what waiting needs, and when no permits or too many are asked for.
    pub fn acquire(&self, permits: u32) -> AcquirePermits {
        AcquirePermits(self.ask(permits, WaitLimit::Unbounded))
    }

    /// Takes so many permits if they can be had now. Cancel safe as [`PermitSemaphore::acquire`].
    ///
    /// # Errors
    /// As [`PermitSemaphore::acquire`].
    pub fn try_acquire(&self, permits: u32) -> TryAcquirePermits {
        TryAcquirePermits(self.ask(permits, WaitLimit::NoWait))
    }

    /// Waits for so many permits for at most `limit`. Cancel safe as [`PermitSemaphore::acquire`].
    ///
    /// # Errors
    /// As [`PermitSemaphore::acquire`].
    pub fn try_acquire_for(&self, permits: u32, limit: Duration) -> TryAcquirePermits {
        TryAcquirePermits(self.ask(permits, WaitLimit::For(limit)))
    }

    fn ask(&self, permits: u32, limit: WaitLimit) -> PermitRequest {
        PermitRequest { of: self.0.clone(), permits, lease: None, limit }
    }

    /// Gives permits back by their ids, whichever client took them: all, or none and false when any
    /// of them is not out any more.
    ///
    /// # Cancel safety
    /// When the future is dropped the request is seen through in the background, and so it is when
    /// the client's [`call_timeout`](crate::Builder::call_timeout) is over.
    ///
    /// # Errors
    /// When no server answers in time. [`ErrorKind::NotPublished`](crate::ErrorKind::NotPublished)
    /// when the permits are back, but the user may not publish that.
    pub async fn release(&self, permits: &[PermitId]) -> Result<bool> {
        if permits.is_empty() {
            return self.0.router().map(|_| true);
        }
        let ids = permits.to_vec();
        let reply = self.0.change(move |change, publish| release(change, "all", publish, &ids)).await?;
        Ok(reply == Value::Int(1))
    }

    /// Sets a new lease on a permit, from now on, be it longer or shorter; false when it is not out
    /// any more. The guard of a permit, if there is one, knows nothing of it.
    ///
    /// # Errors
    /// When Redis cannot be asked.
    pub async fn update_lease(&self, permit: PermitId, lease: Duration) -> Result<bool> {
        LEASE.check(lease)?;
        let call = UPDATE.call([permit_deadlines(self.key())]).arg(millis(lease)).bytes(*permit.as_bytes());
        Ok(self.0.run_repeatable(&call).await? == Value::Int(1))
    }

    /// How many permits can be had, expired ones among them: zero when there is no such semaphore,
    /// negative when more are out than there are.
    ///
    /// # Errors
    /// When Redis cannot be asked.
    pub async fn available(&self) -> Result<i64> {
        self.count().await.map(|(available, _)| available)
    }

    /// How many permits are out and have not expired.
    ///
    /// # Errors
    /// When Redis cannot be asked.
    pub async fn acquired(&self) -> Result<u64> {
        self.count().await.map(|(_, acquired)| acquired)
    }

    async fn count(&self) -> Result<(i64, u64)> {
        let call = COUNT.call([self.key().to_owned(), permit_deadlines(self.key())]);
        let reply = self.0.run_repeatable(&call).await?;
        redis::from_redis_value(reply.clone()).map_err(|_| Error::unexpected(&reply))
    }

    /// Sets the number of permits, if there is no such semaphore yet; false when there is one.
    ///
    /// # Errors
    /// As [`PermitSemaphore::release`].
    pub async fn set_permits(&self, permits: u32) -> Result<bool> {
        self.0.set(permits).await
    }

    /// Adds permits for good, or takes some away when the number is negative, whether or not they
    /// are out: what is [available](PermitSemaphore::available) may be negative then.
    ///
    /// # Errors
    /// As [`PermitSemaphore::release`].
    pub async fn add_permits(&self, permits: i64) -> Result<()> {
        self.0.add(permits).await
    }

    /// The semaphore's key in Redis.
    pub fn key(&self) -> &str {
        &self.0.key
    }
}

impl std::fmt::Debug for PermitSemaphore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PermitSemaphore").field("key", &self.key()).finish_non_exhaustive()
    }
}

/// An acquisition that is being set up.
struct PermitRequest {
    of: Counter,
    permits: u32,
    lease: Option<Duration>,
    limit: WaitLimit,
}

impl PermitRequest {
    async fn run(self) -> Result<Option<PermitGuard>> {
        self.of.router()?;
        if !PERMITS_WITH_IDS.takes(self.permits) {
            let (permits, most) = (self.permits, PERMITS_WITH_IDS.most);
            return Err(Error::config(format!("from 1 to {most} permits can be asked for, not {permits}")));
        }
        let Counter { session, key, .. } = self.of;
        let ids = PermitIds::fresh(session.env(), self.permits);
        let (owner, limit, lease) = (ids.name(), self.limit, self.lease);
        acquire(Request { session, kind: Arc::new(Permits { ids }), key, owner, lease, limit }).await
    }
}

/// An acquisition of permits that waits until it is granted. Await it, after setting what differs
/// from the defaults.
#[must_use = "nothing is asked for until this is awaited"]
pub struct AcquirePermits(PermitRequest);

/// An acquisition of permits that may come to nothing. Await it, after setting what differs from
/// the defaults.
#[must_use = "nothing is asked for until this is awaited"]
pub struct TryAcquirePermits(PermitRequest);

macro_rules! lease {
    ($name:ident) => {
        impl $name {
            /// Holds the permits for `lease` and does not renew them. Without this the watchdog
            /// renews them until release.
            pub fn lease(mut self, lease: Duration) -> Self {
                self.0.lease = Some(lease);
                self
            }
        }
    };
}
lease!(AcquirePermits);
lease!(TryAcquirePermits);

impl IntoFuture for AcquirePermits {
    type Output = Result<PermitGuard>;
    type IntoFuture = BoxFuture<'static, Result<PermitGuard>>;

    fn into_future(self) -> Self::IntoFuture {
        // Without a limit there is no coming to nothing.
        Box::pin(async move { self.0.run().await?.ok_or_else(Error::shutdown) })
    }
}

impl IntoFuture for TryAcquirePermits {
    type Output = Result<Option<PermitGuard>>;
    type IntoFuture = BoxFuture<'static, Result<Option<PermitGuard>>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.0.run())
    }
}
