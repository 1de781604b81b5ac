//! What outlives a node: snapshots and the append-only file, and what of them a crash leaves.
//!
//! The disk is a value that is handed from one run of a node to the next. Writing to it takes no
//! time; becoming durable does, as `appendfsync` says.

mod aof;
mod disk;
pub mod rdb;

pub use aof::{
    AofWriter, Commands, LogError, LogState, Manifest, ManifestError, Part, Parts, Retry, Unread, base,
};
pub use disk::{Disk, LogFile, SaveError};
