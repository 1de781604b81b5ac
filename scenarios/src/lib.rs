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
//! The modules in reading order; each imports only those listed before it:
//!
//! | module | what is there |
//! | --- | --- |
//! | [`history`] | what happened in one run, the only input of a checker |
//! | [`units`] | lengths of time, ranges and rates as files write them |
//! | [`verdict`] | *holds*, *violated* or *undecided*, measures, counterexamples and expectations |
//! | [`checker`] | one file per question about a history |
//! | [`report`] | verdicts as text, JSON and HTML, with the timeline of the run |
//! | [`name`] | a name in a file, with its position |
//! | [`selector`] | the hosts that a fault or a link is about |
//! | [`slots`] | slots of a cluster as files write them |
//! | `one_of` | an enum of a file that is written as one of several tables |
//! | `digest` | bytes and their digests as text |
//! | [`fault`] | one file per fault |
//! | [`recorder`] | writes the history of a run in true time |
//! | [`bridge`] | the client's seam, implemented for a host of the world |
//! | [`code`] | a user's own client on a host of the world |
//! | [`object`] | one adapter per kind of lock: its keys, its changes, its promises |
//! | [`mod@scenario`] | what is written: the model of a file, its parsing and validation |
//! | [`peer`] | a lock library of any language on trial: its process, and what passes between the two |
//! | [`plan`] | what will happen: a scenario with every value drawn from the seed |
//! | [`subject`] | the systems under test: the production client and models of other algorithms |
//! | [`run`] | executes a plan, in the world or against real servers |
//! | `worklist` | items worked through on several threads |
//! | [`runner`] | variants times seeds, on all processors, judged against what is expected |
//! | [`tally`] | many runs counted: shares of violations under each condition |
//! | [`table`] | every run as a row, as CSV or Parquet |
//! | [`sensitivity`] | which drawn values separate violated runs from held ones |
//! | [`plot`] | a sweep as a picture |
//! | [`boundary`] | where along an axis a verdict changes |
//! | [`library`] | the stock scenarios |
//! | [`campaign`] | many seeds in one folder, for many processes and machines |
//! | [`mod@experiment`] | scenarios as tests |
//! | [`shrink`] | the smallest scenario that still has a violation |
//! | [`cause`] | why a run was violated: without which faults it would not have been |
//! | [`cli`] | one file per subcommand |

pub mod history;

pub mod units;

pub mod verdict;

pub mod checker;

pub mod report;

pub mod name;

pub mod selector;

pub mod slots;

mod one_of;

mod digest;

pub mod fault;

pub mod recorder;

pub mod bridge;

pub mod code;

pub mod object;

pub mod scenario;

pub mod peer;

pub mod plan;

pub mod subject;

pub mod run;

mod worklist;

pub mod runner;

pub mod tally;

pub mod table;

pub mod sensitivity;

pub mod plot;

pub mod boundary;

pub mod library;

pub mod campaign;

pub mod experiment;

pub mod shrink;

pub mod cause;

pub mod cli;

pub use experiment::{experiment, scenario};
