//! Mutexes of the standard library, as this crate takes them.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex whose holders never panic half-way through a change.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
