//! Index of the keys of a database by cluster slot.

use std::{cmp::Reverse, collections::BTreeMap};

use bytes::Bytes;

/// The keys of a database by cluster slot, newest first within a slot.
#[derive(Debug, Clone)]
pub struct SlotKeys {
    slot_of: fn(&[u8]) -> u16,
    slots: BTreeMap<u16, OneSlot>,
    added: u64,
}

#[derive(Debug, Clone, Default)]
struct OneSlot {
    ages: BTreeMap<Bytes, u64>,
    by_age: BTreeMap<Reverse<u64>, Bytes>,
}

impl SlotKeys {
    pub(super) fn new(slot_of: fn(&[u8]) -> u16) -> SlotKeys {
        SlotKeys { slot_of, slots: BTreeMap::new(), added: 0 }
    }

    pub(super) fn add(&mut self, key: &[u8]) {
        self.added += 1;
        let slot = self.slots.entry((self.slot_of)(key)).or_default();
        let key = Bytes::copy_from_slice(key);
        slot.by_age.insert(Reverse(self.added), key.clone());
        if let Some(older) = slot.ages.insert(key, self.added) {
            slot.by_age.remove(&Reverse(older));
        }
    }

    pub(super) fn remove(&mut self, key: &[u8]) {
        let number = (self.slot_of)(key);
        let Some(slot) = self.slots.get_mut(&number) else { return };
        if let Some(age) = slot.ages.remove(key) {
            slot.by_age.remove(&Reverse(age));
        }
        if slot.ages.is_empty() {
            self.slots.remove(&number);
        }
    }

    /// Returns the number of keys in a slot.
    pub fn count(&self, slot: u16) -> usize {
        self.slots.get(&slot).map_or(0, |slot| slot.ages.len())
    }

    /// Returns the keys in a slot, newest first.
    pub fn keys(&self, slot: u16) -> impl Iterator<Item = &Bytes> {
        self.slots.get(&slot).into_iter().flat_map(|slot| slot.by_age.values())
    }

    /// Returns the slots that have keys, in ascending order.
    pub fn used(&self) -> impl Iterator<Item = u16> {
        self.slots.keys().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keyspace::{Db, Str, Usage, Value};

    #[test]
    fn the_index_follows_the_database_from_when_it_was_asked_for() {
        let slot_of = |key: &[u8]| u16::from(key[0]);
        let mut db = Db::default();
        let put = |db: &mut Db, key: &'static str| {
            db.insert(
                &Bytes::from_static(key.as_bytes()),
                Value::String(Str::new("v")),
                None,
                Usage::default(),
            )
        };
        put(&mut db, "a1");
        let shown = |db: &mut Db, slot: u8| {
            db.by_slot(slot_of)
                .keys(slot.into())
                .map(|key| String::from_utf8_lossy(key).into_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(shown(&mut db, b'a'), ["a1"]);
        for key in ["a2", "b1", "a2", "a3"] {
            put(&mut db, key);
        }
        assert_eq!(shown(&mut db, b'a'), ["a3", "a2", "a1"]);
        assert_eq!(db.by_slot(slot_of).used().collect::<Vec<_>>(), [97, 98]);
        db.remove(b"a2");
        db.remove(b"b1");
        assert_eq!((db.by_slot(slot_of).count(97), db.by_slot(slot_of).count(98)), (2, 0));
        db.clear();
        assert_eq!(db.by_slot(slot_of).used().count(), 0);
    }
}
