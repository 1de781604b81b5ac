//! The kinds of locks. Each is a folder: its Rust, its scripts, its constructor on [`Client`](crate::Client).

mod reentrant;
mod fenced;
mod fair;
pub(crate) mod redlock;
