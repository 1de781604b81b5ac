//! The role of this node for a slot.

use super::{Cluster, node::Key, slot_set::SlotSet};

/// The role of a node for a slot, in its own view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Serving {
    /// Another node is the slot's master, or no node is.
    Elsewhere,
    /// This node is the slot's master, but does not answer while the cluster is down.
    Closed,
    /// This node is the slot's master, and answers.
    Whole,
    /// This node is the slot's master, and answers for the keys that it still has.
    Migrating,
    /// Another node is the slot's master, and this one answers after ASKING.
    Importing,
}

impl Cluster {
    /// Returns the role of this node for a slot.
    pub fn serving(&self, slot: u16) -> Serving {
        match self.owner(slot) {
            Some(owner) if owner == self.me && self.myself().is_master() => match self.is_ok {
                false => Serving::Closed,
                true if self.migrating.contains_key(&slot) => Serving::Migrating,
                true => Serving::Whole,
            },
            _ if self.is_ok && self.myself().is_master() && self.importing.contains_key(&slot) => {
                Serving::Importing
            }
            _ => Serving::Elsewhere,
        }
    }

    /// Reports to observers that slots have another master.
    pub(super) fn tell_slots(&mut self, slots: &SlotSet, of: Key) {
        if !slots.is_empty() {
            self.tell("slots", format!("{} to {}", slots.words(), self.known(of).address));
        }
    }
}
