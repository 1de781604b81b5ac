//! What the memory of a node is used for, reckoned as `redis-server` would use it.

use crate::{
    keyspace::Db,
    node::Node,
    session::{Role, Session},
};

impl Node {
    /// What a server uses before it has any data, about as `redis-server` 7.0 does.
    pub const STARTUP_MEMORY: usize = 876_336;

    /// Bytes in use: those of the start, those of keys and values as `keyspace/memory.rs` reckons them, and what connections
    /// and the backlog hold.
    pub fn used_memory(&self) -> usize {
        let clients = self.memory_of(|role| role != Role::Replica);
        self.data_memory().saturating_add(clients).saturating_add(self.replication_memory())
    }

    /// The bytes of the start, and those of keys and values.
    pub fn data_memory(&self) -> usize {
        self.dbs.iter().map(Db::memory).fold(Node::STARTUP_MEMORY, usize::saturating_add)
    }

    /// What the connections of some roles hold, but for the room that everybody has for commands.
    pub fn memory_of(&self, wanted: impl Fn(Role) -> bool) -> usize {
        let of = self.sessions.iter().filter(|session| wanted(session.role));
        of.map(Session::weight).fold(0, usize::saturating_add)
    }

    /// What replicas and the backlog hold. No key goes for that.
    pub fn replication_memory(&self) -> usize {
        let backlog = self.replication.backlog.as_ref().map_or(0, |backlog| backlog.len());
        self.memory_of(|role| role == Role::Replica).saturating_add(backlog)
    }
}
