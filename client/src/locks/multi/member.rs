//! One of the locks of a multi lock, and its guard, independent of its kind.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::acquire_options::AcquireOptions;
use crate::error::{Error, Result};
use crate::guard::{Got, Guard};
use crate::lock::sealed::{Acquirable, Single};
use crate::observer::LossCause;
use crate::session::Session;

/// A lock of any kind as a member.
pub(super) trait Member: Send + Sync {
    fn key(&self) -> &str;

    /// Returns the sessions of the clients through which it is requested.
    fn sessions(&self) -> &[Arc<Session>];

    fn acquire(&self, options: AcquireOptions) -> BoxFuture<'static, Result<Option<Box<dyn Part>>>>;
}

impl<O: Single> Member for O {
    fn key(&self) -> &str {
        Single::key(self)
    }

    fn sessions(&self) -> &[Arc<Session>] {
        Single::sessions(self).0
    }

    fn acquire(&self, options: AcquireOptions) -> BoxFuture<'static, Result<Option<Box<dyn Part>>>> {
        let acquired = Acquirable::acquire(self.clone(), options);
        Box::pin(async move { Ok(acquired.await?.map(|guard| Box::new(guard) as Box<dyn Part>)) })
    }
}

/// Returns the servers of a member with the database numbers, as its clients know them.
pub(super) fn places(member: &dyn Member) -> Vec<(String, i64)> {
    let configs = member.sessions().iter().map(|session| &session.config);
    configs.flat_map(|config| config.deployment().map(|place| (place, config.database()))).collect()
}

/// Returns true if both members are the same key on the same server, as their clients know it.
pub(super) fn is_same_lock(one: &dyn Member, other: &dyn Member) -> bool {
    let (here, there) = (places(one), places(other));
    one.key() == other.key() && here.iter().any(|place| there.contains(place))
}

/// The guard of a member, independent of its kind.
pub(super) trait Part: Send + Sync {
    fn key(&self) -> &str;
    fn owner(&self) -> &str;
    fn token(&self) -> Option<u64>;
    fn validity(&self) -> Duration;
    fn is_valid(&self) -> bool;
    fn lost(&self) -> BoxFuture<'static, LossCause>;
    fn not_held(&self) -> Error;
    fn extend(&self, lease: Duration) -> BoxFuture<'_, Result<()>>;
    fn release(self: Box<Self>) -> BoxFuture<'static, Result<()>>;
}

impl<G: Got> Part for Guard<G> {
    fn key(&self) -> &str {
        Guard::key(self)
    }

    fn owner(&self) -> &str {
        Guard::owner(self)
    }

    fn token(&self) -> Option<u64> {
        self.got().token()
    }

    fn validity(&self) -> Duration {
        Guard::validity(self)
    }

    fn is_valid(&self) -> bool {
        Guard::is_valid(self)
    }

    fn lost(&self) -> BoxFuture<'static, LossCause> {
        Guard::lost(self).boxed()
    }

    fn not_held(&self) -> Error {
        Guard::not_held(self)
    }

    fn extend(&self, lease: Duration) -> BoxFuture<'_, Result<()>> {
        Guard::extend(self, lease).boxed()
    }

    fn release(self: Box<Self>) -> BoxFuture<'static, Result<()>> {
        Guard::release(*self).boxed()
    }
}
