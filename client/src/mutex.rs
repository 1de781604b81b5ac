//! Locking of standard library mutexes, ignoring poison.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex whose holders never panic in the middle of a change.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
