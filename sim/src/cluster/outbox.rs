//! What a node of a cluster wants of the rest of the server.

use bytes::Bytes;

use crate::event::Action;

/// Something the rest of the server is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Want {
    /// Replicate this master.
    Follow {
        /// Its address.
        host: String,
        /// Its port for clients.
        port: u16,
    },
    /// Be a master.
    Lead,
    /// Delete all keys of this slot: another node has it.
    DropKeys(u16),
    /// Delete all data.
    DropAll,
    /// End the subscriptions to shard channels of this slot: another shard has it.
    EndShardChannels(u16),
    /// Deliver a message to the subscribers here.
    Publish {
        /// The channel.
        channel: Bytes,
        /// The message.
        message: Bytes,
        /// A message of a shard channel.
        sharded: bool,
    },
    /// Hold back writes of clients for so many milliseconds.
    Pause(u64),
    /// Let them go on.
    Unpause,
}

/// What a node of a cluster wants done. Its state is on the disk before anything of it is sent.
#[derive(Debug, Default)]
pub struct Outbox {
    /// `nodes.conf` is to be written.
    pub unsaved: bool,
    /// For the rest of the server, in order.
    pub wants: Vec<Want>,
    /// What to send, dial and close, in order.
    pub actions: Vec<Action>,
    /// For the log.
    pub log: Vec<String>,
    /// For observers, in order.
    pub news: Vec<News>,
}

/// Something that has changed in the view of one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct News {
    /// What: `pfail`, `fail`, `recovered`, `election`, `vote`, `elected`, `takeover`, `epoch`,
    /// `slots`, `migrating`, `importing`, `stable`, `follows` or `state`.
    pub event: &'static str,
    /// Of which node, slots or epoch. Nodes are called by their addresses.
    pub about: String,
}
