//! Lock handles: the calls that all kinds of lock have in common.

use std::sync::Arc;
use std::time::Duration;

use redis::{Cmd, Value};

use crate::acquire::Acquisition;
use crate::acquire_options::{Acquire, AcquireOptions, Done};
use crate::attempt::{LockKind, Taken, read_number, remaining};
use crate::config::millis;
use crate::error::{Error, Result};
use crate::explain::explained;
use crate::guard::{Got, Guard, OfLock, Token};
use crate::key::Key;
use crate::limits::NAME_LENGTH;
use crate::observer::LossCause;
use crate::owner::OwnerId;
use crate::route::Router;
use crate::session::Session;
use crate::wait::WaitLimit;
use crate::wire::fencing_token;

/// A lock, or several locks at once, that a [`Handle`] can stand for. The trait is sealed: only the
/// kinds of this crate implement it. Use it as a bound to write code that is generic over locks:
///
/// ```
/// # use std::time::Duration;
/// use lockstorm_client::{Handle, Lockable, MultiLock, Result};
///
/// /// Does `work` alone, under a lock of whatever kind.
/// async fn alone<O: Lockable>(lock: &Handle<O>, work: impl AsyncFnOnce()) -> Result<bool> {
///     let done = lock.with(Duration::from_secs(2), async |_| work().await).await?;
///     done.map_or(Ok(false), |done| done.released.map(|()| true))
/// }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// # let server = lockstorm_sim::TestServer::start().await.expect("a free port");
/// # let client = lockstorm_client::Client::connect(&server.url()).await?;
/// let (stock, file) = (client.lock("stock"), client.fenced_lock("file"));
/// assert!(alone(&stock, async || ()).await?);
/// assert!(alone(&file, async || ()).await?);
/// let both = MultiLock::builder().member(&stock).member(&file).build()?;
/// assert!(alone(&both, async || ()).await?);
/// # Ok(()) }
/// ```
pub trait Lockable: sealed::Acquirable {}

impl<O: sealed::Acquirable> Lockable for O {}

/// A kind of lock with one key: every [`Lockable`] but a [`MultiLock`](crate::MultiLock), whose
/// members these are. The trait is sealed.
pub trait Object: Lockable + sealed::Single {}

impl<O: sealed::Single> Object for O {}

pub(crate) mod sealed {
    use std::fmt::Debug;
    use std::time::Duration;

    use crate::acquire_options::{AcquireOptions, sealed::Releasable};
    use crate::error::Result;
    use crate::guard::{Guard, OfLock};
    use crate::lock::Sessions;
    use crate::owner::OwnerId;

    /// The acquisition, in which one kind of lock differs from another.
    pub trait Acquirable: Clone + Debug + Send + Sync + 'static {
        type Guard: Releasable;

        fn acquire(self, options: AcquireOptions)
        -> impl Future<Output = Result<Option<Self::Guard>>> + Send;
    }

    /// The further operations of a lock with one key.
    pub trait Single: Acquirable<Guard = Guard<<Self as Single>::Got>> {
        type Got: OfLock;

        fn key(&self) -> &str;

        fn sessions(&self) -> Sessions<'_>;

        fn is_locked(&self) -> impl Future<Output = Result<bool>> + Send;
        fn hold_count(&self, owner: OwnerId) -> impl Future<Output = Result<u64>> + Send;
        fn remaining(&self) -> impl Future<Output = Result<Option<Duration>>> + Send;
        fn force_release(&self) -> impl Future<Output = Result<bool>> + Send;
    }
}

/// A handle on a named lock, or on [several](crate::MultiLock). Cheap to clone; it holds nothing by
/// itself. All kinds of lock have the same calls: [`Lock`], [`FencedLock`],
/// [`Redlock`](crate::Redlock).
#[derive(Clone)]
pub struct Handle<O: Lockable>(pub(crate) O);

/// The handle of a lock on one master: [`Client::lock`](crate::Client::lock),
/// [`Client::fair_lock`](crate::Client::fair_lock).
pub type Lock = Handle<OnMaster<()>>;

/// The handle of a lock whose guards carry a fencing token:
/// [`Client::fenced_lock`](crate::Client::fenced_lock).
pub type FencedLock = Handle<OnMaster<Token>>;

impl<O: Lockable> Handle<O> {
    /// Waits until the lock is granted, without a time limit. If no lease is set, the watchdog
    /// renews the lock every third of [`watchdog_timeout`](crate::Builder::watchdog_timeout) until
    /// it is released.
    ///
    /// To give up the wait, drop the future, as `tokio::time::timeout`, `tokio::select!` and a
    /// `CancellationToken` of tokio-util do. The client then undoes the request in the background.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> lockstorm_client::Result<()> {
    /// # let server = lockstorm_sim::TestServer::start().await.expect("a free port");
    /// # let url = server.url();
    /// use tokio_util::sync::CancellationToken;
    /// # let client = lockstorm_client::Client::connect(&url).await?;
    /// # let taken = client.lock("stock").acquire().await?;
    /// let shutdown = CancellationToken::new();
    /// # shutdown.cancel();
    /// match shutdown.run_until_cancelled(client.lock("stock").acquire().into_future()).await {
    ///     Some(guard) => guard?.release().await?,
    ///     None => println!("we are shutting down"),
    /// }
    /// # taken.release().await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns an error in these cases:
    ///
    /// * No server answers within the client's [`call_timeout`](crate::Builder::call_timeout), or
    ///   within the number of attempts that its configuration allows.
    /// * The server refuses something that waiting needs. For example, a user without the right to
    ///   the lock's channel gets `NOPERM`.
    /// * [`Redlock`](crate::Redlock) only: [`ErrorKind::NoQuorum`](crate::ErrorKind::NoQuorum) when
    ///   too few servers answer in each of as many consecutive attempts as the first client's
    ///   configuration allows. If so many servers refuse for good that the others are no quorum,
    ///   their refusal is returned without further attempts.
    pub fn acquire(&self) -> Acquire<O::Guard> {
        let object = self.0.clone();
        Acquire::unbounded(|options| object.acquire(options))
    }

    /// Takes the lock if it is free now, without waiting.
    ///
    /// # Errors
    /// As [`Handle::acquire`]; a [`Redlock`](crate::Redlock) fails after one attempt.
    pub fn try_acquire(&self) -> Acquire<Option<O::Guard>> {
        self.limited(WaitLimit::NoWait)
    }

    /// Waits for the lock, for at most `wait`. Returns `None` if another owner has it. A request
    /// that is under way when the time runs out is undone in the background.
    ///
    /// # Errors
    /// As [`Handle::acquire`], and when no server has answered within `wait`.
    pub fn try_acquire_for(&self, wait: Duration) -> Acquire<Option<O::Guard>> {
        self.limited(WaitLimit::For(wait))
    }

    /// Waits for the lock, for at most `wait`, runs `work` under it, and releases it. The lock is
    /// also released when `work` panics or this future is dropped. Returns `None`, without running
    /// `work`, if another owner has the lock.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> lockstorm_client::Result<()> {
    /// # let server = lockstorm_sim::TestServer::start().await.expect("a free port");
    /// # let url = server.url();
    /// # let client = lockstorm_client::Client::connect(&url).await?;
    /// let lock = client.lock("stock");
    /// let done = lock.with(Duration::from_secs(2), async |guard| guard.is_valid()).await?;
    /// let done = done.expect("no other owner has it");
    /// assert!(done.value);
    /// done.released?; // an error: the lock was lost while the work was done
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Handle::try_acquire_for`]; `work` has then not run.
    pub async fn with<T>(
        &self,
        wait: Duration,
        work: impl AsyncFnOnce(&O::Guard) -> T,
    ) -> Result<Option<Done<T>>> {
        self.try_acquire_for(wait).with(work).await
    }

    fn limited(&self, limit: WaitLimit) -> Acquire<Option<O::Guard>> {
        let object = self.0.clone();
        Acquire::new(limit, |options| object.acquire(options))
    }
}

impl<O: Object> Handle<O> {
    /// Returns true if any owner of any client holds the lock. A [`Redlock`](crate::Redlock) counts
    /// as held if one holder has a majority of the servers.
    ///
    /// # Errors
    /// When no server answers in time or the server refuses the query.
    pub async fn is_locked(&self) -> Result<bool> {
        self.0.is_locked().await
    }

    /// Returns the number of levels that `owner`, an owner of this client, holds; zero if it does
    /// not hold the lock. The owners of a [`Redlock`](crate::Redlock) are those of its first
    /// client.
    ///
    /// # Errors
    /// When no server answers in time or the server refuses the query.
    pub async fn hold_count(&self, owner: OwnerId) -> Result<u64> {
        self.0.hold_count(owner).await
    }

    /// Returns the rest of the lease by the server's clock. `None` if the lock is free, or is held
    /// without a TTL. For a [`Redlock`](crate::Redlock): the time for which a majority of the
    /// servers stays taken.
    ///
    /// # Errors
    /// When no server answers in time or the server refuses the query.
    pub async fn remaining(&self) -> Result<Option<Duration>> {
        self.0.remaining().await
    }

    /// Frees the lock, whichever owner holds it. Returns true if it was held. Holds of this client
    /// are lost immediately; other clients notice at their next renewal.
    ///
    /// # Errors
    /// When no server answers in time or the server refuses the query.
    pub async fn force_release(&self) -> Result<bool> {
        self.0.force_release().await
    }

    /// Returns the lock's key in Redis.
    pub fn key(&self) -> &str {
        self.0.key()
    }
}

impl FencedLock {
    /// Returns the fencing token of the last grant, or `None` if the lock was never granted.
    ///
    /// # Errors
    /// When no server answers in time or the server refuses the query.
    pub async fn last_token(&self) -> Result<Option<u64>> {
        let key = &self.0.key;
        read_number(&self.0.router()?.ask(key.slot(), redis::cmd("GET").arg(fencing_token(key))).await?)
    }
}

impl<O: Lockable> std::fmt::Debug for Handle<O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// Formats a lock with one key.
pub(crate) fn debug_key(f: &mut std::fmt::Formatter<'_>, key: &str) -> std::fmt::Result {
    f.debug_struct("Lock").field("key", &key).finish_non_exhaustive()
}

/// Refuses an empty name: all callers that forget to name their lock would share it.
pub(crate) fn check_name(name: &str, key: &str) -> Result<()> {
    if !NAME_LENGTH.takes(name.len()) || !NAME_LENGTH.takes(key.len()) {
        return Err(Error::config("the name of the lock is empty"));
    }
    Ok(())
}

/// A lock on one master. Its grants carry a `G`.
pub struct OnMaster<G: 'static> {
    session: Arc<Session>,
    kind: Arc<dyn LockKind<Got = G>>,
    key: Key,
    /// False if the application gave an empty name or its name mapper returned one.
    is_named: bool,
}

impl<G: Got> Clone for OnMaster<G> {
    fn clone(&self) -> Self {
        Self {
            session: self.session.clone(),
            kind: self.kind.clone(),
            key: self.key.clone(),
            is_named: self.is_named,
        }
    }
}

impl<G: 'static> std::fmt::Debug for OnMaster<G> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        debug_key(f, &self.key)
    }
}

impl<G: OfLock> Handle<OnMaster<G>> {
    pub(crate) fn new(session: Arc<Session>, kind: impl LockKind<Got = G>, name: &str) -> Self {
        let key = session.key(name);
        let is_named = check_name(name, &key).is_ok();
        Self(OnMaster { session, kind: Arc::new(kind), key, is_named })
    }
}

impl<G: OfLock> Handle<OnMaster<G>> {
    /// Returns a guard for a hold that has no guard in this process: another process has
    /// [forgotten](Guard::forget) it, or this process had it before a restart. `owner` is the owner
    /// field in Redis, as [`Guard::owner`] returns it.
    ///
    /// Asks the server if the owner holds the lock, and has the watchdog renew it from then on.
    /// Each level of a nested hold must be adopted separately. The process that had the guard must
    /// not use it any more: two processes that act as the same owner do not exclude each other.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> lockstorm_client::Result<()> {
    /// # let server = lockstorm_sim::TestServer::start().await.expect("a free port");
    /// # let url = server.url();
    /// # let old_process = lockstorm_client::Client::connect(&url).await?;
    /// # let new_process = lockstorm_client::Client::connect(&url).await?;
    /// let guard = old_process.lock("stock").acquire().await?;
    /// let owner = guard.owner().to_owned();
    /// guard.forget();
    /// let guard = new_process.lock("stock").adopt(&owner).await?;
    /// guard.release().await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::NotHeld`](crate::ErrorKind::NotHeld) if the owner does not hold the lock, or
    /// holds no more levels than this client already has guards for. Connection errors.
    pub async fn adopt(&self, owner: &str) -> Result<Guard<G>> {
        self.0.router()?;
        let OnMaster { session, kind, key, .. } = self.0.clone();
        Acquisition::new(session, kind, key, owner.to_owned(), None, WaitLimit::NoWait)?.adopt().await
    }
}

impl<G> OnMaster<G> {
    /// For a kind that shares its key with others: asks how the key is taken. `None` for other
    /// kinds.
    async fn look(&self) -> Result<Option<Taken>> {
        let Some(look) = self.kind.look(&self.key) else { return Ok(None) };
        let looked = self.router()?.run_unconfirmed(&look).await;
        self.kind.read_look(&self.or_explained(&look.keys(), looked).await?).map(Some)
    }

    /// Passes `done` through. If it is an error that the user's missing rights to `keys` explain,
    /// adds the missing right to the error.
    async fn or_explained(&self, keys: &[String], done: Result<Value>) -> Result<Value> {
        match done {
            Err(error) => {
                let rights = self.kind.rights();
                Err(Box::pin(explained(&self.session, rights, &self.key, keys, error)).await)
            }
            done => done,
        }
    }

    /// Sends a read-only command about the lock's own key and returns the reply.
    async fn ask(&self, question: &Cmd) -> Result<Value> {
        let asked = self.router()?.ask(self.key.slot(), question).await;
        self.or_explained(&[self.key.to_string()], asked).await
    }

    fn router(&self) -> Result<&Router> {
        check_name(if self.is_named { &self.key } else { "" }, &self.key)?;
        self.kind.check()?;
        Ok(&self.session.router)
    }
}

impl<G: OfLock> sealed::Acquirable for OnMaster<G> {
    type Guard = Guard<G>;

    async fn acquire(self, options: AcquireOptions) -> Result<Option<Guard<G>>> {
        self.router()?;
        let Self { session, kind, key, .. } = self;
        let AcquireOptions { owner, lease, limit } = options;
        let field = kind.owner_field(session.field(owner.unwrap_or_else(|| OwnerId::fresh(session.env()))));
        Acquisition::new(session, kind, key, field, lease, limit)?.acquire().await
    }
}

impl<G: OfLock> sealed::Single for OnMaster<G> {
    type Got = G;

    fn key(&self) -> &str {
        &self.key
    }

    fn sessions(&self) -> Sessions<'_> {
        Sessions(std::slice::from_ref(&self.session))
    }

    async fn is_locked(&self) -> Result<bool> {
        if let Some(taken) = self.look().await? {
            return Ok(taken.is_locked);
        }
        match self.ask(redis::cmd("EXISTS").arg(&*self.key)).await? {
            Value::Int(count) => Ok(count > 0),
            other => Err(Error::unexpected(&other)),
        }
    }

    async fn hold_count(&self, owner: OwnerId) -> Result<u64> {
        let question = self.kind.ask_levels(&self.key, &self.kind.owner_field(self.session.field(owner)));
        self.kind.read_levels(&self.ask(&question).await?)
    }

    async fn remaining(&self) -> Result<Option<Duration>> {
        match self.ask(&self.kind.ask_left(&self.key)).await? {
            Value::Int(pttl) => Ok(remaining(pttl)),
            other => Err(Error::unexpected(&other)),
        }
    }

    async fn force_release(&self) -> Result<bool> {
        let router = self.router()?;
        // The publish command depends on the servers, so find out first what they are.
        router.made_ready().await?;
        // If the release would not free the lock, do not mark any hold lost.
        if self.look().await?.is_some_and(|taken| !taken.is_forcible) {
            return Ok(false);
        }
        let parts = self.kind.parts();
        // Mark the holds lost first, so that the watchdog does not renew them.
        self.session.ctx.ledger.lose_all(&self.key, &parts, LossCause::NotHeld);
        let now_ms = millis(self.session.env().wall().0);
        let call = self.kind.force_release(&self.key, now_ms, router.publish());
        let done = router.run_repeatable(&call).await;
        match self.or_explained(&call.keys(), done).await? {
            Value::Int(freed) => Ok(freed == 1),
            other => Err(Error::unexpected(&other)),
        }
    }
}

/// The clients through which a lock is requested.
pub struct Sessions<'a>(pub(crate) &'a [Arc<Session>]);
