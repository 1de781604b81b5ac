//! Redis Cluster: which node has which slots, the bus on which nodes tell each other, failures,
//! elections, and moving slots.
//!
//! A [`Cluster`] is what one node knows and what happens to it; it owns no socket, clock or file.
//! The server in cluster mode (`server/cluster.rs`) gives it the time and what its connections
//! bring, and carries out what is in its [`Outbox`]. The messages are those of Redis, byte for
//! byte, so that a cluster can have nodes of both. Times are milliseconds of the wall clock, by
//! which a real node compares, while its timer runs by the monotonic clock.

mod administer;
mod claims;
mod election;
mod fail;
mod file;
mod id;
mod links;
mod manual;
mod message;
mod node;
mod outbox;
mod receive;
mod redirect;
mod send;
mod serving;
mod show;
mod slot;
mod slot_set;
mod state;
mod tick;

pub use administer::SetSlot;
pub use file::Corrupted;
pub use id::NodeId;
pub use manual::Force;
pub use message::{Body, Gossip, Header, Kind, Marks, Message, Taken, take};
pub use node::{Address, Flags, Key};
pub use outbox::{News, Outbox, Want};
pub use redirect::{Elsewhere, Request};
pub use serving::Serving;
pub use slot::{SLOTS, key_slot};
pub use slot_set::SlotSet;
pub use state::{Around, Cluster};
