//! Which key of a database expires first.
//!
//! Leases are renewed far more often than they run out. So a key that is to expire later than
//! before keeps its place in the order, and gets its new one when it is looked at in the old one: a
//! renewal costs nothing here.

use std::collections::BTreeSet;

/// The slots of the keys that expire, each once.
#[derive(Debug, Clone, Default)]
pub(super) struct Expiries {
    /// Sorted by the times at which they are checked, which are never later than their expiries.
    order: BTreeSet<(i64, u32)>,
    /// The time at which the key of each slot is checked.
    looks_ms: Vec<i64>,
}

/// In `looks_ms`, for a slot without a time. A key that expired as long ago as can be is looked at
/// a millisecond later.
const NEVER: i64 = i64::MIN;

impl Expiries {
    /// The next slot to check and when: no key expires before.
    pub(super) fn first(&self) -> Option<(i64, u32)> {
        self.order.first().copied()
    }

    /// The key in a slot expires then, or no more. Nothing need be said of one that expires later
    /// than before.
    pub(super) fn set(&mut self, slot: u32, when_ms: Option<i64>) {
        let look_ms = self.looks_ms.get(slot as usize).copied().unwrap_or(NEVER);
        self.place(slot, look_ms, when_ms.map_or(NEVER, |when_ms| when_ms.max(NEVER + 1)));
    }

    /// The slot that is first has been looked at: the key in it expires then, which is not before.
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

impl FromIterator<(u32, i64)> for Expiries {
    fn from_iter<I: IntoIterator<Item = (u32, i64)>>(slots: I) -> Expiries {
        let mut expiries = Expiries::default();
        slots.into_iter().for_each(|(slot, when_ms)| expiries.set(slot, Some(when_ms)));
        expiries
    }
}
