//! The guard: a held lock as the application sees it.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use crate::env::{Env, within};
use crate::error::{Error, ErrorKind, Result};
use crate::hold::{Hold, Keeper};
use crate::limits::LEASE;
use crate::observer::LossCause;
use crate::task::answer_of;

/// Proof that a lock was granted, and the means to release it.
///
/// A lease can end before the guard does: the process may be paused, or Redis be unreachable, for
/// longer than the lease. [`Guard::lost`] completes when that happens. Run work that must stop with
/// the lock beside it:
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
/// Dropping a guard starts the release in the background. At the end of `main` the runtime ends
/// before that is done: the lock then remains until its lease ends, after up to 30 s by default.
/// Await [`Client::close`](crate::Client::close) at the end to wait for such releases.
#[must_use = "the lock is released when the guard is dropped"]
pub struct Guard<G = ()> {
    hold: Arc<Hold>,
    keeper: Arc<dyn Keeper>,
    got: G,
    env: Arc<dyn Env>,
}

/// The guard of a lock without fencing tokens.
pub type LockGuard = Guard<()>;

/// The guard of a fenced lock, with the token of its grant.
pub type FencedGuard = Guard<Token>;

/// A fencing token: it grows with each grant of a fenced lock, so that a resource can refuse
/// holders of earlier grants. It starts again when Redis loses its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub u64);

/// The value that a grant carries besides the lock.
pub trait Got: Clone + Send + Sync + std::fmt::Debug + 'static {
    /// Returns the fencing token, if the value is one.
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

/// The value that a grant of a lock carries, as opposed to a grant of permits. Only this crate
/// implements it.
pub trait OfLock: Got {}

impl OfLock for () {}

impl OfLock for Token {}

impl FencedGuard {
    /// Returns the fencing token: it grows with each grant, so that a resource can refuse holders
    /// of earlier grants. It starts again when Redis loses its data.
    pub fn token(&self) -> u64 {
        self.got.0
    }
}

impl<G> Guard<G> {
    pub(crate) fn new(hold: Arc<Hold>, keeper: Arc<dyn Keeper>, got: G, env: Arc<dyn Env>) -> Self {
        Self { hold, keeper, got, env }
    }

    /// Returns the value that the grant carried besides the lock.
    pub(crate) fn got(&self) -> &G {
        &self.got
    }

    /// Makes the error of a lost lock.
    pub(crate) fn not_held(&self) -> Error {
        not_held(&self.hold)
    }

    /// Releases the lock; of a nested hold, one level.
    ///
    /// After a lost reply the release is retried with the same request id, so that it cannot
    /// release twice. Before a retry uses a new connection, the client ends the old one on the
    /// server, so that no late copy releases the owner's next hold. If the server denies this user
    /// CLIENT KILL, the client relies on the server to receive every copy within the time for which
    /// it remembers the request, 20 s by default. The release continues in the background when this
    /// future is dropped or the client's [`call_timeout`](crate::Builder::call_timeout) is over.
    ///
    /// # Errors
    /// [`ErrorKind::NotHeld`] if the owner did not hold the lock any more.
    /// [`ErrorKind::NotPublished`] if the lock was released, but the user may not publish that.
    /// Otherwise the error of the last retry. That error may [pass](crate#what-servers-refuse)
    /// while the release continues in the background; if it does not, the lock ends with its lease.
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

    /// Stops the renewal without a release: no client gives the grant back.
    pub(crate) fn forgotten(self) {
        let forgetting = self.keeper.clone().forget(self.hold.clone());
        self.hold.forget();
        if let Some(forgetting) = forgetting {
            self.env.spawn(forgetting);
        }
    }

    /// Extends the lease once, to `lease` from now. Never shortens a longer lease.
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

    /// Returns the time for which the lock is certainly held by this client's clock, if it is not
    /// renewed; zero if it is lost.
    ///
    /// Counted from before the grant or renewal was requested, and less than the lease by 1 % and 2
    /// ms, the allowance for clocks of different rates.
    pub fn validity(&self) -> Duration {
        self.hold.validity()
    }

    /// Returns true if the lock is certainly held now. Exact also right after the machine was
    /// suspended.
    pub fn is_valid(&self) -> bool {
        self.hold.is_valid()
    }

    /// Completes when the lock is lost: at the deadline if the lease was not renewed, or when the
    /// server says that the lock is not held. As far as this client's clock can tell, that is
    /// before another owner can get the lock.
    ///
    /// After the machine was suspended this may take up to a second to notice; [`Guard::is_valid`]
    /// is exact immediately.
    pub fn lost(&self) -> impl Future<Output = LossCause> + Send + 'static {
        let hold = self.hold.clone();
        async move { hold.lost().await }
    }

    /// Returns the lock's key in Redis.
    pub fn key(&self) -> &str {
        &self.hold.key
    }

    /// Returns the owner field in Redis: `<client id>:<owner id>`, or the random value of a
    /// Redlock.
    pub fn owner(&self) -> &str {
        &self.hold.owner
    }

    /// Returns the lease with which the lock was acquired.
    pub fn lease(&self) -> Duration {
        self.hold.lease
    }
}

impl<G: OfLock> Guard<G> {
    /// Stops the renewal without a release. The lock remains until its lease ends; no client gives
    /// it back.
    ///
    /// Until then another process may [adopt](crate::Handle::adopt) it. A forgotten level of a
    /// nested hold remains as long as the other levels are renewed.
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
                // The outcome was emitted as an event; no caller awaits it.
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
