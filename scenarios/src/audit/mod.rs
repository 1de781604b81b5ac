//! Audits the locks of servers in production, from the commands that MONITOR or an append-only
//! file shows, or from keyspace events and reads.
//!
//! ```text
//! capture -> lines -> calls -> (shadow copy) -> changes of locks -> findings, figures -> summary
//!                                                     '-> history -> checkers
//! ```
//!
//! MONITOR shows each command as it was sent, and no replies. So a shadow copy replays the commands
//! on the keys of locks, and has the effects. The commands of a script are shown one by one, which
//! proves more: a script that compares a token and then deletes the key has found the token.
//!
//! Locks that several clients may hold need no copy: their libraries change them by scripts only.
//!
//! A finding needs such a proof, or a holder that comes back: a late renewal or release shows that
//! an owner believed in a hold that had ended. A mere expiry is no finding.
//!
//! | module | contents |
//! | --- | --- |
//! | [`capture`] | lines of MONITOR, and the problems of bad ones |
//! | [`aof`] | the reader of append-only files |
//! | `command` | commands on locks, and calls: a command with those of its script |
//! | `acts` | the commands of a call by their keys |
//! | `names` | commands, owners and times in words, with values hashed |
//! | `owners` | the names of owners as Redisson forms them |
//! | `tally` | durations and their percentiles |
//! | [`patterns`] | the kinds of locks that a user names by their keys |
//! | `scripts` | the purpose and the library of a script |
//! | `shadow` | the copy of the locks' keys |
//! | `locks` | one lock: holders, waiters, figures |
//! | [`findings`] | kinds of findings, and their evidence |
//! | `follow` | one call on one lock |
//! | `read_write` | read-write locks |
//! | `semaphore` | semaphores, also those whose permits expire |
//! | `latch` | count-down latches |
//! | `queue` | the queues of fair locks |
//! | `objects` | the locks that several clients may hold, and the queues of a node |
//! | `node` | one node: its locks, and the limits of how many are kept |
//! | `past` | the history of the locks, for checkers |
//! | `engine` | the audit: from lines to findings |
//! | `effects` | the commands of an append-only file, on its locks |
//! | `wire` | replies and pushed messages of a server |
//! | `watched` | the locks of a node by keyspace events and reads |
//! | `group` | the comings and goings of a group's nodes |
//! | `summary` | the outcome as text and as JSON |
//! | `page` | the outcome as a page |
//! | `top` | the present state of the locks: a live table, events, totals |
//! | `draft` | a scenario file in parts |
//! | `incident` | a finding as a scenario that shows it again |
//! | `server` | the addresses of live servers, and the requests that begin MONITOR |
//! | `notified` | a connection for keyspace events and reads, without MONITOR |

pub mod capture;

pub mod aof;

mod command;

mod acts;

mod names;
mod owners;

mod tally;

pub mod patterns;

mod scripts;

mod shadow;

mod locks;

pub mod findings;

mod follow;

mod read_write;

mod semaphore;

mod latch;

mod queue;

mod objects;

mod node;

mod past;

mod engine;

mod effects;

mod wire;

mod watched;

mod group;

mod summary;

mod page;

mod top;

mod draft;

mod incident;

mod server;

mod notified;

pub use capture::Times;
pub use engine::{Audit, Settings, UnknownScript};
pub use findings::{Change, Unseen};
pub use group::is_from;
pub use incident::{Incident, Missing};
pub use lockstorm_client::{Deployment, Master};
pub use notified::{Gentle, Stop, hello};
pub use server::{Certificates, open, requests};
pub use summary::{LockRow, NodeRow, Quantiles, Summary};
pub use top::{Chosen, Seen, TopRow, Totals, table};
