//! One database: keys, their values, and when they expire.

use bytes::Bytes;

use super::{Dict, Draw, ExpiryRule, SlotKeys, Typed, Usage, Value, WrongType, expiries::Expiries};
use crate::blob::Blob;

/// A key's value and its expiry.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The value of the key.
    pub value: Value,
    expires: Expires,
    /// When the key was last used, and how often, for OBJECT and for eviction.
    pub usage: Usage,
    /// [`Entry::memory`] when it was last computed.
    accounted: usize,
}

/// When a key expires. Every key has one of these, and this is half the size of an `Option`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Expires(i64);

impl Expires {
    /// In place of a time so long ago that one more millisecond makes no difference.
    const NEVER: Expires = Expires(i64::MIN);

    fn at(when_ms: Option<i64>) -> Expires {
        when_ms.map_or(Expires::NEVER, |when_ms| Expires(when_ms.max(i64::MIN + 1)))
    }

    fn when_ms(self) -> Option<i64> {
        (self != Expires::NEVER).then_some(self.0)
    }
}

impl Entry {
    /// Whether the key is past its time.
    pub fn is_expired(&self, rule: ExpiryRule) -> bool {
        self.expires_ms().is_some_and(|when_ms| rule.is_past(when_ms))
    }

    /// The wall-clock time in milliseconds since the epoch after which the key has expired.
    pub fn expires_ms(&self) -> Option<i64> {
        self.expires.when_ms()
    }
}

/// Where a key is in its database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place(u32);

/// What a lookup by the rule of expiry has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// No key.
    Missing,
    /// A key that is past its time.
    Expired,
    /// A key.
    Live(Place),
}

/// A numbered database. All methods but [`Db::find_by`] see expired keys too.
#[derive(Debug, Clone, Default)]
pub struct Db {
    entries: Dict<Entry>,
    /// Keys that expire, to draw from.
    volatile: Dict<()>,
    /// Which of them is first.
    expiries: Expiries,
    /// Bytes of all keys, as last computed.
    accounted: usize,
    /// Slots of `entries` whose keys may have changed since.
    unaccounted: Slots,
    /// The keys by their slot of a cluster, once that was asked for.
    by_slot: Option<Box<SlotKeys>>,
}

impl Db {
    /// How many keys there are, expired ones included until they are found out.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How many keys have an expiry.
    pub fn volatile_len(&self) -> usize {
        self.volatile.len()
    }

    /// The keys that have an expiry, for sampling.
    pub fn volatile(&self) -> &Dict<()> {
        &self.volatile
    }

    /// When to look for a key that has expired, in milliseconds of the wall clock: none expires
    /// before.
    pub fn next_expiry_ms(&self) -> Option<i64> {
        self.expiries.first().map(|(when_ms, _)| when_ms)
    }

    /// Checks the key that is due at [`Db::next_expiry_ms`], and returns it if it really expires
    /// then, as the first of all. A key whose expiry was postponed moves to its new time in the
    /// queue.
    pub fn next_expired(&mut self) -> Option<&Blob> {
        let (look_ms, slot) = self.expiries.first()?;
        let (key, entry) = self.entries.at(slot)?;
        let when_ms = entry.expires_ms().filter(|when_ms| *when_ms > look_ms);
        if let Some(when_ms) = when_ms {
            self.expiries.postpone_first(when_ms);
            return None;
        }
        Some(key)
    }

    /// All keys and entries, for scans, samples and snapshots.
    pub fn entries(&self) -> &Dict<Entry> {
        &self.entries
    }

    /// Where a key is, for as long as no key is added or removed.
    pub fn find(&self, key: &[u8]) -> Option<Place> {
        self.entries.slot_of(key).map(Place)
    }

    /// Where a key is, unless it is past its time.
    pub fn find_by(&self, key: &[u8], rule: ExpiryRule) -> Found {
        match self.find(key) {
            None => Found::Missing,
            Some(place) if self.at(place).is_expired(rule) => Found::Expired,
            Some(place) => Found::Live(place),
        }
    }

    /// The entry at a place.
    ///
    /// # Panics
    /// When nothing is there any more.
    pub fn at(&self, place: Place) -> &Entry {
        self.entries.at(place.0).expect("the place of a key").1
    }

    /// The entry at a place, with a touch of its LRU and LFU data; `draw` as [`Usage::note`] wants
    /// it.
    ///
    /// # Panics
    /// When nothing is there any more.
    pub fn touched(&mut self, place: Place, now_ms: i64, draw: Option<Draw>) -> &Entry {
        let (_, entry) = self.entries.at_mut(place.0).expect("the place of a key");
        entry.usage.note(now_ms, draw);
        entry
    }

    /// The value at a place, to change, with a touch of its LRU and LFU data.
    ///
    /// # Panics
    /// When nothing is there any more.
    pub fn touched_mut(&mut self, place: Place, now_ms: i64, draw: Option<Draw>) -> &mut Value {
        let (_, entry) = self.entries.at_mut(place.0).expect("the place of a key");
        self.unaccounted.add(place.0);
        entry.usage.note(now_ms, draw);
        &mut entry.value
    }

    /// Whether a key is there, expired or not.
    pub fn contains(&self, key: &[u8]) -> bool {
        self.entries.contains(key)
    }

    /// The entry of a key.
    pub fn get(&self, key: &[u8]) -> Option<&Entry> {
        self.entries.get(key)
    }

    /// The value of a key as one type, for commands that draw from it or combine several.
    ///
    /// # Errors
    /// When the key holds another type.
    pub fn typed<T: Typed>(&self, key: &[u8]) -> Result<Option<&T>, WrongType> {
        self.entries.get(key).map(|entry| T::of(&entry.value).ok_or(WrongType)).transpose()
    }

    /// The value of a key as one type, to change in place.
    ///
    /// # Errors
    /// When the key holds another type.
    pub fn typed_mut<T: Typed>(&mut self, key: &[u8]) -> Result<Option<&mut T>, WrongType> {
        let Some((slot, entry)) = self.entries.get_slot_mut(key) else { return Ok(None) };
        self.unaccounted.add(slot);
        T::of_mut(&mut entry.value).ok_or(WrongType).map(Some)
    }

    /// Sets a key to a new entry, as used so; returns the one it replaces.
    pub fn insert<K: AsRef<[u8]> + Into<Blob> + Copy>(
        &mut self,
        key: K,
        value: Value,
        expires_ms: Option<i64>,
        usage: Usage,
    ) -> Option<Entry> {
        let entry = Entry { value, expires: Expires::at(expires_ms), usage, accounted: 0 };
        let (slot, old) = self.entries.insert_slot(key, entry);
        self.note_set(key, slot, old.as_ref(), expires_ms);
        old
    }

    /// Sets the key at a place to a new entry, as [`Db::insert`].
    ///
    /// # Panics
    /// When nothing is there any more.
    pub fn replace(
        &mut self,
        place: Place,
        key: &Bytes,
        value: Value,
        expires_ms: Option<i64>,
        usage: Usage,
    ) -> Entry {
        let (_, entry) = self.entries.at_mut(place.0).expect("the place of a key");
        let old =
            std::mem::replace(entry, Entry { value, expires: Expires::at(expires_ms), usage, accounted: 0 });
        self.note_set(key, place.0, Some(&old), expires_ms);
        old
    }

    fn note_set<K: AsRef<[u8]> + Into<Blob>>(
        &mut self,
        key: K,
        slot: u32,
        old: Option<&Entry>,
        expires_ms: Option<i64>,
    ) {
        self.forget(old);
        self.unaccounted.add(slot);
        if let Some(keys) = self.by_slot.as_mut().filter(|_| old.is_none()) {
            keys.add(key.as_ref());
        }
        self.track(key, slot, old.and_then(Entry::expires_ms), Expires::at(expires_ms).when_ms());
    }

    fn track(
        &mut self,
        key: impl AsRef<[u8]> + Into<Blob>,
        slot: u32,
        old_ms: Option<i64>,
        new_ms: Option<i64>,
    ) {
        if old_ms == new_ms {
            return;
        }
        // A lease that is renewed keeps its place.
        if old_ms.zip(new_ms).is_none_or(|(old_ms, new_ms)| new_ms < old_ms) {
            self.expiries.set(slot, new_ms);
        }
        match (old_ms, new_ms) {
            (None, Some(_)) => drop(self.volatile.insert(key, ())),
            (Some(_), None) => drop(self.volatile.remove(key.as_ref())),
            _ => {}
        }
    }

    /// Sets how a key that is there was used.
    pub fn set_usage(&mut self, key: &[u8], usage: Usage) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.usage = usage;
        }
    }

    /// Sets or clears the expiry of a key. Returns whether the key is there.
    pub fn set_expiry(&mut self, key: &Bytes, expires_ms: Option<i64>) -> bool {
        let Some((slot, entry)) = self.entries.get_slot_mut(key) else { return false };
        let old_ms = entry.expires_ms();
        entry.expires = Expires::at(expires_ms);
        let new_ms = entry.expires_ms();
        self.unaccounted.add(slot);
        self.track(key, slot, old_ms, new_ms);
        true
    }

    /// Removes a key.
    pub fn remove(&mut self, key: &[u8]) -> Option<Entry> {
        let (slot, key, entry) = self.entries.take(key)?;
        self.forget(Some(&entry));
        if let Some(keys) = &mut self.by_slot {
            keys.remove(&key);
        }
        self.track(&key, slot, entry.expires_ms(), None);
        if self.entries.is_sparse() {
            self.compact();
        }
        Some(entry)
    }

    /// Releases unused slots. Keys change their slots, so no reference to a slot may remain.
    fn compact(&mut self) {
        self.account();
        self.unaccounted = Slots::default();
        self.entries.compact();
        let slots = self.entries.slots().filter_map(|(slot, entry)| Some((slot, entry.expires_ms()?)));
        self.expiries = slots.collect();
    }

    /// Bytes of all keys and values, by [`Entry::memory`].
    pub fn memory(&self) -> usize {
        let changed = self.unaccounted.all.iter().filter_map(|&slot| self.entries.at(slot));
        changed.fold(self.accounted, |sum, (key, entry)| {
            (sum + entry.memory(key)).saturating_sub(entry.accounted)
        })
    }

    /// Computes [`Db::memory`] and stores the result, so that the next call visits changed keys
    /// only.
    pub fn account(&mut self) -> usize {
        for slot in self.unaccounted.take() {
            if let Some((key, entry)) = self.entries.at_mut(slot) {
                let now = entry.memory(key);
                self.accounted = (self.accounted + now).saturating_sub(entry.accounted);
                entry.accounted = now;
            }
        }
        self.accounted
    }

    fn forget(&mut self, gone: Option<&Entry>) {
        self.accounted = self.accounted.saturating_sub(gone.map_or(0, |entry| entry.accounted));
    }

    /// The keys by their slot of a cluster. To be asked for the first time makes the index.
    pub fn by_slot(&mut self, slot_of: fn(&[u8]) -> u16) -> &SlotKeys {
        let entries = &self.entries;
        self.by_slot.get_or_insert_with(|| {
            let mut keys = SlotKeys::new(slot_of);
            entries.iter().for_each(|(key, _)| keys.add(key));
            Box::new(keys)
        })
    }

    /// Removes every key.
    pub fn clear(&mut self) {
        *self = Db::default();
    }
}

/// Slots, each once, in the order in which they came.
#[derive(Debug, Clone, Default)]
struct Slots {
    all: Vec<u32>,
    /// A bit for each slot: most slots that are added are in the set already, and the bit shows
    /// that with one memory access.
    bits: Vec<u64>,
}

impl Slots {
    fn add(&mut self, slot: u32) {
        let (word, bit) = Slots::place(slot);
        if word >= self.bits.len() {
            self.bits.resize((word + 1).next_power_of_two(), 0);
        }
        if self.bits[word] & bit == 0 {
            self.bits[word] |= bit;
            self.all.push(slot);
        }
    }

    /// Takes all of them out.
    fn take(&mut self) -> Vec<u32> {
        let all = std::mem::take(&mut self.all);
        for &slot in &all {
            let (word, bit) = Slots::place(slot);
            self.bits[word] &= !bit;
        }
        all
    }

    fn place(slot: u32) -> (usize, u64) {
        (slot as usize / 64, 1 << (slot % 64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keyspace::Str;

    #[test]
    fn keys_expire_in_order_and_are_accounted_once_whatever_slots_they_move_to() {
        let mut db = Db::default();
        let key = |n: i64| Bytes::from(n.to_string());
        for n in 0..1000 {
            db.insert(&key(n), Value::String(Str::new("value")), Some(2000 - n), Usage::default());
        }
        let accounted = db.memory();
        assert_eq!(db.account(), accounted);
        // So many go that the others move together.
        for n in (0..1000).filter(|n| n % 100 != 0) {
            assert!(db.remove(&key(n)).is_some());
        }
        let mut left = Vec::new();
        while let Some(when_ms) = db.next_expiry_ms() {
            let key = db.next_expired().expect("none was renewed").clone();
            let entry = db.get(&key).map(Entry::expires_ms);
            assert_eq!(entry, Some(Some(when_ms)), "{key:?} is told by its own time");
            left.push(when_ms);
            assert_eq!(db.memory(), accounted / 1000 * db.len());
            db.remove(&key);
        }
        assert_eq!(left, (0..10).rev().map(|n| 2000 - n * 100).collect::<Vec<_>>());
        assert_eq!((db.memory(), db.volatile_len()), (0, 0));
    }

    #[test]
    fn the_first_to_expire_is_known_after_any_changes() {
        let mut db = Db::default();
        // Steps of a fixed generator: few times, so that they repeat, one of them the earliest that
        // can be; and ever so often most keys go, so that the others move together.
        let mut state = 1u64;
        let mut draw = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        for step in 0..20_000 {
            let keys = if step / 2_000 % 2 == 0 { 300 } else { 5 };
            let key = Bytes::from(draw(keys).to_string());
            let when_ms = (draw(3) > 0).then(|| [i64::MIN, 1, 2, 3][draw(4) as usize]);
            match draw(4) {
                0 => drop(db.remove(&key)),
                1 => _ = db.set_expiry(&key, when_ms),
                _ => drop(db.insert(&key, Value::String(Str::new("v")), when_ms, Usage::default())),
            }
            if keys == 5 {
                _ = db.remove(draw(300).to_string().as_bytes());
            }
            let times = db.entries().iter().filter_map(|(_, entry)| entry.expires_ms());
            let first_ms = times.min();
            // No key expires before the returned time, and repeated calls find the first one.
            assert!(db.next_expiry_ms() <= first_ms && db.next_expiry_ms().is_some() == first_ms.is_some());
            let mut looks = db.clone();
            let found = (0..=looks.volatile_len()).find_map(|_| looks.next_expired().cloned());
            let found_ms = found.and_then(|key| db.get(&key)?.expires_ms());
            assert_eq!((found_ms, looks.next_expiry_ms()), (first_ms, first_ms), "after {step} steps");
            if draw(4) == 0 {
                db = looks;
            }
        }
    }

    #[test]
    fn what_a_key_takes_beside_its_bytes_stays_small() {
        // The table is the greater part of a million small keys.
        assert!(size_of::<(u32, u32, Option<(Blob, Entry)>)>() <= 104);
    }
}
