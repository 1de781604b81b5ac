//! Values that an observer keeps for the time of each hold.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A value for each hold. The key includes the owner, because numbers are unique only among the
/// holds of one client.
#[derive(Debug)]
pub(super) struct ByHold<T>(Mutex<BTreeMap<(String, u64), T>>);

impl<T> Default for ByHold<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> ByHold<T> {
    fn all(&self) -> MutexGuard<'_, BTreeMap<(String, u64), T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn insert(&self, owner: &str, hold: u64, value: T) {
        self.all().insert((owner.to_owned(), hold), value);
    }

    pub(super) fn remove(&self, owner: &str, hold: u64) -> Option<T> {
        self.all().remove(&(owner.to_owned(), hold))
    }

    #[cfg(feature = "tracing")]
    pub(super) fn get(&self, owner: &str, hold: u64) -> Option<T>
    where
        T: Clone,
    {
        self.all().get(&(owner.to_owned(), hold)).cloned()
    }
}
