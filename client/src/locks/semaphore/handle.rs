//! The handle of a semaphore, and the guard of its permits.

use std::sync::Arc;
use std::time::Duration;

use super::{Counter, DRAIN, Permits, read_count};
use crate::acquire::Acquisition;
use crate::client::Client;
use crate::error::{Error, Result};
use crate::guard::Guard;
use crate::limits::PERMITS;
use crate::owner::OwnerId;
use crate::rights;
use crate::wait::WaitLimit;

impl Client {
    /// Returns a handle on a number of permits, which any client may take and any client may
    /// release.
    ///
    /// The semaphore has no permits until some are [set](Semaphore::set_permits) or
    /// [added](Semaphore::add_permits). Permits have no lease: those of a process that dies are
    /// lost until they are added again. With the [expirable semaphore](Client::permit_semaphore)
    /// they come back.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> lockstorm_client::Result<()> {
    /// # let server = lockstorm_sim::TestServer::start().await.expect("a free port");
    /// # let url = server.url();
    /// # let client = lockstorm_client::Client::connect(&url).await?;
    /// let seats = client.semaphore("seats");
    /// seats.set_permits(3).await?;
    /// let two = seats.acquire(2).await?;
    /// assert_eq!(seats.available().await?, 1);
    /// assert!(seats.try_acquire(2).await?.is_none());
    /// two.release().await?; // or drop it
    /// assert_eq!(seats.available().await?, 3);
    /// # Ok(()) }
    /// ```
    pub fn semaphore(&self, name: &str) -> Semaphore {
        Semaphore(Counter::new(self.session.clone(), &rights::SEMAPHORE, name))
    }
}

/// The handle of a semaphore: [`Client::semaphore`]. Cheap to clone; it holds nothing by itself.
///
/// # Lost replies
///
/// A lost reply neither leaks nor creates permits. The server remembers each request for ten
/// minutes, in a separate key that Redisson ignores. After a lost reply the client ends the old
/// connection on the server. Then, for five minutes, it asks about the outcome or retries the
/// request. If the outcome is still unknown after that, it returns an error that is not
/// [definite](Error::is_definite), and the permits may be lost.
///
/// # What the user of the server must be allowed to do
///
/// The crate documentation [lists the
/// rights](crate#what-the-user-of-the-server-must-be-allowed-to-do).
#[derive(Clone)]
pub struct Semaphore(Counter);

impl Semaphore {
    /// Waits until `permits` permits are available and takes them all together. Waiters are served
    /// in no particular order: one that wants fewer may be served before one that wants more.
    ///
    /// # Cancel safety
    /// When the future is dropped no permits are kept: what a request under way takes is released
    /// in the background.
    ///
    /// # Errors
    /// When no server answers within the client's [`call_timeout`](crate::Builder::call_timeout),
    /// when the server refuses something that waiting needs, and when `permits` is zero.
    pub async fn acquire(&self, permits: u32) -> Result<SemaphorePermits> {
        // An acquisition without a limit never ends with `None`.
        self.wait(permits, WaitLimit::Unbounded).await?.ok_or_else(Error::shutdown)
    }

    /// Takes `permits` permits if they are available now. Cancel safe as [`Semaphore::acquire`].
    ///
    /// # Errors
    /// As [`Semaphore::acquire`].
    pub async fn try_acquire(&self, permits: u32) -> Result<Option<SemaphorePermits>> {
        self.wait(permits, WaitLimit::NoWait).await
    }

    /// Waits for `permits` permits, for at most `limit`. Cancel safe as [`Semaphore::acquire`].
    ///
    /// # Errors
    /// As [`Semaphore::acquire`].
    pub async fn try_acquire_for(&self, permits: u32, limit: Duration) -> Result<Option<SemaphorePermits>> {
        self.wait(permits, WaitLimit::For(limit)).await
    }

    async fn wait(&self, permits: u32, limit: WaitLimit) -> Result<Option<SemaphorePermits>> {
        self.0.router()?;
        if !PERMITS.takes(permits) {
            return Err(Error::config("no permits are asked for"));
        }
        let Counter { session, key, .. } = self.0.clone();
        let field = session.field(OwnerId::fresh(session.env()));
        let acquisition = Acquisition::new(session, Arc::new(Permits(permits)), key, field, None, limit)?;
        Ok(acquisition.acquire().await?.map(|guard| SemaphorePermits { guard, permits }))
    }

    /// Releases `permits` permits, even if another client took them: for example those of a guard
    /// that was [forgotten](SemaphorePermits::forget), here or in another process. Creates the
    /// semaphore if it does not exist.
    ///
    /// # Cancel safety
    /// When the future is dropped, or the client's [`call_timeout`](crate::Builder::call_timeout)
    /// is over, the request is completed in the background.
    ///
    /// # Errors
    /// When no server answers in time. [`ErrorKind::NotPublished`](crate::ErrorKind::NotPublished)
    /// when the permits were released, but the user may not publish the release.
    pub async fn release(&self, permits: u32) -> Result<()> {
        if permits == 0 {
            return self.0.router().map(drop);
        }
        self.0.add(permits.into()).await
    }

    /// Returns the number of available permits. Zero if the semaphore does not exist; negative if
    /// more permits are held than exist.
    ///
    /// # Errors
    /// When no server answers in time or the server refuses the query.
    pub async fn available(&self) -> Result<i64> {
        self.0.left().await
    }

    /// Sets the number of permits if the semaphore does not exist yet. Returns false if it does,
    /// even if no permits are available.
    ///
    /// # Errors
    /// As [`Semaphore::release`].
    pub async fn set_permits(&self, permits: u32) -> Result<bool> {
        self.0.set(permits).await
    }

    /// Adds permits permanently, or removes some if the number is negative, even if they are held:
    /// the number of [available](Semaphore::available) permits may then be negative.
    ///
    /// # Errors
    /// As [`Semaphore::release`].
    pub async fn add_permits(&self, permits: i64) -> Result<()> {
        self.0.add(permits).await
    }

    /// Removes all available permits permanently, and returns their number.
    ///
    /// # Errors
    /// As [`Semaphore::release`].
    pub async fn drain(&self) -> Result<i64> {
        read_count(&self.0.change(|change, publish| change.call(&DRAIN, publish)).await?)
    }

    /// Returns the semaphore's key in Redis.
    pub fn key(&self) -> &str {
        &self.0.key
    }
}

impl std::fmt::Debug for Semaphore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Semaphore").field("key", &self.key()).finish_non_exhaustive()
    }
}

/// The guard of permits of a [`Semaphore`]. Dropping it starts to release them in the background;
/// [`Client::close`] waits for the end of the release.
#[must_use = "the permits are given back when this is dropped"]
pub struct SemaphorePermits {
    guard: Guard,
    permits: u32,
}

impl SemaphorePermits {
    /// Releases the permits.
    ///
    /// # Cancel safety
    /// When the future is dropped, or the client's [`call_timeout`](crate::Builder::call_timeout)
    /// is over, the release continues in the background: for five minutes, or until the client is
    /// closed.
    ///
    /// # Errors
    /// When no server answers in time. [`ErrorKind::NotPublished`](crate::ErrorKind::NotPublished)
    /// when the permits were released, but the user may not publish the release.
    pub async fn release(self) -> Result<()> {
        self.guard.release().await
    }

    /// Drops the guard but keeps the permits, and returns their number. Their new user gives them
    /// back with [`Semaphore::release`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> lockstorm_client::Result<()> {
    /// # let server = lockstorm_sim::TestServer::start().await.expect("a free port");
    /// # let url = server.url();
    /// # let client = lockstorm_client::Client::connect(&url).await?;
    /// let seats = client.semaphore("seats");
    /// seats.set_permits(3).await?;
    /// let taken = seats.acquire(2).await?.forget();
    /// assert_eq!(seats.available().await?, 1);
    /// seats.release(taken).await?; // also from another process
    /// # Ok(()) }
    /// ```
    #[must_use = "so many permits are to be given back"]
    pub fn forget(self) -> u32 {
        self.guard.forgotten();
        self.permits
    }

    /// Returns the number of permits that the guard holds.
    pub fn count(&self) -> u32 {
        self.permits
    }

    /// Returns the semaphore's key in Redis.
    pub fn key(&self) -> &str {
        self.guard.key()
    }

    /// Returns the owner name of these permits in the events of the client's
    /// [`Observer`](crate::Observer).
    pub fn owner(&self) -> &str {
        self.guard.owner()
    }
}

impl std::fmt::Debug for SemaphorePermits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SemaphorePermits")
            .field("key", &self.key())
            .field("permits", &self.permits)
            .finish_non_exhaustive()
    }
}
