//! The handle of a lock, the same for every kind on a single server or replicated set.

use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use redis::Value;

use crate::acquire::{Patience, Request, acquire};
use crate::config::millis;
use crate::error::{Error, Result};
use crate::guard::Guard;
use crate::key::Key;
use crate::observer::LostReason;
use crate::owner::OwnerId;
use crate::protocol::{Protocol, remaining};
use crate::route::Router;
use crate::session::Session;

/// A lock in Redis, by name. Cheap to clone; holds nothing by itself.
#[derive(Clone)]
pub struct Lock {
    session: Arc<Session>,
    protocol: &'static dyn Protocol,
    key: Key,
    /// The application gave a name, and its name mapper left something of it.
    is_named: bool,
}

/// A lock without a name would be one that all who forget theirs share.
pub(crate) fn check_name(name: &str, key: &str) -> Result<()> {
    if name.is_empty() || key.is_empty() {
        return Err(Error::config("the name of the lock is empty"));
    }
    Ok(())
}

impl Lock {
    pub(crate) fn new(session: Arc<Session>, protocol: &'static dyn Protocol, name: &str) -> Self {
        let key = session.key(name);
        let is_named = check_name(name, &key).is_ok();
        Self { session, protocol, key, is_named }
    }

    fn router(&self) -> Result<&Router> {
        check_name(if self.is_named { &self.key } else { "" }, &self.key)?;
        Ok(&self.session.router)
    }

    /// Waits until the lock is granted, however long that takes.
    ///
    /// # Errors
    /// When no server answers within the client's [`call_timeout`](crate::Builder::call_timeout), or for all the attempts
    /// that its configuration allows, and when the server refuses what waiting needs: a user without the right to the
    /// lock's channel gets `NOPERM` from it.
    pub fn acquire(&self) -> Acquire {
        Acquire(self.wanted(Patience::Forever))
    }

    /// Takes the lock if it is free now.
    ///
    /// # Errors
    /// As [`Lock::acquire`].
    pub fn try_acquire(&self) -> TryAcquire {
        TryAcquire(self.wanted(Patience::Once))
    }

    /// Waits for the lock, for at most `wait`. `None` means that somebody else has it; a request that was under way when the
    /// time ran out is undone in the background.
    ///
    /// # Errors
    /// As [`Lock::acquire`], and when no server has answered by the end of `wait`.
    pub fn try_acquire_for(&self, wait: Duration) -> TryAcquire {
        TryAcquire(self.wanted(Patience::For(wait)))
    }

    fn wanted(&self, patience: Patience) -> Wanted {
        Wanted::new(Arc::new(self.clone()), patience)
    }

    /// Whether anybody holds the lock.
    ///
    /// # Errors
    /// When Redis cannot be asked.
    pub async fn is_locked(&self) -> Result<bool> {
        match self.router()?.ask(self.key.slot(), redis::cmd("EXISTS").arg(&*self.key)).await? {
            Value::Int(count) => Ok(count > 0),
            other => Err(Error::unexpected(&other)),
        }
    }

    /// How many levels `owner`, an owner of this client, holds; zero when it does not hold the lock.
    ///
    /// # Errors
    /// When Redis cannot be asked.
    pub async fn hold_count(&self, owner: OwnerId) -> Result<u64> {
        let mut command = redis::cmd("HGET");
        command.arg(&*self.key).arg(self.session.field(owner));
        match self.router()?.ask(self.key.slot(), &command).await? {
            Value::Nil => Ok(0),
            Value::BulkString(count) => std::str::from_utf8(&count)
                .ok()
                .and_then(|count| count.parse().ok())
                .ok_or_else(|| Error::unexpected(&Value::BulkString(count.clone()))),
            other => Err(Error::unexpected(&other)),
        }
    }

    /// The lease that is left by the server's clock; `None` when the lock is free, or held without a time to live.
    ///
    /// # Errors
    /// When Redis cannot be asked.
    pub async fn remaining(&self) -> Result<Option<Duration>> {
        match self.router()?.ask(self.key.slot(), redis::cmd("PTTL").arg(&*self.key)).await? {
            Value::Int(pttl) => Ok(remaining(pttl)),
            other => Err(Error::unexpected(&other)),
        }
    }

    /// Frees the lock, whoever holds it; true when anybody did. Holds of this client are lost at once, those of others
    /// learn of it at their next renewal.
    ///
    /// # Errors
    /// When Redis cannot be asked.
    pub async fn force_release(&self) -> Result<bool> {
        let router = self.router()?;
        self.session.watchdog.forget_lock(&self.key);
        self.session.ctx.ledger.lose_all(&self.key, LostReason::NotHeld);
        let call =
            self.protocol.force_release(&self.key, millis(self.session.env().wall().0), router.publish());
        match router.run_repeatable(&call).await? {
            Value::Int(freed) => Ok(freed == 1),
            other => Err(Error::unexpected(&other)),
        }
    }

    /// The fencing token of the last grant; `None` when there was none, or the lock has no tokens.
    ///
    /// # Errors
    /// When Redis cannot be asked.
    pub async fn last_token(&self) -> Result<Option<u64>> {
        let Some(key) = self.protocol.token_key(&self.key) else { return Ok(None) };
        match self.router()?.ask(self.key.slot(), redis::cmd("GET").arg(key)).await? {
            Value::Nil => Ok(None),
            Value::BulkString(token) => {
                Ok(std::str::from_utf8(&token).ok().and_then(|token| token.parse().ok()))
            }
            other => Err(Error::unexpected(&other)),
        }
    }

    /// The lock's key in Redis.
    pub fn key(&self) -> &str {
        &self.key
    }
}

impl std::fmt::Debug for Lock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lock").field("key", &self.key).finish_non_exhaustive()
    }
}

/// What an acquisition asks for.
pub(crate) struct Terms {
    pub(crate) owner: Option<OwnerId>,
    pub(crate) lease: Option<Duration>,
    pub(crate) patience: Patience,
}

/// A lock that guards can be got from.
pub(crate) trait Obtain: Send + Sync {
    fn obtain(self: Arc<Self>, terms: Terms) -> BoxFuture<'static, Result<Option<Guard>>>;
}

impl Obtain for Lock {
    fn obtain(self: Arc<Self>, terms: Terms) -> BoxFuture<'static, Result<Option<Guard>>> {
        if let Err(error) = self.router() {
            return Box::pin(std::future::ready(Err(error)));
        }
        let Self { session, protocol, key, .. } = self.as_ref().clone();
        let owner = session.field(terms.owner.unwrap_or_else(|| OwnerId::fresh(session.env())));
        let (lease, patience) = (terms.lease, terms.patience);
        Box::pin(acquire(Request { session, protocol, lock: key, owner, lease, patience }))
    }
}

/// An acquisition that is being set up.
pub(crate) struct Wanted {
    from: Arc<dyn Obtain>,
    terms: Terms,
}

impl Wanted {
    pub(crate) fn new(from: Arc<dyn Obtain>, patience: Patience) -> Self {
        Self { from, terms: Terms { owner: None, lease: None, patience } }
    }

    fn get(self) -> BoxFuture<'static, Result<Option<Guard>>> {
        self.from.obtain(self.terms)
    }
}

/// An acquisition that waits until it is granted. Await it, after setting what differs from the defaults.
#[must_use = "nothing is asked for until this is awaited"]
pub struct Acquire(pub(crate) Wanted);

/// An acquisition that may come to nothing. Await it, after setting what differs from the defaults.
#[must_use = "nothing is asked for until this is awaited"]
pub struct TryAcquire(pub(crate) Wanted);

macro_rules! options {
    ($name:ident) => {
        impl $name {
            /// Holds the lock for `lease` and does not renew it. Without this the watchdog renews it until release.
            pub fn lease(mut self, lease: Duration) -> Self {
                self.0.terms.lease = Some(lease);
                self
            }

            /// Acquires for this owner; acquisitions of one owner nest. Without this the owner is a new one.
            pub fn owner(mut self, owner: OwnerId) -> Self {
                self.0.terms.owner = Some(owner);
                self
            }
        }
    };
}
options!(Acquire);
options!(TryAcquire);

impl IntoFuture for Acquire {
    type Output = Result<Guard>;
    type IntoFuture = BoxFuture<'static, Result<Guard>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            // Without a limit there is no coming to nothing.
            self.0.get().await?.ok_or_else(Error::shutdown)
        })
    }
}

impl IntoFuture for TryAcquire {
    type Output = Result<Option<Guard>>;
    type IntoFuture = BoxFuture<'static, Result<Option<Guard>>>;

    fn into_future(self) -> Self::IntoFuture {
        self.0.get()
    }
}
