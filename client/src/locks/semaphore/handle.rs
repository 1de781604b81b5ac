//! The handle of a semaphore, and the guard of its permits.

use std::sync::Arc;
use std::time::Duration;

use super::{Counter, DRAIN, Permits, read_count};
use crate::acquire::{Request, acquire};
use crate::client::Client;
use crate::error::{Error, Result};
use crate::guard::Guard;
use crate::limits::PERMITS;
use crate::owner::OwnerId;
use crate::rights;
use crate::wait::WaitLimit;

impl Client {
    /// A number of permits, which anyone may take and anyone may give back.
    ///
    /// There are none until some are [set](Semaphore::set_permits) or
    /// [added](Semaphore::add_permits). Permits have no lease: those of a process that dies are
    /// gone until they are added again. The [expirable semaphore](Client::permit_semaphore) takes
    /// them back by itself.
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

/// The handle of a semaphore: [`Client::semaphore`]. Cheap to clone; holds nothing by itself.
///
/// # Lost replies
///
/// A permit is neither leaked nor invented when a reply is lost. The server remembers each request
/// for ten minutes, in a key beside the semaphore's that Redisson does not see. A client that
/// misses a reply ends the old connection on the server, and asks there what became of the request,
/// or repeats it, for five minutes. What it does not learn in that time it reports as an error that
/// is not [definite](Error::is_definite), and the permits may be gone then.
///
/// # What the user of the server must be allowed to do
///
/// It is [in the documentation of the
/// crate](crate#what-the-user-of-the-server-must-be-allowed-to-do).
#[derive(Clone)]
pub struct Semaphore(Counter);

impl Semaphore {
    /// Waits until so many permits are there and takes them, all at once. No order is kept among
    /// waiters: one that wants fewer may be served before one that wants more.
    ///
    /// # Cancel safety
    /// When the future is dropped no permits are kept: what a request under way takes is given back
    /// in the background.
    ///
    /// # Errors
    /// When no server answers within the client's [`call_timeout`](crate::Builder::call_timeout),
    /// when the server refuses what waiting needs, and when no permits at all are asked for.
    pub async fn acquire(&self, permits: u32) -> Result<SemaphorePermits> {
        // Without a limit there is no coming to nothing.
        self.wait(permits, WaitLimit::Unbounded).await?.ok_or_else(Error::shutdown)
    }

    /// Takes so many permits if they are there now. Cancel safe as [`Semaphore::acquire`].
    ///
    /// # Errors
    /// As [`Semaphore::acquire`].
    pub async fn try_acquire(&self, permits: u32) -> Result<Option<SemaphorePermits>> {
        self.wait(permits, WaitLimit::NoWait).await
    }

    /// Waits for so many permits for at most `limit`. Cancel safe as [`Semaphore::acquire`].
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
        let owner = session.field(OwnerId::fresh(session.env()));
        let request = Request { session, kind: Arc::new(Permits(permits)), key, owner, lease: None, limit };
        Ok(acquire(request).await?.map(|guard| SemaphorePermits { guard, permits }))
    }

    /// Gives so many permits back, also those that another client took: those of a guard that was
    /// [forgotten](SemaphorePermits::forget), here or in another process. Creates the semaphore if
    /// there is none.
    ///
    /// # Cancel safety
    /// When the future is dropped the request is seen through in the background, and so it is when
    /// the client's [`call_timeout`](crate::Builder::call_timeout) is over.
    ///
    /// # Errors
    /// When no server answers in time. [`ErrorKind::NotPublished`](crate::ErrorKind::NotPublished)
    /// when the permits are back, but the user may not publish that.
    pub async fn release(&self, permits: u32) -> Result<()> {
        if permits == 0 {
            return self.0.router().map(drop);
        }
        self.0.add(permits.into()).await
    }

    /// How many permits are left: zero when there is no such semaphore, negative when more are out
    /// than there are.
    ///
    /// # Errors
    /// When Redis cannot be asked.
    pub async fn available(&self) -> Result<i64> {
        self.0.left().await
    }

    /// Sets the number of permits, if there is no such semaphore yet; false when there is one. One
    /// without any permits left counts.
    ///
    /// # Errors
    /// As [`Semaphore::release`].
    pub async fn set_permits(&self, permits: u32) -> Result<bool> {
        self.0.set(permits).await
    }

    /// Adds permits for good, or takes some away when the number is negative, whether or not they
    /// are out: what is [available](Semaphore::available) may be negative then.
    ///
    /// # Errors
    /// As [`Semaphore::release`].
    pub async fn add_permits(&self, permits: i64) -> Result<()> {
        self.0.add(permits).await
    }

    /// Takes all permits that are left away for good, and returns how many that were.
    ///
    /// # Errors
    /// As [`Semaphore::release`].
    pub async fn drain(&self) -> Result<i64> {
        read_count(&self.0.change(|change, publish| change.call(&DRAIN, publish)).await?)
    }

    /// The semaphore's key in Redis.
    pub fn key(&self) -> &str {
        &self.0.key
    }
}

impl std::fmt::Debug for Semaphore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Semaphore").field("key", &self.key()).finish_non_exhaustive()
    }
}

/// Permits of a [`Semaphore`] in the hand of the application. Dropping this gives them back in the
/// background, as well as that is possible; [`Client::close`] waits for it.
#[must_use = "the permits are given back when this is dropped"]
pub struct SemaphorePermits {
    guard: Guard,
    permits: u32,
}

impl SemaphorePermits {
    /// Gives the permits back.
    ///
    /// # Cancel safety
    /// When the future is dropped the release goes on in the background, and so it does when the
    /// client's [`call_timeout`](crate::Builder::call_timeout) is over: for five minutes, or until
    /// the client is closed.
    ///
    /// # Errors
    /// When no server answers in time. [`ErrorKind::NotPublished`](crate::ErrorKind::NotPublished)
    /// when the permits are back, but the user may not publish that.
    pub async fn release(self) -> Result<()> {
        self.guard.release().await
    }

    /// Keeps the permits without this guard, which their new user gives back with
    /// [`Semaphore::release`]. Returns how many they are.
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

    /// How many permits these are.
    pub fn count(&self) -> u32 {
        self.permits
    }

    /// The semaphore's key in Redis.
    pub fn key(&self) -> &str {
        self.guard.key()
    }

    /// The name under which the client's [`Observer`](crate::Observer) is notified of these
    /// permits.
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
