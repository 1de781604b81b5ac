//! The string lock: its key is a string with its owner, which one command sets. It does not nest,
//! and Redisson has no such lock.

use std::time::Duration;

use redis::{Cmd, Value};

use crate::attempt::{Answer, Ask, Attempt, ForceRelease, Found, Lease, Sleep, Unlock, remaining};
use crate::client::Client;
use crate::config::millis;
use crate::error::{Error, Result};
use crate::hold::{Known, Told};
use crate::lock::Lock;
use crate::renew::{Name, RenewalScript, read_flags};
use crate::rights::{self, Rights};
use crate::script::{Call, Script, script};
use crate::spin::SpinBackoff;
use crate::wake::Wakes;

// A node of a Redlock is released by the same comparison, so servers keep one script for both.
script!(RELEASE, "../redlock/release.lua");
script!(RENEW, "renew.lua");
script!(LEFT, "left.lua");

static STRINGS: RenewalScript = RenewalScript { name: "strings", call: renew, read: read_flags };

impl Client {
    /// Returns a handle on a lock that costs the server least: it is acquired with one `SET` and
    /// released with one comparison. It does not nest, and no message is published. A waiter asks
    /// again after 1 ms, 2 ms, 4 ms and so on up to 128 ms.
    ///
    /// Use it if no Redisson client shares the lock, and if it is rarely waited for: a [plain
    /// lock](Client::lock) wakes its waiters and has them take turns. Leases, the watchdog, losses,
    /// lost replies and confirmations by replicas are as for every lock, with these differences:
    ///
    /// * An owner that asks again while this client knows its hold gets
    ///   [`ErrorKind::AlreadyHeld`](crate::ErrorKind::AlreadyHeld).
    /// * The server does not remember a release. After a lost reply the release is sent again only
    ///   on a new connection before which the old one was ended. Where the user may not do that
    ///   (`+client|kill`), the lock ends with its lease.
    ///
    /// # On the server
    ///
    /// The key is a string, the owner's field (`<client id>:<owner id>`), with the lease as its
    /// TTL:
    ///
    /// | call | request |
    /// | --- | --- |
    /// | acquisition | `SET <key> <owner> NX PX <lease>` |
    /// | release | a script that deletes the key if it has this owner; from Valkey 9.0 on `DELIFEQ <key> <owner>` |
    /// | renewal | a script that sets the TTL of all keys that still have their owner, unless it is longer |
    ///
    /// Many libraries write a lock in this form. Those that acquire with `SET` and `NX` and release
    /// with a comparison exclude this lock and are excluded by it, and so is a
    /// [`Redlock`](crate::Redlock) on one server. All other kinds of this client are excluded as
    /// well, but their calls fail with `WRONGTYPE` while this lock is held.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> lockstorm_client::Result<()> {
    /// # let server = lockstorm_sim::TestServer::start().await.expect("a free port");
    /// # let url = server.url();
    /// # let client = lockstorm_client::Client::connect(&url).await?;
    /// let guard = client.string_lock("nightly report").acquire().await?;
    /// // The watchdog renews the lock every 10 s until it is released.
    /// guard.release().await?;
    /// # Ok(()) }
    /// ```
    pub fn string_lock(&self, name: &str) -> Lock {
        self.string_lock_with(name, SpinBackoff::default())
    }

    /// As [`Client::string_lock`], with a custom backoff of its waiters.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> lockstorm_client::Result<()> {
    /// # let server = lockstorm_sim::TestServer::start().await.expect("a free port");
    /// # let url = server.url();
    /// # let client = lockstorm_client::Client::connect(&url).await?;
    /// use lockstorm_client::SpinBackoff;
    /// let lock = client.string_lock_with("counter", SpinBackoff::constant(Duration::from_millis(64)));
    /// lock.acquire().await?.release().await?;
    /// # Ok(()) }
    /// ```
    pub fn string_lock_with(&self, name: &str, backoff: SpinBackoff) -> Lock {
        Lock::new(self.session.clone(), StringLock { backoff }, name)
    }
}

struct StringLock {
    backoff: SpinBackoff,
}

impl Attempt for StringLock {
    type Got = ();

    fn call(&self, ask: &Ask<'_>) -> Call {
        Call::command("SET", [ask.key]).arg(ask.owner).arg("NX").arg("PX").arg(ask.lease_ms)
    }

    fn read(&self, reply: &Value) -> Result<Answer<()>> {
        match reply {
            Value::Okay => Ok(Answer::Got(())),
            Value::Nil => Ok(Answer::Busy(Sleep::Unknown)),
            other => Err(Error::unexpected(other)),
        }
    }

    fn wakes(&self, _key: &str, _owner: &str) -> Option<Wakes> {
        None
    }

    fn spin_backoff(&self) -> Option<SpinBackoff> {
        Some(self.backoff)
    }

    fn refuses_holder(&self) -> bool {
        true
    }

    fn probe(&self, ask: &Ask<'_>) -> Vec<Cmd> {
        vec![ask_left(ask.key, ask.owner)]
    }

    fn found(&self, answers: &[Value], known: &Known) -> Result<Told<Found<()>>> {
        let left = read_left(answers.first().unwrap_or(&Value::Nil))?;
        let told = known.told(&[u64::from(left.is_some())], left.unwrap_or_default());
        let told = told.ok_or_else(|| Error::unexpected(&Value::Nil))?;
        Ok(told.map(|left| Found { got: (), left }))
    }
}

impl Lease for StringLock {
    fn renewal(&self) -> Option<&'static RenewalScript> {
        Some(&STRINGS)
    }

    fn release(&self, unlock: &Unlock<'_>) -> Call {
        RELEASE.call_or_command("DELIFEQ", [unlock.key]).arg(unlock.owner)
    }

    fn is_remembered(&self) -> bool {
        false
    }

    fn release_without_latch(&self) -> Option<&'static Script> {
        None
    }

    fn rights(&self) -> &'static Rights {
        &rights::STRING
    }
}

impl ForceRelease for StringLock {
    fn force_release(&self, key: &str, _now_ms: u64, _publish: &str) -> Call {
        Call::command("DEL", [key])
    }

    fn ask_levels(&self, key: &str, owner: &str) -> Cmd {
        ask_left(key, owner)
    }

    fn read_levels(&self, answer: &Value) -> Result<u64> {
        Ok(u64::from(read_left(answer)?.is_some()))
    }
}

fn renew(lease: Duration, names: &[Name]) -> Call {
    let call = RENEW.call(names.iter().map(|name| &*name.key)).arg(millis(lease));
    names.iter().fold(call, |call, name| call.arg(&name.owner))
}

fn ask_left(key: &str, owner: &str) -> Cmd {
    LEFT.call([key]).arg(owner).eval()
}

/// Reads the answer to [`ask_left`]: the rest of the owner's lease, zero if the key has no TTL.
/// `None` if the owner does not hold the lock.
fn read_left(answer: &Value) -> Result<Option<Duration>> {
    match answer {
        Value::Int(-2) => Ok(None),
        Value::Int(left) => Ok(Some(remaining(*left).unwrap_or_default())),
        other => Err(Error::unexpected(other)),
    }
}
