//! What an observer keeps for each hold while it lasts.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A value for each hold, by its owner and number: numbers distinguish the holds of one client
/// only.
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
