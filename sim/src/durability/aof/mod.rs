//! The append-only file as `redis-server` 7.0 keeps it in a folder: a manifest, a base and the
//! commands after it, in separate files.

mod base;
mod manifest;
mod parts;
mod read;
mod writer;

pub use base::{base, keys_as_commands};
pub use manifest::{Manifest, ManifestError, Part};
pub use parts::{LogError, Parts};
pub use read::{Commands, Unread};
pub use writer::{AofWriter, LogState, Retry};
