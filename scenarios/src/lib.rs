//! Redis locks on trial: scenarios, faults, checkers, verdicts.
//!
//! The modules in reading order; each imports only those listed before it:
//!
//! - [`history`]: what happened in one run, by true time.

pub mod history;
