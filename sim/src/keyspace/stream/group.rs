//! Consumer groups: how far a group has read, and which entries are pending for which consumer.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use super::{Log, SAMPLES, StreamId, radix::Tree};
use crate::keyspace::memory::extrapolated;

/// An entry that was delivered and not acknowledged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pending {
    /// The consumer.
    pub consumer: Bytes,
    /// When, in milliseconds of the wall clock.
    pub delivered_ms: i64,
    /// How often.
    pub deliveries: u64,
}

/// A consumer of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Consumer {
    /// When it was last named, in milliseconds of the wall clock.
    pub seen_ms: i64,
    pending: BTreeSet<StreamId>,
}

impl Consumer {
    /// Its pending entries.
    pub fn pending(&self) -> &BTreeSet<StreamId> {
        &self.pending
    }
}

/// A consumer group. Pending entries are found by id and by consumer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Group {
    /// The last entry that was delivered as a new one.
    pub last_id: StreamId,
    /// How many entries were, if that is known.
    pub entries_read: Option<i64>,
    pending: BTreeMap<StreamId, Pending>,
    consumers: BTreeMap<Bytes, Consumer>,
}

impl Group {
    /// A group that has read up to an id.
    pub fn new(last_id: StreamId, entries_read: Option<i64>) -> Group {
        Group { last_id, entries_read, ..Group::default() }
    }

    /// The pending entries, by id.
    pub fn pending(&self) -> &BTreeMap<StreamId, Pending> {
        &self.pending
    }

    /// The consumers, by name.
    pub fn consumers(&self) -> &BTreeMap<Bytes, Consumer> {
        &self.consumers
    }

    /// Bytes of the group, as `redis-server` computes them: each pending entry is in two trees.
    pub(super) fn memory(&self) -> usize {
        const GROUP: usize = 40;
        const CONSUMER: usize = 24;
        const PENDING: usize = 24;
        let tree = Tree::of(self.pending.len(), self.pending.keys().copied());
        let names = self.consumers.keys().take(SAMPLES).map(|name| name.len() + CONSUMER);
        let consumers = extrapolated(self.consumers.len(), names);
        let theirs = tree.split(self.consumers.len());
        [GROUP, tree.bytes(), self.pending.len().saturating_mul(PENDING), consumers, theirs.bytes()]
            .into_iter()
            .fold(0, usize::saturating_add)
    }

    /// Updates the last activity of a consumer; returns whether it exists.
    pub fn see(&mut self, name: &[u8], now_ms: i64) -> bool {
        self.consumers.get_mut(name).map(|consumer| consumer.seen_ms = now_ms).is_some()
    }

    /// Adds a consumer; returns whether there was none of that name.
    pub fn create_consumer(&mut self, name: &Bytes, now_ms: i64) -> bool {
        if self.consumers.contains_key(name) {
            return false;
        }
        // The name may be part of a larger piece of memory, which it must not hold on to.
        let name = Bytes::copy_from_slice(name);
        self.consumers.insert(name, Consumer { seen_ms: now_ms, pending: BTreeSet::new() });
        true
    }

    /// Removes a consumer with its pending entries; returns how many there were.
    pub fn delete_consumer(&mut self, name: &[u8]) -> Option<usize> {
        let consumer = self.consumers.remove(name)?;
        consumer.pending.iter().for_each(|id| drop(self.pending.remove(id)));
        Some(consumer.pending.len())
    }

    /// Assigns an entry to an existing consumer; its previous consumer does not matter.
    pub fn assign(&mut self, id: StreamId, to: &[u8], delivered_ms: i64, deliveries: u64) {
        let Some((name, _)) = self.consumers.get_key_value(to) else { return };
        let pending = Pending { consumer: name.clone(), delivered_ms, deliveries };
        let old = self.pending.insert(id, pending).filter(|old| old.consumer != to);
        if let Some(owner) = old.and_then(|old| self.consumers.get_mut(&old.consumer)) {
            owner.pending.remove(&id);
        }
        if let Some(consumer) = self.consumers.get_mut(to) {
            consumer.pending.insert(id);
        }
    }

    /// Notes that an entry is delivered as a new one, if it is beyond the last.
    pub fn advance(&mut self, log: &Log, id: StreamId) {
        if id <= self.last_id {
            return;
        }
        self.entries_read = match self.entries_read {
            Some(read) if !log.has_gap_after(id) => Some(read.wrapping_add(1)),
            read if log.entries_added == 0 => read,
            _ => log.position(id),
        };
        self.last_id = id;
    }

    /// Notes one more delivery of an entry that is pending.
    pub fn deliver_again(&mut self, id: StreamId, now_ms: i64) {
        if let Some(pending) = self.pending.get_mut(&id) {
            pending.delivered_ms = now_ms;
            pending.deliveries = pending.deliveries.wrapping_add(1);
        }
    }

    /// Removes a pending entry, and returns it.
    pub fn acknowledge(&mut self, id: StreamId) -> Option<Pending> {
        let pending = self.pending.remove(&id)?;
        if let Some(consumer) = self.consumers.get_mut(&pending.consumer) {
            consumer.pending.remove(&id);
        }
        Some(pending)
    }
}
