//! One database: keys with their values and expiries.

use bytes::Bytes;

use super::{
    Dict, Draw, ExpiryRule, SlotKeys, Typed, Usage, Value, WrongType, expiry_queue::ExpiryQueue,
    field_queue::FieldQueue,
};
use crate::blob::Blob;

/// A key's value and its expiry.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The value of the key.
    pub value: Value,
    expires: Expires,
    /// Time of the last use, and frequency of use, for OBJECT and for eviction.
    pub usage: Usage,
    /// [`Entry::memory`] as last computed.
    accounted: usize,
}

/// Expiry time of a key, or never. Every key has one; it is half the size of an `Option<i64>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Expires(i64);

impl Expires {
    /// Marks a key without an expiry. The earliest time moves one millisecond later to make room,
    /// which makes no difference so long ago.
    const NEVER: Expires = Expires(i64::MIN);

    fn at(when_ms: Option<i64>) -> Expires {
        when_ms.map_or(Expires::NEVER, |when_ms| Expires(when_ms.max(i64::MIN + 1)))
    }

    fn when_ms(self) -> Option<i64> {
        (self != Expires::NEVER).then_some(self.0)
    }
}

impl Entry {
    /// Returns true if the key is past its expiry time.
    pub fn is_expired(&self, rule: ExpiryRule) -> bool {
        self.expires_ms().is_some_and(|when_ms| rule.is_past(when_ms))
    }

    /// Returns the wall-clock time in milliseconds since the epoch after which the key has expired.
    /// `None` if it never expires.
    pub fn expires_ms(&self) -> Option<i64> {
        self.expires.when_ms()
    }
}

/// Position of a key in its database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place(u32);

/// Result of a lookup that applies the expiry rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// The key does not exist.
    Missing,
    /// The key exists but is past its expiry time.
    Expired,
    /// The key exists and has not expired.
    Live(Place),
}

/// A numbered database. All methods but [`Db::find_by`] include expired keys.
#[derive(Debug, Clone, Default)]
pub struct Db {
    entries: Dict<Entry>,
    /// Keys with an expiry, for random samples.
    volatile: Dict<()>,
    /// Queue of the volatile keys by expiry time.
    expiries: ExpiryQueue,
    /// Queue of the hashes that have fields with a time to live.
    timed: FieldQueue,
    /// Bytes of all keys, as last computed.
    accounted: usize,
    /// Slots of `entries` whose keys may have changed since the last [`Db::account`].
    unaccounted: Slots,
    /// Index of the keys by cluster slot; built on first use.
    by_slot: Option<Box<SlotKeys>>,
}

impl Db {
    /// Returns the number of keys, including expired keys that are not removed yet.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns true if the database holds no key.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the number of keys with an expiry.
    pub fn volatile_len(&self) -> usize {
        self.volatile.len()
    }

    /// Returns the keys with an expiry, for sampling.
    pub fn volatile(&self) -> &Dict<()> {
        &self.volatile
    }

    /// Returns the wall-clock time in milliseconds at which to check for an expired key. No key
    /// expires earlier.
    pub fn next_expiry_ms(&self) -> Option<i64> {
        self.expiries.first().map(|(when_ms, _)| when_ms)
    }

    /// Checks the key that is due at [`Db::next_expiry_ms`], and returns it if it expires then. If
    /// its expiry was postponed, moves it to its new time in the queue and returns `None`.
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

    /// Moves the key that [`Db::next_expired`] has returned to a later check time.
    pub fn postpone_expired(&mut self, when_ms: i64) {
        self.expiries.postpone_first(when_ms);
    }

    /// Moves the hash that [`Db::next_timed`] has returned to a later check time.
    pub fn postpone_timed(&mut self, when_ms: i64) {
        self.timed.postpone_first(Some(when_ms));
    }

    /// Returns the wall-clock time in milliseconds at which to check for an expired field of a
    /// hash. No field expires earlier.
    pub fn next_field_ms(&self) -> Option<i64> {
        self.timed.first().map(|(when_ms, _)| when_ms)
    }

    /// Checks the hash that is due at [`Db::next_field_ms`], and returns its key if a field expires
    /// then. Otherwise moves the hash to the time of its first field in the queue.
    pub fn next_timed(&mut self) -> Option<Bytes> {
        let (look_ms, key) = self.timed.first()?;
        let first_ms = self.entries.get(key).and_then(|entry| entry.value.first_field_ms());
        if first_ms.is_some_and(|first_ms| first_ms <= look_ms) {
            return Some(key.clone());
        }
        self.timed.postpone_first(first_ms);
        None
    }

    /// Records that a field of the hash at `key` expires at `when_ms`. Storing a whole hash does so
    /// by itself.
    pub fn note_field_time(&mut self, key: &[u8], when_ms: i64) {
        self.timed.note(key, when_ms);
    }

    /// Returns all keys and entries, for scans, samples and snapshots.
    pub fn entries(&self) -> &Dict<Entry> {
        &self.entries
    }

    /// Returns the place of a key. The place is valid until a key is added or removed.
    pub fn find(&self, key: &[u8]) -> Option<Place> {
        self.entries.slot_of(key).map(Place)
    }

    /// Finds the place of a key, unless the key is past its expiry time.
    pub fn find_by(&self, key: &[u8], rule: ExpiryRule) -> Found {
        match self.find(key) {
            None => Found::Missing,
            Some(place) if self.at(place).is_expired(rule) => Found::Expired,
            Some(place) => Found::Live(place),
        }
    }

    /// Returns the entry at a place.
    ///
    /// # Panics
    /// If the place is empty.
    pub fn at(&self, place: Place) -> &Entry {
        self.entries.at(place.0).expect("the place of a key").1
    }

    /// Updates the LRU and LFU data of the entry at a place, and returns the entry. `draw` is the
    /// argument of [`Usage::note`].
    ///
    /// # Panics
    /// If the place is empty.
    pub fn touched(&mut self, place: Place, now_ms: i64, draw: Option<Draw>) -> &Entry {
        let (_, entry) = self.entries.at_mut(place.0).expect("the place of a key");
        entry.usage.note(now_ms, draw);
        entry
    }

    /// Returns the value at a place for changes.
    ///
    /// # Panics
    /// If the place is empty.
    pub fn value_mut(&mut self, place: Place) -> &mut Value {
        self.unaccounted.add(place.0);
        &mut self.entries.at_mut(place.0).expect("the place of a key").1.value
    }

    /// Updates the LRU and LFU data of the entry at a place, and returns its value for changes.
    ///
    /// # Panics
    /// If the place is empty.
    pub fn touched_mut(&mut self, place: Place, now_ms: i64, draw: Option<Draw>) -> &mut Value {
        let (_, entry) = self.entries.at_mut(place.0).expect("the place of a key");
        self.unaccounted.add(place.0);
        entry.usage.note(now_ms, draw);
        &mut entry.value
    }

    /// Returns true if the key exists, expired or not.
    pub fn contains(&self, key: &[u8]) -> bool {
        self.entries.contains(key)
    }

    /// Returns the entry of a key, expired or not.
    pub fn get(&self, key: &[u8]) -> Option<&Entry> {
        self.entries.get(key)
    }

    /// Returns the value of a key as type `T`, for commands that sample it or combine several.
    ///
    /// # Errors
    /// [`WrongType`] if the key holds another type.
    pub fn typed<T: Typed>(&self, key: &[u8]) -> Result<Option<&T>, WrongType> {
        self.entries.get(key).map(|entry| T::of(&entry.value).ok_or(WrongType)).transpose()
    }

    /// Returns the value of a key as type `T`, for changes in place.
    ///
    /// # Errors
    /// [`WrongType`] if the key holds another type.
    pub fn typed_mut<T: Typed>(&mut self, key: &[u8]) -> Result<Option<&mut T>, WrongType> {
        let Some((slot, entry)) = self.entries.get_slot_mut(key) else { return Ok(None) };
        self.unaccounted.add(slot);
        T::of_mut(&mut entry.value).ok_or(WrongType).map(Some)
    }

    /// Sets a key to a new entry with this usage; returns the replaced entry.
    pub fn insert<K: AsRef<[u8]> + Into<Blob> + Copy>(
        &mut self,
        key: K,
        value: Value,
        expires_ms: Option<i64>,
        usage: Usage,
    ) -> Option<Entry> {
        if let Some(when_ms) = value.first_field_ms() {
            self.timed.note(key.as_ref(), when_ms);
        }
        let entry = Entry { value, expires: Expires::at(expires_ms), usage, accounted: 0 };
        let (slot, old) = self.entries.insert_slot(key, entry);
        self.note_set(key, slot, old.as_ref(), expires_ms);
        old
    }

    /// Sets the key at a place to a new entry, like [`Db::insert`].
    ///
    /// # Panics
    /// If the place is empty.
    pub fn replace(
        &mut self,
        place: Place,
        key: &Bytes,
        value: Value,
        expires_ms: Option<i64>,
        usage: Usage,
    ) -> Entry {
        if let Some(when_ms) = value.first_field_ms() {
            self.timed.note(key, when_ms);
        }
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
        // A renewed lease keeps its position in the queue; `next_expired` moves it later.
        if old_ms.zip(new_ms).is_none_or(|(old_ms, new_ms)| new_ms < old_ms) {
            self.expiries.set(slot, new_ms);
        }
        match (old_ms, new_ms) {
            (None, Some(_)) => drop(self.volatile.insert(key, ())),
            (Some(_), None) => drop(self.volatile.remove(key.as_ref())),
            _ => {}
        }
    }

    /// Sets the usage of a key. Does nothing if the key does not exist.
    pub fn set_usage(&mut self, key: &[u8], usage: Usage) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.usage = usage;
        }
    }

    /// Sets or clears the expiry of a key. Returns true if the key exists.
    pub fn set_expiry(&mut self, key: &Bytes, expires_ms: Option<i64>) -> bool {
        let Some((slot, entry)) = self.entries.get_slot_mut(key) else { return false };
        let old_ms = entry.expires_ms();
        entry.expires = Expires::at(expires_ms);
        let new_ms = entry.expires_ms();
        self.unaccounted.add(slot);
        self.track(key, slot, old_ms, new_ms);
        true
    }

    /// Removes a key and returns its entry.
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

    /// Returns the bytes of all keys and values, by [`Entry::memory`].
    pub fn memory(&self) -> usize {
        let changed = self.unaccounted.all.iter().filter_map(|&slot| self.entries.at(slot));
        changed.fold(self.accounted, |sum, (key, entry)| {
            (sum + entry.memory(key)).saturating_sub(entry.accounted)
        })
    }

    /// Computes [`Db::memory`] and stores the result, so that the next call visits only changed
    /// keys.
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

    /// Returns the keys by cluster slot. The first call builds the index.
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

/// Set of slots, in order of insertion.
#[derive(Debug, Clone, Default)]
struct Slots {
    all: Vec<u32>,
    /// A bit for each slot: most slots that are added are in the set already, and the bit shows it
    /// with one memory access.
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

    /// Removes and returns all slots.
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
        // Remove enough keys that the dict compacts, which moves the remaining keys to other slots.
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
        // The draws come from a fixed generator. The times are few, so that they repeat; one is the
        // earliest possible time. In every second stretch most keys are removed, so that the dict
        // compacts.
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
        // The table takes most of the memory of a million small keys.
        assert!(size_of::<(u32, u32, Option<(Blob, Entry)>)>() <= 104);
    }
}
