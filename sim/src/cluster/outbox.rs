//! The effects that a node of a cluster requests from the rest of the server.

use bytes::Bytes;

use super::slot_set::SlotSet;
use crate::event::{Action, ConnId};

/// An effect on the rest of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Want {
    /// Replicate this master.
    Follow {
        /// The IP address or the host name of the master.
        host: String,
        /// Its port for clients.
        port: u16,
    },
    /// Become a master.
    Lead,
    /// Delete all keys of this slot, which now belongs to another node.
    DropKeys(u16),
    /// Delete all data.
    DropAll,
    /// End the subscriptions to shard channels of this slot, which now belongs to another shard.
    EndShardChannels(u16),
    /// Deliver a message to the subscribers of this node.
    Publish {
        /// The channel to which another node published.
        channel: Bytes,
        /// The payload for the subscribers.
        message: Bytes,
        /// True for a message of a shard channel.
        sharded: bool,
    },
    /// Hold back client writes for this number of milliseconds.
    Pause(u64),
    /// Let client writes continue.
    Unpause,
    /// Send all keys of these slots as commands, over the link of a migration.
    CopySlots {
        /// The connection to the target of the migration.
        conn: ConnId,
        /// The slots that the migration moves.
        slots: SlotSet,
    },
    /// Send bytes to a client: the source of a migration.
    Tell {
        /// The connection of the source.
        conn: ConnId,
        /// A message of CLUSTER SYNCSLOTS.
        bytes: Bytes,
    },
    /// Close the connection of the source of a migration.
    HangUp(ConnId),
    /// Propagate a message of a migration to replicas and the append-only file.
    Propagate(Vec<Bytes>),
}

/// The effects of a step. The node's state is on the disk before any of them is sent.
#[derive(Debug, Default)]
pub struct Outbox {
    /// True if `nodes.conf` must be written.
    pub unsaved: bool,
    /// Effects on the rest of the server, in order.
    pub wants: Vec<Want>,
    /// Bytes to send, addresses to dial and connections to close, in order.
    pub actions: Vec<Action>,
    /// Lines for the log.
    pub log: Vec<String>,
    /// Events for observers, in order.
    pub news: Vec<News>,
}

/// A change in the view of one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct News {
    /// The event: `pfail`, `fail`, `recovered`, `election`, `vote`, `elected`, `takeover`, `epoch`,
    /// `slots`, `migrating`, `importing`, `stable`, `exporting`, `paused`, `exported`, `imported`,
    /// `follows` or `state`.
    pub event: &'static str,
    /// The node, slots or epoch that the event is about. Nodes are named by their addresses.
    pub about: String,
}
