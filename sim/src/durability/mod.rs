//! The durable state of a node: snapshots, the append-only file, and the part of them that a crash
//! leaves.
//!
//! The disk is a value that one run of a node hands to the next. Writing to it takes no time;
//! `appendfsync` decides when written bytes become durable.

mod aof;
mod disk;
pub mod rdb;

pub use aof::{
    AofWriter, Commands, LogError, LogState, Manifest, ManifestError, Part, Parts, Retry, Unread, base,
    keys_as_commands,
};
pub use disk::{Disk, LogFile, SaveError};
