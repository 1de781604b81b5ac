//! Wakes waiters: one connection to each node listens for the releases of all locks that have
//! waiters.
//!
//! A channel is subscribed to while it has waiters, once for all of them. The kind of object
//! decides the number of waiters that a message wakes. A waiter that is woken but does not get to
//! look passes the message on. A message that comes while no waiter sleeps is kept. After each
//! subscription, also after a reconnect, all waiters of the channel look, because a message may
//! have been missed. If only one of several clients can get what a message announces, they take
//! turns (`crowd.rs`).

mod channel;
mod crowd;
mod hub;
mod subscription;

pub(crate) use channel::{Wake, Wakes};
pub(crate) use crowd::{HeldBack, RoundTrip};
pub(crate) use hub::Hub;
pub(crate) use subscription::Subscription;
