//! Redis locks on trial: scenarios, faults, checkers, verdicts.
//!
//! ```text
//! file -> Scenario -> (seed) -> Plan -> Run { history, trace } -> Verdicts -> Report
//!         what was written     what will happen    what happened          was it right
//! ```
//!
//! In a test:
//!
//! ```
//! lockstorm::scenario("single/pause_beyond_lease.toml").seeds(0..2).check();
//! ```
//!
//! The districts in reading order; each imports only those listed before it:
//!
//! | module | contents |
//! | --- | --- |
//! | [`units`] | lengths of time, ranges and rates as files write them |
//! | [`judge`] | histories, verdicts, checkers and kinds of locks |
//! | [`report`] | verdicts as text, JSON and HTML, with the timeline of the run |
//! | [`mod@file`] | scenario files, faults and plans |
//! | [`run`] | runs of plans in the world or against real servers, and the API for tests |
//! | [`audit`] | the locks of servers in production, from the commands that MONITOR shows |
//!
//! The command line and the studies over many runs (boundaries, sensitivity, shrinking, causes,
//! campaigns) are in the package `lockstorm-cli`.

pub mod units;

pub mod judge;

pub mod report;

pub mod file;

pub mod run;

pub mod audit;

pub use run::experiment::{experiment, scenario};
