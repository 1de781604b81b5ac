//! Decides which master owns each slot: the claim with the newer epoch wins.

use super::{Around, Cluster, message::Header, node::Key, outbox::Want, slot::key_slot, slot_set::SlotSet};
use crate::generation::Feature;

impl Cluster {
    /// Applies a master's claim to slots by its config epoch. If this node or its master loses its
    /// last slots to the claim, this node becomes a replica of the new owner.
    pub(super) fn take_claims(&mut self, around: &mut Around<'_>, of: Key, epoch: u64, claimed: &SlotSet) {
        if of == self.me {
            return self.log("Discarding UPDATE message about myself.");
        }
        let Some(mine) = self.my_master() else { return };
        let (mut dirty, mut lost, mut moved) = (Vec::new(), 0, SlotSet::default());
        for slot in claimed.iter() {
            let owner = self.owner(slot);
            if owner == Some(of) {
                self.unclaimed.remove(slot);
                continue;
            }
            // Only SETSLOT moves a slot that is being imported. Where SETSLOT is replicated, the
            // source's successor takes its place.
            let source = self.importing.get(&slot).copied();
            if source.is_some_and(|source| !self.has_succeeded(of, source)) {
                continue;
            }
            if !self.is_free(slot) && owner.is_some_and(|owner| self.known(owner).config_epoch >= epoch) {
                continue;
            }
            if owner == Some(self.me) && around.db.by_slot(key_slot).count(slot) > 0 {
                dirty.push(slot);
            }
            if source.is_some() {
                self.importing.insert(slot, of);
            }
            lost += u16::from(owner == Some(mine));
            self.unbind(slot);
            self.bind(slot, of);
            moved.add(slot);
            self.changed();
        }
        let replaced = |target: Key| !moved.is_empty() && self.has_succeeded(of, target);
        let outdated = self.migrating.iter().filter(|(_, target)| replaced(**target)).map(|(slot, _)| *slot);
        for slot in outdated.collect::<Vec<_>>() {
            self.migrating.insert(slot, of);
        }
        self.tell_slots(&moved, of);
        for slot in self.known(of).slots.iter().collect::<Vec<_>>() {
            if !claimed.has(slot) {
                self.unclaimed.add(slot);
            }
        }
        let all_lost = lost > 0 && self.known(mine).slots.is_empty();
        let above = self.myself().master.and_then(|master| self.known(master).master);
        if all_lost && (around.config.cluster.allow_replica_migration || claimed.len() == lost) {
            self.log(format!(
                "Configuration change detected. Reconfiguring myself as a replica of {}",
                self.known(of).id
            ));
            self.follow(of);
        } else if let Some(above) = above.filter(|above| *above != self.me) {
            self.log("The master of this replica is a replica itself: following its master");
            self.follow(above);
        } else {
            self.out.wants.extend(dirty.into_iter().map(Want::DropKeys));
        }
    }

    /// Returns true if a master takes the part of a former one in the moves of slots, because it is
    /// of the same shard.
    pub(super) fn has_succeeded(&self, new: Key, former: Key) -> bool {
        self.generation.has(Feature::ReplicatedSetSlot)
            && new != former
            && self.shard_id(new) == self.shard_id(former)
    }

    /// Sends an UPDATE to a sender that claims slots of another node, if that node has a newer
    /// epoch.
    pub(super) fn correct(&mut self, around: &Around<'_>, sender: Key, header: &Header) {
        let owners = |(first, last): (u16, u16)| &self.owners()[usize::from(first)..=usize::from(last)];
        let owners = header.slots.runs().flat_map(owners).flatten();
        let newer = owners
            .copied()
            .find(|owner| *owner != sender && self.known(*owner).config_epoch > header.config_epoch);
        if let Some(owner) = newer {
            self.send_update(around, sender, owner);
        }
    }

    /// Ends the collision of two masters with the same config epoch: the one with the smaller name
    /// takes the next epoch.
    pub(super) fn end_collision(&mut self, other: Key) {
        let (myself, other) = (self.myself(), self.known(other));
        if other.config_epoch != myself.config_epoch || other.id <= myself.id {
            return;
        }
        let id = other.id;
        self.current_epoch = self.current_epoch.saturating_add(1);
        let epoch = self.current_epoch;
        self.myself_mut().config_epoch = epoch;
        self.out.unsaved = true;
        self.log(format!("WARNING: configEpoch collision with node {id}. configEpoch set to {epoch}"));
        self.tell("epoch", epoch.to_string());
    }

    /// Takes an epoch above all others without asking any node, unless this node has the greatest
    /// already. Returns true if it did.
    pub(super) fn bump_epoch(&mut self) -> bool {
        let of_nodes = self.nodes.values().map(|node| node.config_epoch).max().unwrap_or(0);
        let max = self.current_epoch.max(of_nodes);
        let mine = self.myself().config_epoch;
        if mine != 0 && mine == max {
            return false;
        }
        self.current_epoch = self.current_epoch.saturating_add(1);
        let epoch = self.current_epoch;
        self.myself_mut().config_epoch = epoch;
        self.out.unsaved = true;
        self.log(format!("New configEpoch set to {epoch}"));
        self.tell("epoch", epoch.to_string());
        true
    }
}
