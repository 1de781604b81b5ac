//! The append-only files that hold a write durably, as WAITAOF counts them.

use super::Node;
use crate::resp::Reply;

/// The append-only files that are synced up to an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Synced {
    /// True if the node's own file is.
    pub local: bool,
    /// The number of online replicas whose files are.
    pub replicas: usize,
}

impl Synced {
    /// Returns true if the own file is synced, if `local` asks for that, and those of this many
    /// replicas.
    pub fn suffices(self, local: bool, replicas: usize) -> bool {
        (self.local || !local) && self.replicas >= replicas
    }
}

impl From<Synced> for Reply {
    fn from(synced: Synced) -> Reply {
        Reply::Array(vec![synced.local.into(), synced.replicas.into()])
    }
}

impl Node {
    /// Counts the append-only files that are synced up to `offset`, its own and those of its
    /// replicas.
    pub fn synced(&self, offset: u64) -> Synced {
        let own = self.persistence.aof.synced_offset;
        Synced { local: own.is_some_and(|own| own >= offset), replicas: self.replication.synced(offset) }
    }
}
