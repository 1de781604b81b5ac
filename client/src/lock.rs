//! The handles of locks: the calls that every kind answers to.

use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use redis::{Cmd, Value};

use crate::acquire::{Request, acquire, adopt};
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

/// What a [`Handle`] is the handle of. The kinds of this crate implement it, and no others can. It
/// is also what makes code generic over locks:
///
/// ```
/// # use std::time::Duration;
/// use lockstorm_client::{Handle, Object, Result};
///
/// /// Does `work` alone, under a lock of whatever kind.
/// async fn alone<O: Object>(lock: &Handle<O>, work: impl AsyncFnOnce()) -> Result<bool> {
///     let done = lock.with(Duration::from_secs(2), async |_| work().await).await?;
///     done.map_or(Ok(false), |done| done.released.map(|()| true))
/// }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// # let server = lockstorm_sim::TestServer::start().await.expect("a free port");
/// # let client = lockstorm_client::Client::connect(&server.url()).await?;
/// assert!(alone(&client.lock("stock"), async || ()).await?);
/// assert!(alone(&client.fenced_lock("file"), async || ()).await?);
/// # Ok(()) }
/// ```
pub trait Object: sealed::Acquirable {}

impl<O: sealed::Acquirable> Object for O {}

pub(crate) mod sealed {
    use std::time::Duration;

    use crate::error::Result;
    use crate::guard::{Guard, OfLock};
    use crate::lock::{AcquireOptions, Sessions};
    use crate::owner::OwnerId;

    /// What differs from one object to the next.
    pub trait Acquirable: Clone + Send + Sync + 'static {
        type Got: OfLock;

        fn key(&self) -> &str;

        fn sessions(&self) -> Sessions<'_>;

        fn acquire(
            self,
            options: AcquireOptions,
        ) -> impl Future<Output = Result<Option<Guard<Self::Got>>>> + Send;
        fn is_locked(&self) -> impl Future<Output = Result<bool>> + Send;
        fn hold_count(&self, owner: OwnerId) -> impl Future<Output = Result<u64>> + Send;
        fn remaining(&self) -> impl Future<Output = Result<Option<Duration>>> + Send;
        fn force_release(&self) -> impl Future<Output = Result<bool>> + Send;
    }
}

/// A lock, by name. Cheap to clone; holds nothing by itself. All kinds answer to the same calls:
/// [`Lock`], [`FencedLock`], [`Redlock`](crate::Redlock).
#[derive(Clone)]
pub struct Handle<O: Object>(pub(crate) O);

/// The handle of a lock on one master: [`Client::lock`](crate::Client::lock),
/// [`Client::fair_lock`](crate::Client::fair_lock).
pub type Lock = Handle<OnMaster<()>>;

/// The handle of a lock whose guards have a fencing token:
/// [`Client::fenced_lock`](crate::Client::fenced_lock).
pub type FencedLock = Handle<OnMaster<Token>>;

impl<O: Object> Handle<O> {
    /// Waits until the lock is granted, however long that takes. Without a lease the watchdog
    /// renews it, every third of [`watchdog_timeout`](crate::Builder::watchdog_timeout), until
    /// release.
    ///
    /// The wait may be given up by dropping the future, as `tokio::time::timeout`, `tokio::select!`
    /// and a `CancellationToken` of tokio-util do: what was asked for is then undone in the
    /// background.
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
    /// When no server answers within the client's [`call_timeout`](crate::Builder::call_timeout),
    /// or for all the attempts that its configuration allows, and when the server refuses what
    /// waiting needs: a user without the right to the lock's channel gets `NOPERM` from it. Of a
    /// [`Redlock`](crate::Redlock) [`ErrorKind::NoQuorum`](crate::ErrorKind::NoQuorum), when too
    /// few servers answer for all attempts that the first client's configuration allows in a row,
    /// and at once what so many of them refuse for good that the others are no quorum.
    pub fn acquire(&self) -> Acquire<O::Got> {
        Acquire(self.pending(WaitLimit::Unbounded))
    }

    /// Takes the lock if it is free now.
    ///
    /// # Errors
    /// As [`Handle::acquire`]; of a [`Redlock`](crate::Redlock) after one attempt.
    pub fn try_acquire(&self) -> TryAcquire<O::Got> {
        TryAcquire(self.pending(WaitLimit::NoWait))
    }

    /// Waits for the lock, for at most `wait`. `None` means that another owner has it; a request
    /// that was under way when the time ran out is undone in the background.
    ///
    /// # Errors
    /// As [`Handle::acquire`], and when no server has answered by the end of `wait`.
    pub fn try_acquire_for(&self, wait: Duration) -> TryAcquire<O::Got> {
        TryAcquire(self.pending(WaitLimit::For(wait)))
    }

    /// Waits for the lock, for at most `wait`, and does `work` under it. It is released whatever
    /// happens: also when `work` panics, or when this future is dropped. `None` means that another
    /// owner has it, and that nothing was done.
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
    /// As [`Handle::try_acquire_for`]; nothing was done then.
    pub async fn with<T>(
        &self,
        wait: Duration,
        work: impl AsyncFnOnce(&Guard<O::Got>) -> T,
    ) -> Result<Option<Done<T>>> {
        self.try_acquire_for(wait).with(work).await
    }

    /// Whether the lock is held, by any owner of any client. A [`Redlock`](crate::Redlock) is when
    /// a majority of the servers is taken by one and the same holder.
    ///
    /// # Errors
    /// When Redis cannot be asked.
    pub async fn is_locked(&self) -> Result<bool> {
        self.0.is_locked().await
    }

    /// How many levels `owner`, an owner of this client, holds; zero when it does not hold the
    /// lock. The owners of a [`Redlock`](crate::Redlock) are those of its first client.
    ///
    /// # Errors
    /// When Redis cannot be asked.
    pub async fn hold_count(&self, owner: OwnerId) -> Result<u64> {
        self.0.hold_count(owner).await
    }

    /// The lease that is left by the server's clock; `None` when the lock is free, or held without
    /// a time to live. Of a [`Redlock`](crate::Redlock): for how long a majority of the servers is
    /// taken.
    ///
    /// # Errors
    /// When Redis cannot be asked.
    pub async fn remaining(&self) -> Result<Option<Duration>> {
        self.0.remaining().await
    }

    /// Frees the lock, which any owner may hold; true when one did. Holds of this client are lost
    /// at once, those of others learn of it at their next renewal.
    ///
    /// # Errors
    /// When Redis cannot be asked.
    pub async fn force_release(&self) -> Result<bool> {
        self.0.force_release().await
    }

    /// The lock's key in Redis.
    pub fn key(&self) -> &str {
        self.0.key()
    }

    fn pending(&self, limit: WaitLimit) -> PendingAcquire<Guard<O::Got>> {
        let object = self.0.clone();
        PendingAcquire::new(limit, |options| object.acquire(options))
    }
}

impl FencedLock {
    /// The fencing token of the last grant; `None` when there was none.
    ///
    /// # Errors
    /// When Redis cannot be asked.
    pub async fn last_token(&self) -> Result<Option<u64>> {
        let key = &self.0.key;
        read_number(&self.0.router()?.ask(key.slot(), redis::cmd("GET").arg(fencing_token(key))).await?)
    }
}

impl<O: Object> std::fmt::Debug for Handle<O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lock").field("key", &self.key()).finish_non_exhaustive()
    }
}

/// A lock without a name would be one that all who forget theirs share.
pub(crate) fn check_name(name: &str, key: &str) -> Result<()> {
    if !NAME_LENGTH.takes(name.len()) || !NAME_LENGTH.takes(key.len()) {
        return Err(Error::config("the name of the lock is empty"));
    }
    Ok(())
}

/// A lock on one master, whose grants bring a `G`.
pub struct OnMaster<G: 'static> {
    session: Arc<Session>,
    kind: Arc<dyn LockKind<Got = G>>,
    key: Key,
    /// The application gave a name, and its name mapper left something of it.
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

impl<G: OfLock> Handle<OnMaster<G>> {
    pub(crate) fn new(session: Arc<Session>, kind: impl LockKind<Got = G>, name: &str) -> Self {
        let key = session.key(name);
        let is_named = check_name(name, &key).is_ok();
        Self(OnMaster { session, kind: Arc::new(kind), key, is_named })
    }
}

impl<G: OfLock> Handle<OnMaster<G>> {
    /// A guard for a hold that has none here: one that another process has
    /// [forgotten](Guard::forget), or that this one had before it started anew. `owner` is the
    /// owner as Redis knows it, which is [`Guard::owner`].
    ///
    /// The server is asked whether the owner holds the lock, and the watchdog renews it from here
    /// on. Of several levels each has to be adopted by itself. The process that had the guard must
    /// not use it any more: two processes that both take themselves for the owner do not exclude
    /// each other.
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
    /// [`ErrorKind::NotHeld`](crate::ErrorKind::NotHeld) when the owner does not hold the lock, or
    /// no more levels of it than there are guards here. The errors of the connection.
    pub async fn adopt(&self, owner: &str) -> Result<Guard<G>> {
        self.0.router()?;
        let OnMaster { session, kind, key, .. } = self.0.clone();
        let (owner, limit) = (owner.to_owned(), WaitLimit::NoWait);
        adopt(Request { session, kind, key, owner, lease: None, limit }).await
    }
}

impl<G> OnMaster<G> {
    /// How the key is taken, of kinds that share it.
    async fn look(&self) -> Result<Option<Taken>> {
        let Some(look) = self.kind.look(&self.key) else { return Ok(None) };
        let looked = self.router()?.run_unconfirmed(&look).await;
        self.kind.read_look(&self.or_explained(look.keys(), looked).await?).map(Some)
    }

    /// What came of a request with these keys, with the right that the user lacks, if that is why
    /// it failed.
    async fn or_explained(&self, keys: &[String], done: Result<Value>) -> Result<Value> {
        match done {
            Err(error) => {
                let rights = self.kind.rights();
                Err(Box::pin(explained(&self.session, rights, &self.key, keys, error)).await)
            }
            done => done,
        }
    }

    /// The answer to a question for the key itself.
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
    type Got = G;

    fn key(&self) -> &str {
        &self.key
    }

    fn sessions(&self) -> Sessions<'_> {
        Sessions(std::slice::from_ref(&self.session))
    }

    async fn acquire(self, options: AcquireOptions) -> Result<Option<Guard<G>>> {
        self.router()?;
        let Self { session, kind, key, .. } = self;
        let AcquireOptions { owner, lease, limit } = options;
        let owner = kind.owner_field(session.field(owner.unwrap_or_else(|| OwnerId::fresh(session.env()))));
        acquire(Request { session, kind, key, owner, lease, limit }).await
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
        // What is published how depends on what the servers are.
        router.made_ready().await?;
        // What it does not free is not lost.
        if self.look().await?.is_some_and(|taken| !taken.is_forcible) {
            return Ok(false);
        }
        let parts = self.kind.parts();
        // What is lost is not renewed either.
        self.session.ctx.ledger.lose_all(&self.key, &parts, LossCause::NotHeld);
        let now_ms = millis(self.session.env().wall().0);
        let call = self.kind.force_release(&self.key, now_ms, router.publish());
        let done = router.run_repeatable(&call).await;
        match self.or_explained(call.keys(), done).await? {
            Value::Int(freed) => Ok(freed == 1),
            other => Err(Error::unexpected(&other)),
        }
    }
}

/// The clients that a lock is asked for through, one of each.
pub struct Sessions<'a>(pub(crate) &'a [Arc<Session>]);

/// What an acquisition asks for.
#[derive(Debug, Clone, Copy)]
pub struct AcquireOptions {
    pub(crate) owner: Option<OwnerId>,
    pub(crate) lease: Option<Duration>,
    pub(crate) limit: WaitLimit,
}

type Run<T> = Box<dyn FnOnce(AcquireOptions) -> BoxFuture<'static, Result<Option<T>>> + Send + Sync>;

/// An acquisition that is being set up, of what a guard `T` stands for.
pub(crate) struct PendingAcquire<T> {
    run: Run<T>,
    pub(crate) options: AcquireOptions,
}

impl<T> PendingAcquire<T> {
    pub(crate) fn new<F>(
        limit: WaitLimit,
        run: impl FnOnce(AcquireOptions) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<Option<T>>> + Send + 'static,
    {
        Self {
            run: Box::new(|options| Box::pin(run(options))),
            options: AcquireOptions { owner: None, lease: None, limit },
        }
    }

    /// What comes of it; `None` when the caller's time ends first.
    pub(crate) fn run(self) -> BoxFuture<'static, Result<Option<T>>> {
        (self.run)(self.options)
    }

    /// What comes of one without a limit, which does not come to nothing.
    pub(crate) async fn run_unbounded(self) -> Result<T> {
        self.run().await?.ok_or_else(Error::shutdown)
    }
}

/// An acquisition that waits until it is granted. Await it, after setting what differs from the
/// defaults.
#[must_use = "nothing is asked for until this is awaited"]
pub struct Acquire<G = ()>(PendingAcquire<Guard<G>>);

/// An acquisition that may come to nothing. Await it, after setting what differs from the defaults.
#[must_use = "nothing is asked for until this is awaited"]
pub struct TryAcquire<G = ()>(PendingAcquire<Guard<G>>);

/// What came of work under a lock.
#[derive(Debug)]
#[must_use = "the lock may have been lost while the work was done"]
pub struct Done<T> {
    /// What the work returned.
    pub value: T,
    /// What came of the release, as of [`Guard::release`]: with
    /// [`ErrorKind::NotHeld`](crate::ErrorKind::NotHeld) the lock was lost before the work was
    /// done.
    pub released: Result<()>,
}

async fn work_under<G, T>(guard: Guard<G>, work: impl AsyncFnOnce(&Guard<G>) -> T) -> Done<T> {
    let value = work(&guard).await;
    Done { value, released: guard.release().await }
}

impl<G: Got> Acquire<G> {
    /// Waits for the lock, does `work` under it, and releases it whatever happens, as
    /// [`Handle::with`].
    ///
    /// # Errors
    /// As [`Handle::acquire`]; nothing was done then.
    pub async fn with<T>(self, work: impl AsyncFnOnce(&Guard<G>) -> T) -> Result<Done<T>> {
        Ok(work_under(self.await?, work).await)
    }
}

impl<G: Got> TryAcquire<G> {
    /// Does `work` under the lock if it is got, and releases it whatever happens, as
    /// [`Handle::with`].
    ///
    /// # Errors
    /// As [`Handle::try_acquire_for`]; nothing was done then.
    pub async fn with<T>(self, work: impl AsyncFnOnce(&Guard<G>) -> T) -> Result<Option<Done<T>>> {
        let Some(guard) = self.await? else { return Ok(None) };
        Ok(Some(work_under(guard, work).await))
    }
}

macro_rules! options {
    ($($name:tt)+) => {
        impl $($name)+ {
            /// Holds the lock for `lease` and does not renew it. Without this the watchdog renews
            /// it until release.
            pub fn lease(mut self, lease: std::time::Duration) -> Self {
                self.0.options.lease = Some(lease);
                self
            }

            /// Acquires for this owner; acquisitions of one owner nest. Without this the owner is a
            /// new one.
            pub fn owner(mut self, owner: $crate::owner::OwnerId) -> Self {
                self.0.options.owner = Some(owner);
                self
            }
        }
    };
}
pub(crate) use options;

options!(<G> Acquire<G>);
options!(<G> TryAcquire<G>);

impl<G: Got> IntoFuture for Acquire<G> {
    type Output = Result<Guard<G>>;
    type IntoFuture = BoxFuture<'static, Result<Guard<G>>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.0.run_unbounded())
    }
}

impl<G: Got> IntoFuture for TryAcquire<G> {
    type Output = Result<Option<Guard<G>>>;
    type IntoFuture = BoxFuture<'static, Result<Option<Guard<G>>>>;

    fn into_future(self) -> Self::IntoFuture {
        self.0.run()
    }
}
