//! The spin lock, Redisson's `RSpinLock`: a plain lock without messages. Its waiters poll.

use redis::{Cmd, Value};

use super::reentrant::Plain;
use crate::attempt::{Answer, Ask, Attempt, ForceRelease, Found, Lease, Unlock};
use crate::client::Client;
use crate::error::Result;
use crate::hold::{Known, Told};
use crate::lock::Lock;
use crate::renew::RenewalScript;
use crate::rights::{self, Rights};
use crate::script::{Call, Script, script};
use crate::spin::SpinBackoff;
use crate::wake::Wakes;
use crate::wire::unlock_latch;

script!(RELEASE, "release.lua");
script!(RELEASE_WITHOUT_LATCH, "../without_latch.lua", "release.lua");
script!(FORCE_RELEASE, "force_release.lua");

impl Client {
    /// Returns a handle on a lock without messages: nothing is published, and a waiter asks again
    /// after 1 ms, 2 ms, 4 ms and so on up to 128 ms.
    ///
    /// Use it for locks that many callers hold for a moment each, where a subscription for each
    /// wait costs more than polling. The user needs no right to any channel. The [plain
    /// lock](Client::lock) of the same name shares its key and excludes it, but a release of the
    /// spin lock does not wake the plain lock's waiters.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> lockstorm_client::Result<()> {
    /// # let server = lockstorm_sim::TestServer::start().await.expect("a free port");
    /// # let url = server.url();
    /// # let client = lockstorm_client::Client::connect(&url).await?;
    /// if let Some(guard) = client.spin_lock("counter").try_acquire_for(Duration::from_millis(500)).await? {
    ///     guard.release().await?;
    /// }
    /// # Ok(()) }
    /// ```
    pub fn spin_lock(&self, name: &str) -> Lock {
        self.spin_lock_with(name, SpinBackoff::default())
    }

    /// As [`Client::spin_lock`], with a custom backoff.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> lockstorm_client::Result<()> {
    /// # let server = lockstorm_sim::TestServer::start().await.expect("a free port");
    /// # let url = server.url();
    /// # let client = lockstorm_client::Client::connect(&url).await?;
    /// use lockstorm_client::SpinBackoff;
    /// let lock = client.spin_lock_with("counter", SpinBackoff::constant(Duration::from_millis(64)));
    /// lock.acquire().await?.release().await?;
    /// # Ok(()) }
    /// ```
    pub fn spin_lock_with(&self, name: &str, backoff: SpinBackoff) -> Lock {
        Lock::new(self.session.clone(), Spin { backoff }, name)
    }
}

/// The plain lock, whose calls the spin lock reuses.
const PLAIN: Plain = Plain { nests: true };

struct Spin {
    backoff: SpinBackoff,
}

impl Attempt for Spin {
    type Got = ();

    fn call(&self, ask: &Ask<'_>) -> Call {
        PLAIN.call(ask)
    }

    fn read(&self, reply: &Value) -> Result<Answer<()>> {
        PLAIN.read(reply)
    }

    fn wakes(&self, _key: &str, _owner: &str) -> Option<Wakes> {
        None
    }

    fn spin_backoff(&self) -> Option<SpinBackoff> {
        Some(self.backoff)
    }

    fn probe(&self, ask: &Ask<'_>) -> Vec<Cmd> {
        PLAIN.probe(ask)
    }

    fn found(&self, answers: &[Value], known: &Known) -> Result<Told<Found<()>>> {
        PLAIN.found(answers, known)
    }
}

impl Lease for Spin {
    fn renewal(&self) -> Option<&'static RenewalScript> {
        PLAIN.renewal()
    }

    fn release(&self, unlock: &Unlock<'_>) -> Call {
        let keys = [unlock.key.to_owned(), unlock_latch(unlock.key, unlock.request)];
        RELEASE
            .call(keys.into_iter().chain(unlock.spent.iter().cloned()))
            .arg(unlock.owner)
            .arg(unlock.latch_ms)
    }

    fn release_without_latch(&self) -> Option<&'static Script> {
        Some(&RELEASE_WITHOUT_LATCH)
    }

    fn rights(&self) -> &'static Rights {
        &rights::SPIN
    }
}

impl ForceRelease for Spin {
    fn force_release(&self, key: &str, _now_ms: u64, _publish: &str) -> Call {
        FORCE_RELEASE.call([key])
    }
}
