//! The masters of a cluster as a client knows them: which slots each has, and how many replicas.
//! Pure: [`cluster`](super::cluster) asks.

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

/// For so long a promoted replica counts at least the replicas of the master that it replaced,
/// which is one of them from then on: none may have told the others yet whose replica it is now.
pub(super) const SUCCESSION: Duration = Duration::from_secs(10);

/// How many addresses a client remembers. A cluster has a thousand nodes at most.
const MOST: usize = 4096;

/// The masters, and which of them has a slot.
pub(super) struct Masters {
    /// By [`NodeId`]: all that have been masters as far as this client knows.
    pub(super) masters: Vec<Master>,
    /// The master of each slot.
    pub(super) slots: Vec<NodeId>,
    /// The same as the nodes told it last, without the redirections since.
    pub(super) told: Vec<NodeId>,
    pub(super) epochs: Epochs,
    pub(super) is_sharded: bool,
    pub(super) is_loaded: bool,
    pub(super) is_watched: bool,
}

/// A master, or what was one.
pub(super) struct Master {
    pub(super) endpoint: Endpoint,
    /// What it is called in the cluster.
    pub(super) id: Option<String>,
    /// How many replicas the cluster knows.
    pub(super) replicas: usize,
    /// The masters whose slots it took over and that are down, by their ids: they will be its
    /// replicas, which count from now on.
    pub(super) fallen: BTreeSet<String>,
    /// Another server has what it had.
    pub(super) is_replaced: bool,
    /// How many replicas the master had that it replaced, and until when that counts.
    pub(super) inherited: Option<(usize, Monotonic)>,
}

impl Master {
    /// How many replicas it has, and will have when those that are to follow it do.
    pub(super) fn replicas(&self, now: Monotonic) -> usize {
        let inherited = self.inherited.filter(|(_, until)| now < *until).map_or(0, |(replicas, _)| replicas);
        inherited.max(self.replicas + self.fallen.len())
    }

    /// What a replica inherits that replaces it: how many replicas, and until when they count.
    pub(super) fn legacy(&self, now: Monotonic) -> (usize, Monotonic) {
        (self.replicas(now), now + SUCCESSION)
    }
}

impl Masters {
    /// Before any node was asked.
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

    /// The number of the server there, which is a new one if need be. `None` when too many are
    /// known.
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

    /// Those of `fallen` that had any of these slots.
    pub(super) fn fallen(&self, slots: RangeInclusive<usize>, fallen: &BTreeSet<String>) -> BTreeSet<String> {
        let had = nodes_of(self.told.get(slots).unwrap_or_default());
        let ids = had.into_iter().filter_map(|node| self.master(node)?.id.clone());
        ids.filter(|id| fallen.contains(id)).collect()
    }

    /// Of a master that has no slots any more the one that has them now is a replica that was
    /// promoted, unless it had some before.
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

    /// The masters that have slots.
    pub(super) fn owners(&self) -> Vec<&Master> {
        nodes_of(&self.slots).into_iter().filter_map(|id| self.master(id)).collect()
    }
}

/// The nodes that have slots, each once.
fn nodes_of(slots: &[NodeId]) -> BTreeSet<NodeId> {
    slots.chunk_by(|one, next| one == next).filter_map(|same| same.first().copied()).collect()
}
