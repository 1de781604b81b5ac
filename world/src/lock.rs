//! Mutexes of a world, which only one thread uses.

use std::sync::{Mutex, MutexGuard};

/// Locks a mutex that only one thread uses. A poisoned lock means that a panic already ends the
/// run.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
