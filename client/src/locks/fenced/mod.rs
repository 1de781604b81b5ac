//! The fenced lock, Redisson's `RFencedLock`: a plain lock with a number that grows with each
//! grant.

use redis::{Cmd, Value};

use super::reentrant;
use crate::attempt::{
    Answer, Ask, Attempt, ForceRelease, Found, Lease, Unlock, found_in_hash, probe_hash, read_number,
    sleep_for,
};
use crate::client::Client;
use crate::error::{Error, Result};
use crate::guard::Token;
use crate::hold::{Known, Told};
use crate::lock::FencedLock;
use crate::renew::{HASHES, RenewalScript};
use crate::rights::{self, Rights};
use crate::script::{Call, Script, script};
use crate::wake::Wakes;
use crate::wire::{fencing_token, lock_channel};

script!(ACQUIRE, "acquire.lua");

impl Client {
    /// Returns a handle on a lock whose guards carry a [fencing token](crate::FencedGuard::token).
    ///
    /// A lease can end while its holder is paused. A resource that remembers the largest token it
    /// has seen, and refuses smaller ones, is safe from a holder that resumes too late. The counter
    /// is stored in the same Redis: it starts again if Redis loses its data.
    ///
    /// ```
    /// # async fn store(_token: u64) {}
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> lockstorm_client::Result<()> {
    /// # let server = lockstorm_sim::TestServer::start().await.expect("a free port");
    /// # let url = server.url();
    /// # let client = lockstorm_client::Client::connect(&url).await?;
    /// let guard = client.fenced_lock("stock").acquire().await?;
    /// store(guard.token()).await;
    /// guard.release().await?;
    /// # Ok(()) }
    /// ```
    pub fn fenced_lock(&self, name: &str) -> FencedLock {
        FencedLock::new(self.session.clone(), Fenced, name)
    }
}

struct Fenced;

impl Attempt for Fenced {
    type Got = Token;

    fn call(&self, ask: &Ask<'_>) -> Call {
        ACQUIRE.call([ask.key.to_owned(), fencing_token(ask.key)]).arg(ask.lease_ms).arg(ask.owner)
    }

    fn read(&self, reply: &Value) -> Result<Answer<Token>> {
        let Value::Array(pair) = reply else { return Err(Error::unexpected(reply)) };
        match pair.as_slice() {
            // The token decides: a remaining time of -1 also occurs for a key without a TTL.
            [Value::Int(_), Value::Int(token @ 1..)] => Ok(Answer::Got(Token(token.unsigned_abs()))),
            [Value::Int(left), Value::Int(_)] => Ok(Answer::Busy(sleep_for(*left))),
            _ => Err(Error::unexpected(reply)),
        }
    }

    fn wakes(&self, key: &str, _owner: &str) -> Option<Wakes> {
        Some(Wakes { channel: lock_channel(key), policy: reentrant::wakes, exclusive: true, in_turns: true })
    }

    fn probe(&self, ask: &Ask<'_>) -> Vec<Cmd> {
        let mut questions = probe_hash(ask);
        let mut token = redis::cmd("GET");
        token.arg(fencing_token(ask.key));
        questions.push(token);
        questions
    }

    fn found(&self, answers: &[Value], known: &Known) -> Result<Told<Found<Token>>> {
        let left = match found_in_hash(answers, known)? {
            Told::Obeyed(left) => left,
            Told::NotObeyed => return Ok(Told::NotObeyed),
            Told::Unclear => return Ok(Told::Unclear),
        };
        // The owner has the lock, so no later grant has changed the counter.
        let token = answers.last().map(read_number).transpose()?.flatten();
        let token = token.ok_or_else(|| Error::unexpected(&Value::Nil))?;
        Ok(Told::Obeyed(Found { got: Token(token), left }))
    }
}

impl Lease for Fenced {
    fn renewal(&self) -> Option<&'static RenewalScript> {
        Some(&HASHES)
    }

    fn release(&self, unlock: &Unlock<'_>) -> Call {
        reentrant::release(unlock)
    }

    fn release_without_latch(&self) -> Option<&'static Script> {
        Some(&reentrant::RELEASE_WITHOUT_LATCH)
    }

    fn rights(&self) -> &'static Rights {
        &rights::FENCED
    }

    fn counted(&self, key: &str) -> Option<String> {
        Some(lock_channel(key))
    }
}

impl ForceRelease for Fenced {
    fn force_release(&self, key: &str, _now_ms: u64, publish: &str) -> Call {
        reentrant::force_release(key, publish)
    }
}
