//! Consumer groups: their read positions, and the pending entries of each consumer.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use super::{Log, SAMPLES, StreamId, radix::Tree};
use crate::keyspace::memory::extrapolated;

/// An entry that was delivered and not acknowledged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pending {
    /// The consumer that got the entry last.
    pub consumer: Bytes,
    /// Wall-clock time of the last delivery, in milliseconds.
    pub delivered_ms: i64,
    /// Number of deliveries, the first one included.
    pub deliveries: u64,
}

/// A consumer of a group, with the ids of its pending entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Consumer {
    /// Wall-clock time of the last command that named the consumer, in milliseconds.
    pub seen_ms: i64,
    /// Wall-clock time at which an entry last became pending for the consumer, in milliseconds;
    /// `None` if none has.
    pub active_ms: Option<i64>,
    pending: BTreeSet<StreamId>,
}

impl Consumer {
    /// Returns the ids of the consumer's pending entries.
    pub fn pending(&self) -> &BTreeSet<StreamId> {
        &self.pending
    }
}

/// A consumer group. It finds pending entries by id and by consumer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Group {
    /// Id of the last entry that was delivered as a new one.
    pub last_id: StreamId,
    /// Number of entries delivered as new ones. `None` if unknown.
    pub entries_read: Option<i64>,
    pending: BTreeMap<StreamId, Pending>,
    consumers: BTreeMap<Bytes, Consumer>,
}

impl Group {
    /// Makes a group that has read up to `last_id`.
    pub fn new(last_id: StreamId, entries_read: Option<i64>) -> Group {
        Group { last_id, entries_read, ..Group::default() }
    }

    /// Returns the pending entries, by id.
    pub fn pending(&self) -> &BTreeMap<StreamId, Pending> {
        &self.pending
    }

    /// Returns the consumers by name, idle ones included.
    pub fn consumers(&self) -> &BTreeMap<Bytes, Consumer> {
        &self.consumers
    }

    /// Returns the bytes of the group, as `redis-server` computes them: each pending entry is in
    /// two trees.
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

    /// Updates the last activity of a consumer; returns true if the consumer exists.
    pub fn see(&mut self, name: &[u8], now_ms: i64) -> bool {
        self.consumers.get_mut(name).map(|consumer| consumer.seen_ms = now_ms).is_some()
    }

    /// Records the time at which an entry became pending for a consumer.
    pub fn activate(&mut self, name: &[u8], active_ms: Option<i64>) {
        if let Some(consumer) = self.consumers.get_mut(name) {
            consumer.active_ms = active_ms;
        }
    }

    /// Adds a consumer; returns false if one of that name exists.
    pub fn create_consumer(&mut self, name: &Bytes, now_ms: i64) -> bool {
        if self.consumers.contains_key(name) {
            return false;
        }
        // Copy the name, which may be a slice of a larger buffer, so that the buffer can be freed.
        let name = Bytes::copy_from_slice(name);
        self.consumers.insert(name, Consumer { seen_ms: now_ms, active_ms: None, pending: BTreeSet::new() });
        true
    }

    /// Removes a consumer and its pending entries; returns their number. `None` without that
    /// consumer.
    pub fn delete_consumer(&mut self, name: &[u8]) -> Option<usize> {
        let consumer = self.consumers.remove(name)?;
        consumer.pending.iter().for_each(|id| drop(self.pending.remove(id)));
        Some(consumer.pending.len())
    }

    /// Assigns an entry to an existing consumer, and takes it from its previous consumer.
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

    /// Records the delivery of a new entry. Ignores an id that is not beyond the last one.
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

    /// Records another delivery of a pending entry.
    pub fn deliver_again(&mut self, id: StreamId, now_ms: i64) {
        if let Some(pending) = self.pending.get_mut(&id) {
            pending.delivered_ms = now_ms;
            pending.deliveries = pending.deliveries.wrapping_add(1);
        }
    }

    /// Removes and returns a pending entry.
    pub fn acknowledge(&mut self, id: StreamId) -> Option<Pending> {
        let pending = self.pending.remove(&id)?;
        if let Some(consumer) = self.consumers.get_mut(&pending.consumer) {
            consumer.pending.remove(&id);
        }
        Some(pending)
    }
}
