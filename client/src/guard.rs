//! A held lock in the hand of the application.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use crate::env::{Env, within};
use crate::error::{Error, ErrorKind, Result};
use crate::hold::{Hold, Keeper};
use crate::limits::LEASE;
use crate::observer::LossCause;
use crate::task::answer_of;

/// Proof that a lock was granted, and the means to give it back.
///
/// A lease can end before the guard does: the process may stand still, or Redis be out of reach,
/// for longer than the lease. [`Guard::lost`] tells when that happens; work that must not go on
/// without the lock runs beside it:
///
/// ```
/// # async fn work() {}
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> lockstorm_client::Result<()> {
/// # let server = lockstorm_sim::TestServer::start().await.expect("a free port");
/// # let url = server.url();
/// # let client = lockstorm_client::Client::connect(&url).await?;
/// let guard = client.lock("stock").acquire().await?;
/// tokio::select! {
///     biased;
///     why = guard.lost() => eprintln!("stopped: the lock is lost ({why:?})"),
///     () = work() => guard.release().await?,
/// }
/// # Ok(()) }
/// ```
///
/// Dropping a guard releases the lock in the background, as well as that is possible. At the end of
/// `main` it is not: the runtime ends, and the lock stays until its lease does, 30 s without one.
/// [`Client::close`](crate::Client::close), awaited at the end, waits for such releases.
#[must_use = "the lock is released when the guard is dropped"]
pub struct Guard<G = ()> {
    hold: Arc<Hold>,
    keeper: Arc<dyn Keeper>,
    got: G,
    env: Arc<dyn Env>,
}

/// The guard of a lock without fencing tokens.
pub type LockGuard = Guard<()>;

/// The guard of a fenced lock.
pub type FencedGuard = Guard<Token>;

/// A fencing token: larger for each later grant of a fenced lock, so that a resource can refuse the
/// holders of earlier ones. It starts again when Redis loses its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub u64);

/// What a grant brings beside the lock.
pub trait Got: Clone + Send + Sync + std::fmt::Debug + 'static {
    /// The fencing token, if that is what it brings.
    fn token(&self) -> Option<u64>;
}

impl Got for () {
    fn token(&self) -> Option<u64> {
        None
    }
}

impl Got for Token {
    fn token(&self) -> Option<u64> {
        Some(self.0)
    }
}

/// What the grant of a lock brings, and not that of permits. Only this crate's locks have it.
pub trait OfLock: Got {}

impl OfLock for () {}

impl OfLock for Token {}

impl FencedGuard {
    /// The fencing token: larger for each later grant, so that a resource can refuse holders that
    /// come too late. It starts again when Redis loses its data.
    pub fn token(&self) -> u64 {
        self.got.0
    }
}

impl<G> Guard<G> {
    pub(crate) fn new(hold: Arc<Hold>, keeper: Arc<dyn Keeper>, got: G, env: Arc<dyn Env>) -> Self {
        Self { hold, keeper, got, env }
    }

    /// What the grant brought beside the lock.
    pub(crate) fn got(&self) -> &G {
        &self.got
    }

    /// The error of a lock that is lost.
    pub(crate) fn not_held(&self) -> Error {
        not_held(&self.hold)
    }

    /// Gives the lock back; of a nested hold, one level.
    ///
    /// After a lost reply it is repeated with the same request id, which cannot release twice, on a
    /// connection before which the old one was ended on the server, so that no copy arrives late
    /// and releases the owner's next hold. A server that refuses CLIENT KILL to this user is
    /// trusted to deliver what it was sent within the time for which it remembers the request, 20 s
    /// by default. The work goes on in the background when this future is dropped, and when the
    /// client's [`call_timeout`](crate::Builder::call_timeout) is over.
    ///
    /// # Errors
    /// [`ErrorKind::NotHeld`] when the owner did not hold the lock any more, and whatever kept the
    /// last repeat from succeeding, which may [pass](crate#what-servers-refuse) while the work goes
    /// on; otherwise the lock ends with its lease. [`ErrorKind::NotPublished`] when the lock was
    /// released, but the user may not publish that.
    pub async fn release(self) -> Result<()> {
        if !self.hold.releasing() {
            return Err(not_held(&self.hold));
        }
        let (begun, time) = (self.env.now(), self.hold.call_timeout());
        let releasing = self.keeper.clone().release(self.hold.clone());
        let released = pin!(answer_of(&*self.env, |answer| async move {
            // The caller may be gone.
            let _ = answer.send(releasing.await);
        }));
        let released = within(&*self.env, begun + time, released).await;
        released.unwrap_or_else(|| Err(self.keeper.overdue(time)))
    }

    /// What was granted is renewed no more, and no client gives it back.
    pub(crate) fn forgotten(self) {
        let forgetting = self.keeper.clone().forget(self.hold.clone());
        self.hold.forget();
        if let Some(forgetting) = forgetting {
            self.env.spawn(forgetting);
        }
    }

    /// Extends the lease to `lease` from now, once. A lease that is longer already stays.
    ///
    /// # Errors
    /// [`ErrorKind::NotHeld`] when the lock is lost, and the errors of the connection.
    pub async fn extend(&self, lease: Duration) -> Result<()> {
        LEASE.check(lease)?;
        if !self.hold.is_valid() {
            return Err(not_held(&self.hold));
        }
        self.keeper.clone().extend(self.hold.clone(), lease).await
    }

    /// How long the lock is still held for sure, by this client's clock, if it is not renewed; zero
    /// when it is lost.
    ///
    /// Counted from before the request that was granted or renewed, and shorter than the lease by 1
    /// % and 2 ms for clocks that run at different rates.
    pub fn validity(&self) -> Duration {
        self.hold.validity()
    }

    /// Whether the lock is held for sure now. Exact also right after the machine was suspended.
    pub fn is_valid(&self) -> bool {
        self.hold.is_valid()
    }

    /// Completes when the lock is lost, before another owner can get it as far as this client's
    /// clock can tell: at the deadline if the lease was not renewed, or when the server says that
    /// the lock is not held.
    ///
    /// After the machine was suspended this takes up to a second to be noticed; [`Guard::is_valid`]
    /// knows at once.
    pub fn lost(&self) -> impl Future<Output = LossCause> + Send + 'static {
        let hold = self.hold.clone();
        async move { hold.lost().await }
    }

    /// The lock's key in Redis.
    pub fn key(&self) -> &str {
        &self.hold.key
    }

    /// The owner as Redis knows it.
    pub fn owner(&self) -> &str {
        &self.hold.owner
    }

    /// The lease that was asked for.
    pub fn lease(&self) -> Duration {
        self.hold.lease
    }
}

impl<G: OfLock> Guard<G> {
    /// Leaves the lock as it is: it is renewed no more, no client gives it back, and it ends with
    /// its lease.
    ///
    /// Until then another process may [adopt](crate::Handle::adopt) it. A level of a nested hold
    /// stays for as long as the others are renewed.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> lockstorm_client::Result<()> {
    /// # let server = lockstorm_sim::TestServer::start().await.expect("a free port");
    /// # let url = server.url();
    /// # let client = lockstorm_client::Client::connect(&url).await?;
    /// let lock = client.lock("nightly report");
    /// // At most one process a day gets to write the report, however long that takes.
    /// if let Some(guard) = lock.try_acquire().lease(Duration::from_secs(24 * 3600)).await? {
    ///     guard.forget();
    /// }
    /// assert!(lock.is_locked().await?);
    /// # Ok(()) }
    /// ```
    pub fn forget(self) {
        self.forgotten();
    }
}

impl<G> Drop for Guard<G> {
    fn drop(&mut self) {
        if self.hold.releasing() {
            let releasing = self.keeper.clone().release(self.hold.clone());
            self.env.spawn(Box::pin(async move {
                // The outcome was emitted; there is no caller to return it to.
                let _ = releasing.await;
            }));
        }
    }
}

impl<G: std::fmt::Debug> std::fmt::Debug for Guard<G> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Guard")
            .field("key", &&*self.hold.key)
            .field("owner", &self.hold.owner)
            .field("validity", &self.hold.validity())
            .field("got", &self.got)
            .finish()
    }
}

pub(crate) fn not_held(hold: &Hold) -> Error {
    Error::definite(ErrorKind::NotHeld { lock: hold.key.to_string(), owner: hold.owner.clone() })
}
