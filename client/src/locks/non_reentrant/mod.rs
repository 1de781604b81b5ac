//! Locks that do not nest, Redisson's `getNonReentrantLock` and `getNonReentrantFairLock`. They use
//! the keys, scripts and messages of the plain and the fair lock, but refuse an owner that asks
//! again.

use super::fair::Fair;
use super::reentrant::Plain;
use crate::client::Client;
use crate::lock::Lock;

impl Client {
    /// Returns a handle on a lock that its owner cannot acquire a second time: the request fails
    /// with [`ErrorKind::AlreadyHeld`](crate::ErrorKind::AlreadyHeld) instead of waiting for
    /// itself. The [plain lock](Client::lock) of the same name shares its key and excludes it.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> lockstorm_client::Result<()> {
    /// # let server = lockstorm_sim::TestServer::start().await.expect("a free port");
    /// # let url = server.url();
    /// use lockstorm_client::{Client, ErrorKind, OwnerId};
    /// let client = Client::connect(&url).await?;
    /// let (lock, owner) = (client.non_reentrant_lock("stock"), OwnerId::new(52));
    /// let guard = lock.acquire().owner(owner).await?;
    /// let again = lock.acquire().owner(owner).await.unwrap_err();
    /// assert!(matches!(again.kind(), ErrorKind::AlreadyHeld));
    /// guard.release().await?;
    /// # Ok(()) }
    /// ```
    pub fn non_reentrant_lock(&self, name: &str) -> Lock {
        Lock::new(self.session.clone(), Plain { nests: false }, name)
    }

    /// Returns a handle on a [fair lock](Client::fair_lock) that its owner cannot acquire a second
    /// time, as with [`Client::non_reentrant_lock`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> lockstorm_client::Result<()> {
    /// # let server = lockstorm_sim::TestServer::start().await.expect("a free port");
    /// # let url = server.url();
    /// # let client = lockstorm_client::Client::connect(&url).await?;
    /// let guard = client.non_reentrant_fair_lock("printer").acquire().await?;
    /// guard.release().await?;
    /// # Ok(()) }
    /// ```
    pub fn non_reentrant_fair_lock(&self, name: &str) -> Lock {
        Lock::new(self.session.clone(), Fair { nests: false }, name)
    }
}
