//! Redis Cluster: the slots of each node, the bus that connects nodes, failures, elections, and
//! moving slots.
//!
//! A [`Cluster`] is the state of one node and the rules that change it; it owns no socket, clock or
//! file. The server in cluster mode (`server/cluster.rs`) passes in the time and the input of
//! connections, and carries out the effects in its [`Outbox`]. The messages are those of Redis,
//! byte for byte, so that a cluster can mix nodes of both. Times are milliseconds of the wall
//! clock, because a real node compares by it, while its timer runs by the monotonic clock.

mod administer;
mod claims;
mod election;
mod extension;
mod fail;
mod field;
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
mod slot_job;
mod slot_set;
mod state;
mod tick;

pub use administer::SetSlot;
pub use extension::Extensions;
pub use file::Corrupted;
pub use id::NodeId;
pub use manual::Force;
pub use message::{Body, Gossip, Header, Kind, Marks, Message, Taken, take};
pub use node::{Address, Flags, Key};
pub use outbox::{News, Outbox, Want};
pub use redirect::{Elsewhere, Request};
pub use serving::Serving;
pub use slot::{SLOTS, key_slot, pattern_slot};
pub use slot_set::SlotSet;
pub use state::{Around, Cluster};
