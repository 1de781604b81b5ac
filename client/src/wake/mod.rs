//! Waking waiters: one connection to a node listens for the unlocks of all its locks that have
//! waiters.
//!
//! A channel is subscribed while it has waiters, once however many they are. What a message means,
//! the kind of object says: how many of the waiters it wakes. One that does not get to look passes
//! the message on. A message that comes while no waiter sleeps is kept. Whenever a channel is
//! subscribed, also again after a lost connection, all its waiters look, because a message may have
//! been missed. Clients of which one can get what a message announces take turns (`crowd.rs`).

mod channel;
mod crowd;
mod hub;
mod subscription;

pub(crate) use channel::{Wake, Wakes};
pub(crate) use crowd::RoundTrip;
pub(crate) use hub::Hub;
pub(crate) use subscription::Subscription;
