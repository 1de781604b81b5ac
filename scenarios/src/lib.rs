//! Redis locks on trial: scenarios, faults, checkers, verdicts.
//!
//! The modules in reading order; each imports only those listed before it:
//!
//! - [`history`]: what happened in one run, by true time;
//! - [`units`]: quantities as people write them;
//! - [`verdict`]: what a checker finds, and what was expected of it;
//! - [`checker`]: one file per question that a history is asked;

pub mod history;

pub mod units;

pub mod verdict;

pub mod checker;
