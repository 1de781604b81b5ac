//! What this node is to a slot.

use super::{Cluster, node::Key, slot_set::SlotSet};

/// What a node is to a slot, in its own view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Serving {
    /// Another node is its master, or none is.
    Elsewhere,
    /// This node is its master, and does not answer, because the cluster is down.
    Closed,
    /// This node is its master, and answers.
    Whole,
    /// This node is its master, and answers for the keys that it still has.
    Migrating,
    /// Another node is its master, and this one answers after ASKING.
    Importing,
}

impl Cluster {
    /// What this node is to a slot.
    pub fn serving(&self, slot: u16) -> Serving {
        match self.owner(slot) {
            Some(owner) if owner == self.me && self.myself().is_master() => match self.is_ok {
                false => Serving::Closed,
                true if self.migrating.contains_key(&slot) => Serving::Migrating,
                true => Serving::Whole,
            },
            _ if self.is_ok && self.importing.contains_key(&slot) => Serving::Importing,
            _ => Serving::Elsewhere,
        }
    }

    /// Tells observers that slots have another master.
    pub(super) fn tell_slots(&mut self, slots: &SlotSet, of: Key) {
        if !slots.is_empty() {
            self.tell("slots", format!("{} to {}", slots.words(), self.known(of).address));
        }
    }
}
