//! Redis locks on trial: scenarios, faults, checkers, verdicts.
//!
//! ```text
//! file -> Scenario -> (seed) -> Plan -> Run { history, trace } -> Verdicts -> Report
//!         what was written     what will happen    what happened          was it right
//! ```
//!
//! In a test of one's own:
//!
//! ```
//! lockstorm::scenario("single/pause_beyond_lease.toml").seeds(0..2).check();
//! ```
//!
//! The modules in reading order; each imports only those listed before it.

pub mod history;

pub mod units;

pub mod verdict;

pub mod checker;

pub mod report;

pub mod name;

pub mod selector;

mod one_of;

pub mod fault;

pub mod recorder;

pub mod bridge;

pub mod code;

pub mod object;

pub mod scenario;

pub mod plan;

pub mod subject;

pub mod run;

pub mod trial;

pub mod library;

pub mod experiment;

pub mod shrink;

pub mod cli;

pub use experiment::{experiment, scenario};
