//! Queue of the keys of a database, ordered by expiry.
//!
//! Clients renew leases far more often than leases expire. So a key whose expiry moves later keeps
//! its position in the queue. It moves when its old time is checked: the renewal itself costs
//! nothing here.

use std::collections::BTreeSet;

/// The slots of the keys with an expiry, each once.
#[derive(Debug, Clone, Default)]
pub(super) struct ExpiryQueue {
    /// Check time and slot, sorted. A check time is never later than the key's expiry.
    order: BTreeSet<(i64, u32)>,
    /// Check time of the key of each slot.
    looks_ms: Vec<i64>,
}

/// Marks a slot without a time in `looks_ms`. A key with the earliest possible expiry is checked
/// one millisecond later.
const NEVER: i64 = i64::MIN;

impl ExpiryQueue {
    /// Returns the next slot to check, with its time. No key expires earlier.
    pub(super) fn first(&self) -> Option<(i64, u32)> {
        self.order.first().copied()
    }

    /// Sets or clears the expiry of the key in a slot. The caller may skip the call if the expiry
    /// moves later.
    pub(super) fn set(&mut self, slot: u32, when_ms: Option<i64>) {
        let look_ms = self.looks_ms.get(slot as usize).copied().unwrap_or(NEVER);
        self.place(slot, look_ms, when_ms.map_or(NEVER, |when_ms| when_ms.max(NEVER + 1)));
    }

    /// Moves the first slot to `when_ms`, the expiry of its key, which must not be before its check
    /// time.
    pub(super) fn postpone_first(&mut self, when_ms: i64) {
        let Some((look_ms, slot)) = self.first() else { return };
        self.place(slot, look_ms, when_ms);
    }

    fn place(&mut self, slot: u32, old_ms: i64, new_ms: i64) {
        if old_ms != NEVER {
            self.order.remove(&(old_ms, slot));
        }
        if new_ms != NEVER {
            self.order.insert((new_ms, slot));
        }
        let at = slot as usize;
        if at >= self.looks_ms.len() {
            self.looks_ms.resize((at + 1).next_power_of_two(), NEVER);
        }
        self.looks_ms[at] = new_ms;
    }
}

impl FromIterator<(u32, i64)> for ExpiryQueue {
    fn from_iter<I: IntoIterator<Item = (u32, i64)>>(slots: I) -> ExpiryQueue {
        let mut expiries = ExpiryQueue::default();
        slots.into_iter().for_each(|(slot, when_ms)| expiries.set(slot, Some(when_ms)));
        expiries
    }
}
