//! The trait of all steps.

use super::{Lock, limits::Wrong};

/// The properties of a step that are known before it runs.
pub trait StepKind {
    /// Describes the step in words, for a printed plan.
    fn words(&self) -> String;
    /// Draws a value from each of its ranges. Each call of the argument returns a fraction from 0
    /// to 1.
    fn draw(&mut self, _fraction: &mut dyn FnMut() -> f64) {}
    /// Checks that the step can be done with this lock.
    ///
    /// # Errors
    /// The key that is mistaken.
    fn check(&self, _lock: &Lock) -> Result<(), Wrong> {
        Ok(())
    }
    /// Returns true if the step asks for the lock.
    fn is_acquisition(&self) -> bool {
        false
    }
    /// Returns true if the step must name its lock in a scenario with several.
    fn must_say_lock(&self) -> bool {
        self.is_acquisition()
    }
    /// Returns true if the step is about a lock at all.
    fn has_lock(&self) -> bool {
        true
    }
    /// Returns the ability of a lock library that the step requires.
    fn asks(&self) -> Asks {
        // Latches and rate limiters, which must be named but are not acquired, have a kind of their
        // own.
        if self.must_say_lock() { Asks::More } else { Asks::Nothing }
    }
}

/// The ability of a lock library that a step or a workload requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asks {
    /// To release the locks that it granted, and nothing else.
    Nothing,
    /// To grant a lock to one owner alone.
    Lock {
        /// The acquisition names a lease of its own.
        lease: bool,
        /// The acquisition asks for the watchdog, which renews the lock's own lease.
        watchdog: bool,
    },
    /// To set a new lease on a lock that the owner holds.
    Extension,
    /// An ability beyond these.
    More,
}
