//! What outlives a node: snapshots and the append-only file, and what of them a crash leaves.
//!
//! The disk is a value that is handed from one run of a node to the next. Writing to it takes no time; becoming durable
//! does, as `appendfsync` says.

mod append;
mod disk;
mod log;
pub mod rdb;

pub use append::{Commands, LogError, Manifest, ManifestError, Part, Parts, Unread, base};
pub use disk::{Disk, DiskFull, LogFile, SaveError};
pub use log::{AppendLog, LogState, Retry};
