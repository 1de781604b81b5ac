//! An acquisition as the application configures it, before it is awaited.

use std::future::IntoFuture;
use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::error::{Error, Result};
use crate::guard::{Guard, OfLock};
use crate::owner::OwnerId;
use crate::wait::WaitLimit;

/// The owner, the lease and the time limit of an acquisition.
#[derive(Debug, Clone, Copy)]
pub struct AcquireOptions {
    pub(crate) owner: Option<OwnerId>,
    pub(crate) lease: Option<Duration>,
    pub(crate) limit: WaitLimit,
}

type Run<T> = Box<dyn FnOnce(AcquireOptions) -> BoxFuture<'static, Result<T>> + Send + Sync>;

/// An acquisition of a lock, of several locks or of permits. Set options, then await it. It returns
/// `T`: a guard if it waits until it is granted, or `Option` of a guard if it may end without one.
#[must_use = "nothing is asked for until this is awaited"]
pub struct Acquire<T = Guard> {
    options: AcquireOptions,
    run: Run<T>,
}

impl<T> Acquire<T> {
    /// Makes an acquisition that `run` carries out with the options set by then.
    pub(crate) fn new<F>(
        limit: WaitLimit,
        run: impl FnOnce(AcquireOptions) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<T>> + Send + 'static,
    {
        Self {
            options: AcquireOptions { owner: None, lease: None, limit },
            run: Box::new(|options| Box::pin(run(options))),
        }
    }

    /// Makes an acquisition without a time limit, which returns a guard or an error.
    pub(crate) fn unbounded<F>(run: impl FnOnce(AcquireOptions) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Option<T>>> + Send + 'static,
    {
        Self::new(WaitLimit::Unbounded, |options| {
            let granted = run(options);
            async move { granted.await?.ok_or_else(Error::shutdown) }
        })
    }

    /// Holds the lock or the permits for `lease` without renewal. If no lease is set, the watchdog
    /// renews them until release.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.options.lease = Some(lease);
        self
    }
}

impl<T: sealed::Owned> Acquire<T> {
    /// Acquires for this owner; acquisitions of one owner nest. If no owner is set, the client
    /// creates one for this acquisition.
    pub fn owner(mut self, owner: OwnerId) -> Self {
        self.options.owner = Some(owner);
        self
    }
}

impl<G: sealed::Releasable> Acquire<G> {
    /// Waits for the lock, runs `work` under it, and releases it in any case, as
    /// [`Handle::with`](crate::Handle::with).
    ///
    /// # Errors
    /// As [`Handle::acquire`](crate::Handle::acquire); `work` has then not run.
    pub async fn with<T>(self, work: impl AsyncFnOnce(&G) -> T) -> Result<Done<T>> {
        Ok(work_under(self.await?, work).await)
    }
}

impl<G: sealed::Releasable> Acquire<Option<G>> {
    /// Runs `work` under the lock if it is granted, and releases it in any case, as
    /// [`Handle::with`](crate::Handle::with).
    ///
    /// # Errors
    /// As [`Handle::try_acquire_for`](crate::Handle::try_acquire_for); `work` has then not run.
    pub async fn with<T>(self, work: impl AsyncFnOnce(&G) -> T) -> Result<Option<Done<T>>> {
        let Some(guard) = self.await? else { return Ok(None) };
        Ok(Some(work_under(guard, work).await))
    }
}

impl<T> IntoFuture for Acquire<T> {
    type Output = Result<T>;
    type IntoFuture = BoxFuture<'static, Result<T>>;

    fn into_future(self) -> Self::IntoFuture {
        (self.run)(self.options)
    }
}

/// The outcome of work under a lock.
#[derive(Debug)]
#[must_use = "the lock may have been lost while the work was done"]
pub struct Done<T> {
    /// The value that the work returned. If `released` is an error, the work may have run without
    /// the lock.
    pub value: T,
    /// The outcome of the release, as for [`Guard::release`]. With
    /// [`ErrorKind::NotHeld`](crate::ErrorKind::NotHeld) the lock was lost before the work ended.
    pub released: Result<()>,
}

async fn work_under<G: sealed::Releasable, T>(guard: G, work: impl AsyncFnOnce(&G) -> T) -> Done<T> {
    let value = work(&guard).await;
    Done { value, released: guard.release().await }
}

pub(crate) mod sealed {
    use crate::error::Result;

    /// The outcome of an acquisition that has an owner; permits have none.
    pub trait Owned {}

    impl<T: Owned> Owned for Option<T> {}

    /// The guard of a lock or of several locks.
    pub trait Releasable: Owned + Send + 'static {
        fn release(self) -> impl Future<Output = Result<()>> + Send;
    }
}

impl<G: OfLock> sealed::Owned for Guard<G> {}

impl<G: OfLock> sealed::Releasable for Guard<G> {
    fn release(self) -> impl Future<Output = Result<()>> + Send {
        Guard::release(self)
    }
}
