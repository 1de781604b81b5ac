//! The kinds of locks, and related objects: semaphores, latches, rate limiters. Each is a folder
//! with its Rust, its scripts, and its constructor on [`Client`](crate::Client).

mod reentrant;
mod fenced;
mod fair;
mod non_reentrant;
mod spin;
mod string;
pub(crate) mod read_write;
pub(crate) mod semaphore;
pub(crate) mod permit_semaphore;
pub(crate) mod latch;
pub(crate) mod rate_limiter;
pub(crate) mod redlock;
pub(crate) mod multi;
mod faster_multi;
