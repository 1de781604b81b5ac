//! A client's view of the masters of a cluster: the slots and the number of replicas of each. Pure:
//! [`cluster`](super::cluster) does the asking.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::NodeId;
use super::epochs::Epochs;
use crate::config::Config;
use crate::endpoint::Endpoint;
use crate::env::Monotonic;
use crate::error::Result;
use crate::wire::Slot;

/// The time for which a promoted replica counts at least as many replicas as the master that it
/// replaced, which becomes one of them. During this time none of them may have reported its new
/// master yet.
pub(super) const SUCCESSION: Duration = Duration::from_secs(10);

/// The maximum number of addresses that a client remembers. A cluster has a thousand nodes at most.
const MOST: usize = 4096;

/// The masters and their slots.
pub(super) struct Masters {
    /// Indexed by [`NodeId`]: every server that this client has known as a master.
    pub(super) masters: Vec<Master>,
    /// The master of each slot.
    pub(super) slots: Vec<NodeId>,
    /// The master of each slot in the last accepted report, without the redirections since.
    pub(super) told: Vec<NodeId>,
    pub(super) epochs: Epochs,
    pub(super) is_sharded: bool,
    pub(super) is_loaded: bool,
    pub(super) is_watched: bool,
}

/// A present or former master.
pub(super) struct Master {
    pub(super) endpoint: Endpoint,
    /// The node id in the cluster.
    pub(super) id: Option<String>,
    /// The number of replicas that the cluster reports.
    pub(super) replicas: usize,
    /// The ids of masters that are down and whose slots it took over. They will come back as its
    /// replicas and are already counted as such.
    pub(super) fallen: BTreeSet<String>,
    /// Set once another server has its slots.
    pub(super) is_replaced: bool,
    /// The number of replicas of the master that it replaced, and the time until which that number
    /// counts.
    pub(super) inherited: Option<(usize, Monotonic)>,
}

impl Master {
    /// Returns the number of replicas, including those that are expected to follow this master.
    pub(super) fn replicas(&self, now: Monotonic) -> usize {
        let inherited = self.inherited.filter(|(_, until)| now < *until).map_or(0, |(replicas, _)| replicas);
        inherited.max(self.replicas + self.fallen.len())
    }

    /// Returns what a replica inherits that replaces this master: a number of replicas, and the
    /// time until which it counts.
    pub(super) fn legacy(&self, now: Monotonic) -> (usize, Monotonic) {
        (self.replicas(now), now + SUCCESSION)
    }
}

impl Masters {
    /// The state before any node was asked.
    pub(super) fn unknown() -> Self {
        let slots = vec![NodeId::NONE; usize::from(Slot::COUNT)];
        Self {
            masters: Vec::new(),
            told: slots.clone(),
            slots,
            epochs: Epochs::default(),
            is_sharded: false,
            is_loaded: false,
            is_watched: false,
        }
    }

    /// Returns the id of the server at this address, adding it if it is new. `None` if too many
    /// servers are known already.
    pub(super) fn number(&mut self, host: &str, port: u16, config: &Config) -> Result<Option<NodeId>> {
        let Some(seed) = config.endpoints.first() else { return Ok(None) };
        let endpoint = seed.at(host, port)?;
        let known = self.masters.iter().position(|master| master.endpoint.is_same_place(&endpoint));
        let at = match known {
            Some(at) => at,
            None if self.masters.len() == MOST => return Ok(None),
            None => {
                self.masters.push(Master {
                    endpoint,
                    id: None,
                    replicas: 0,
                    fallen: BTreeSet::new(),
                    is_replaced: false,
                    inherited: None,
                });
                self.masters.len() - 1
            }
        };
        Ok(u16::try_from(at).ok().map(NodeId))
    }

    pub(super) fn master(&self, node: NodeId) -> Option<&Master> {
        self.masters.get(usize::from(node.0))
    }

    /// Returns those of `fallen` that had any of these slots.
    pub(super) fn fallen(&self, slots: RangeInclusive<usize>, fallen: &BTreeSet<String>) -> BTreeSet<String> {
        let had = nodes_of(self.told.get(slots).unwrap_or_default());
        let ids = had.into_iter().filter_map(|node| self.master(node)?.id.clone());
        ids.filter(|id| fallen.contains(id)).collect()
    }

    /// Notes promotions. If a master has lost all its slots, their new owner is its promoted
    /// replica, unless that owner had slots before.
    pub(super) fn succeed(&mut self, slots: &[NodeId], now: Monotonic) {
        if self.told == slots {
            return;
        }
        let (before, after) = (nodes_of(&self.told), nodes_of(slots));
        let mut pairs: Vec<(NodeId, NodeId)> = self.told.iter().copied().zip(slots.iter().copied()).collect();
        pairs.dedup();
        for (old, new) in pairs {
            if before.contains(&new) {
                continue;
            }
            let inherited =
                self.master(old).filter(|_| !after.contains(&old)).map(|master| master.legacy(now));
            if let Some(master) = self.masters.get_mut(usize::from(new.0)) {
                master.inherited = inherited;
            }
        }
    }

    /// Returns the masters that have slots.
    pub(super) fn owners(&self) -> Vec<&Master> {
        nodes_of(&self.slots).into_iter().filter_map(|id| self.master(id)).collect()
    }
}

/// Returns the nodes that have slots, each once.
fn nodes_of(slots: &[NodeId]) -> BTreeSet<NodeId> {
    slots.chunk_by(|one, next| one == next).filter_map(|same| same.first().copied()).collect()
}
