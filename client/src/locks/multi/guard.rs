//! The guard of a multi lock.

use std::time::Duration;

use futures_util::future::{join_all, select_all};

use super::member::Part;
use crate::acquire_options::sealed::{Owned, Releasable};
use crate::error::{Error, Result};
use crate::observer::LossCause;

/// Proof that all locks of a [`MultiLock`](crate::MultiLock) were granted, and the means to release
/// them.
///
/// It is lost as soon as one of the locks is. The others stay held until it is released or dropped.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> lockstorm_client::Result<()> {
/// # let server = lockstorm_sim::TestServer::start().await.expect("a free port");
/// # let url = server.url();
/// # let client = lockstorm_client::Client::connect(&url).await?;
/// use lockstorm_client::MultiLock;
/// let (stock, cash) = (client.lock("stock"), client.fenced_lock("cash"));
/// let guard = MultiLock::builder().member(&stock).member(&cash).build()?.acquire().await?;
/// let tokens: Vec<_> = guard.members().map(|member| (member.key(), member.token())).collect();
/// assert_eq!(tokens, [("stock", None), ("cash", Some(1))]);
/// guard.release().await?;
/// # Ok(()) }
/// ```
#[must_use = "the locks are released when the guard is dropped"]
pub struct MultiGuard {
    /// In the order in which the locks were added.
    parts: Vec<Box<dyn Part>>,
}

impl MultiGuard {
    pub(super) fn new(parts: Vec<Box<dyn Part>>) -> Self {
        Self { parts }
    }

    /// Releases all locks, each as [`Guard::release`](crate::Guard::release) does. The releases run
    /// in parallel, and none depends on the success of another.
    ///
    /// # Errors
    /// [`ErrorKind::Members`](crate::ErrorKind::Members) with the errors of the locks that could
    /// not be released.
    pub async fn release(self) -> Result<()> {
        let keys: Vec<_> = self.parts.iter().map(|part| part.key().to_owned()).collect();
        let released = join_all(self.parts.into_iter().map(|part| part.release())).await;
        Error::of_members(keys.iter().map(String::as_str).zip(released))
    }

    /// Extends the lease of each lock once, to `lease` from now. Never shortens a longer lease.
    ///
    /// # Errors
    /// [`ErrorKind::Members`](crate::ErrorKind::Members) with the errors of the locks that could
    /// not be extended.
    pub async fn extend(&self, lease: Duration) -> Result<()> {
        let extended = join_all(self.parts.iter().map(|part| part.extend(lease))).await;
        Error::of_members(self.parts.iter().map(|part| part.key()).zip(extended))
    }

    /// Returns the time for which all locks are certainly held by the clocks of their clients, if
    /// they are not renewed; zero if one is lost.
    pub fn validity(&self) -> Duration {
        self.parts.iter().map(|part| part.validity()).min().unwrap_or_default()
    }

    /// Returns true if all locks are certainly held now.
    pub fn is_valid(&self) -> bool {
        self.parts.iter().all(|part| part.is_valid())
    }

    /// Completes when one of the locks is lost, as [`Guard::lost`](crate::Guard::lost).
    pub fn lost(&self) -> impl Future<Output = LossCause> + Send + 'static {
        let lost = select_all(self.parts.iter().map(|part| part.lost()));
        async move { lost.await.0 }
    }

    /// Returns the locks, in the order in which they were added.
    pub fn members(&self) -> impl Iterator<Item = HeldMember<'_>> {
        self.parts.iter().map(|part| HeldMember(&**part))
    }
}

impl Owned for MultiGuard {}

impl Releasable for MultiGuard {
    fn release(self) -> impl Future<Output = Result<()>> + Send {
        MultiGuard::release(self)
    }
}

impl std::fmt::Debug for MultiGuard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.members()).finish()
    }
}

/// One of the locks that a [`MultiGuard`] holds.
#[derive(Clone, Copy)]
pub struct HeldMember<'a>(&'a dyn Part);

impl<'a> HeldMember<'a> {
    /// Returns the lock's key in Redis.
    pub fn key(&self) -> &'a str {
        self.0.key()
    }

    /// Returns the owner field of this lock in Redis.
    pub fn owner(&self) -> &'a str {
        self.0.owner()
    }

    /// Returns the fencing token of this lock; `None` unless it is a fenced lock.
    pub fn token(&self) -> Option<u64> {
        self.0.token()
    }

    /// Returns the time for which this lock is certainly held; zero if it is lost.
    pub fn validity(&self) -> Duration {
        self.0.validity()
    }
}

impl std::fmt::Debug for HeldMember<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HeldMember")
            .field("key", &self.key())
            .field("owner", &self.owner())
            .field("validity", &self.validity())
            .field("token", &self.token())
            .finish()
    }
}
