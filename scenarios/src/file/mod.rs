//! Reads scenario files and draws plans from them.
//!
//! | module | contents |
//! | --- | --- |
//! | [`name`] | a name in a file, with its position |
//! | [`selector`] | the hosts that a fault or a link is about |
//! | [`slots`] | slots of a cluster as files write them |
//! | `one_of` | an enum that a file writes as one of several tables |
//! | [`fault`] | one file per fault |
//! | [`code`] | code that a client runs in place of steps |
//! | [`peer`] | a lock library of any language on trial: its command and its properties |
//! | [`server`] | real servers of this machine, and the names by which nodes ask for them |
//! | [`mod@scenario`] | the model of a file, its parsing and validation |
//! | [`plan`] | a scenario with every value drawn from the seed |
//! | [`library`] | the stock scenarios |

pub mod name;

pub mod selector;

pub mod slots;

mod one_of;

pub mod fault;

pub mod code;

pub mod peer;

pub mod server;

pub mod scenario;

pub mod plan;

pub mod library;
