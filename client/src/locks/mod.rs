//! The kinds of locks. Each is a folder: its Rust, its scripts, its constructor on [`Client`](crate::Client).

mod reentrant;
mod fenced;
mod fair;
mod non_reentrant;
mod spin;
pub(crate) mod semaphore;
pub(crate) mod permit_semaphore;
pub(crate) mod redlock;
pub(crate) mod multi;
