//! The fenced lock, Redisson's `RFencedLock`: the plain lock with a number that grows with each grant.

use redis::Value;

use super::reentrant;
use crate::client::Client;
use crate::error::{Error, Result};
use crate::lock::Lock;
use crate::protocol::{Answer, Ask, Protocol, Unlock, remaining};
use crate::script::{Call, script};
use crate::wire::{fencing_token, lock_channel};

script!(ACQUIRE, "acquire.lua");

impl Client {
    /// A lock whose guards carry a [fencing token](crate::Guard::fencing_token).
    ///
    /// A lease can end while its holder is standing still. A resource that remembers the largest token it has seen,
    /// and refuses smaller ones, is safe from a holder that goes on too late. The counter lives in the same Redis: it
    /// starts again if that loses its data.
    ///
    /// ```
    /// # async fn store(_token: u64) {}
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> lockstorm_client::Result<()> {
    /// # let server = lockstorm_sim::TestServer::start().await.expect("a free port");
    /// # let url = server.url();
    /// # let client = lockstorm_client::Client::connect(&url).await?;
    /// let guard = client.fenced_lock("stock").acquire().await?;
    /// if let Some(token) = guard.fencing_token() {
    ///     store(token).await;
    /// }
    /// guard.release().await?;
    /// # Ok(()) }
    /// ```
    pub fn fenced_lock(&self, name: &str) -> Lock {
        Lock::new(self.session.clone(), &Fenced, name)
    }
}

struct Fenced;

impl Protocol for Fenced {
    fn acquire(&self, ask: &Ask<'_>) -> Call {
        ACQUIRE.call([ask.lock.to_owned(), fencing_token(ask.lock)]).arg(ask.lease_ms).arg(ask.owner)
    }

    fn answer(&self, reply: &Value) -> Result<Answer> {
        let Value::Array(pair) = reply else { return Err(Error::unexpected(reply)) };
        match pair.as_slice() {
            // The token decides: a remaining time of -1 is also that of a key without a time to live.
            [Value::Int(_), Value::Int(token @ 1..)] => {
                Ok(Answer::Granted { token: Some(token.unsigned_abs()) })
            }
            [Value::Int(left), Value::Int(_)] => Ok(Answer::Busy(remaining(*left))),
            _ => Err(Error::unexpected(reply)),
        }
    }

    fn release(&self, unlock: &Unlock<'_>) -> Call {
        reentrant::release(unlock)
    }

    fn force_release(&self, lock: &str, _now_ms: u64, publish: &str) -> Call {
        reentrant::force_release(lock, publish)
    }

    fn channel(&self, lock: &str, _owner: &str) -> String {
        lock_channel(lock)
    }

    fn token_key(&self, lock: &str) -> Option<String> {
        Some(fencing_token(lock))
    }
}
