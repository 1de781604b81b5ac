//! The plain lock, Redisson's `RLock`: whoever comes first gets it, and its owner may take it again.

use crate::client::Client;
use crate::lock::Lock;
use crate::protocol::{Ask, Protocol, Unlock};
use crate::script::{Call, script};
use crate::wire::{lock_channel, unlock_latch};

script!(ACQUIRE, "acquire.lua");
script!(RELEASE, "release.lua");
script!(FORCE_RELEASE, "force_release.lua");

impl Client {
    /// A lock that its owner may take several times, and that goes to whoever comes first when it is released.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> lockstorm_client::Result<()> {
    /// # let server = lockstorm_sim::TestServer::start().await.expect("a free port");
    /// # let url = server.url();
    /// # let client = lockstorm_client::Client::connect(&url).await?;
    /// let lock = client.lock("stock");
    /// if let Some(guard) = lock.try_acquire_for(Duration::from_secs(2)).lease(Duration::from_secs(10)).await? {
    ///     // at most 10 s of work
    ///     guard.release().await?;
    /// }
    /// # Ok(()) }
    /// ```
    pub fn lock(&self, name: &str) -> Lock {
        Lock::new(self.session.clone(), &Reentrant, name)
    }
}

struct Reentrant;

impl Protocol for Reentrant {
    fn acquire(&self, ask: &Ask<'_>) -> Call {
        ACQUIRE.call([ask.lock]).arg(ask.lease_ms).arg(ask.owner)
    }

    fn release(&self, unlock: &Unlock<'_>) -> Call {
        release(unlock)
    }

    fn force_release(&self, lock: &str, _now_ms: u64, publish: &str) -> Call {
        force_release(lock, publish)
    }

    fn channel(&self, lock: &str, _owner: &str) -> String {
        lock_channel(lock)
    }
}

/// The release of every lock that is a hash with one channel.
pub(super) fn release(unlock: &Unlock<'_>) -> Call {
    RELEASE
        .call([unlock.lock.to_owned(), lock_channel(unlock.lock), unlock_latch(unlock.lock, unlock.request)])
        .arg(0)
        .arg(unlock.remaining_ms)
        .arg(unlock.owner)
        .arg(unlock.publish)
        .arg(unlock.latch_ms)
}

/// The forced release of every lock that is a hash with one channel.
pub(super) fn force_release(lock: &str, publish: &str) -> Call {
    FORCE_RELEASE.call([lock.to_owned(), lock_channel(lock)]).arg(0).arg(publish)
}
