//! One database: keys, their values, and when they expire.

use std::collections::BTreeSet;

use bytes::Bytes;

use super::{Dict, Typed, Usage, Value, WrongType};

/// A key's value and its expiry.
#[derive(Debug, Clone)]
pub struct Entry {
    /// What the key holds.
    pub value: Value,
    /// The wall-clock time in milliseconds since the epoch after which the key is gone.
    pub expires_ms: Option<i64>,
    /// When the key was last used, and how often, for OBJECT and for eviction.
    pub usage: Usage,
    /// What [`Entry::memory`] was when it was last reckoned.
    reckoned: usize,
    /// The entry was given out to be changed since.
    unreckoned: bool,
}

impl Entry {
    /// Whether the key is past its time: at the very millisecond it is still there, as in Redis.
    pub fn is_expired(&self, now_ms: i64) -> bool {
        self.expires_ms.is_some_and(|when| now_ms > when)
    }
}

/// A numbered database. Reads and writes here see expired keys too: who asks decides what an expired key means, because on
/// a replica it is hidden and on a master it is deleted.
#[derive(Debug, Clone, Default)]
pub struct Db {
    entries: Dict<Entry>,
    /// Keys that expire, to draw from.
    volatile: Dict<()>,
    /// The same keys in the order in which they expire.
    expiries: BTreeSet<(i64, Bytes)>,
    /// Bytes of all keys, as last reckoned.
    reckoned: usize,
    /// Keys that may have changed since, each once.
    unreckoned: Vec<Bytes>,
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

    /// The key that expires first, and when, in milliseconds of the wall clock.
    pub fn next_expiry(&self) -> Option<(i64, &Bytes)> {
        self.expiries.first().map(|(when_ms, key)| (*when_ms, key))
    }

    /// All keys and entries, for scans, samples and snapshots.
    pub fn entries(&self) -> &Dict<Entry> {
        &self.entries
    }

    /// The entry of a key, noting that it is used now; `draw` as [`Usage::note`] wants it.
    pub fn used(&mut self, key: &[u8], now_ms: i64, draw: Option<u64>) -> Option<&Entry> {
        let entry = self.entries.get_mut(key)?;
        entry.usage.note(now_ms, draw);
        Some(entry)
    }

    /// The value of a key, to change in place, noting that it is used now.
    pub fn used_mut(&mut self, key: &[u8], now_ms: i64, draw: Option<u64>) -> Option<&mut Value> {
        self.mark(key);
        let entry = self.entries.get_mut(key)?;
        entry.usage.note(now_ms, draw);
        Some(&mut entry.value)
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
        self.mark(key);
        self.entries.get_mut(key).map(|entry| T::of_mut(&mut entry.value).ok_or(WrongType)).transpose()
    }

    /// Sets a key to a new entry; returns the one it replaces.
    pub fn insert(&mut self, key: Bytes, value: Value, expires_ms: Option<i64>) -> Option<Entry> {
        let old = self.entries.insert(
            key.clone(),
            Entry { value, expires_ms, usage: Usage::default(), reckoned: 0, unreckoned: false },
        );
        self.forget(old.as_ref());
        self.mark(&key);
        self.track(&key, old.as_ref().and_then(|old| old.expires_ms), expires_ms);
        old
    }

    fn track(&mut self, key: &Bytes, old_ms: Option<i64>, new_ms: Option<i64>) {
        if let Some(old_ms) = old_ms {
            self.expiries.remove(&(old_ms, key.clone()));
        }
        match new_ms {
            Some(new_ms) => {
                self.expiries.insert((new_ms, key.clone()));
                self.volatile.insert(key.clone(), ());
            }
            None if old_ms.is_some() => drop(self.volatile.remove(key)),
            None => {}
        }
    }

    /// Sets or clears the expiry of a key. Returns whether the key is there.
    pub fn set_expiry(&mut self, key: &Bytes, expires_ms: Option<i64>) -> bool {
        let Some(entry) = self.entries.get_mut(key) else { return false };
        let old_ms = std::mem::replace(&mut entry.expires_ms, expires_ms);
        self.mark(key);
        self.track(key, old_ms, expires_ms);
        true
    }

    /// Removes a key.
    pub fn remove(&mut self, key: &[u8]) -> Option<Entry> {
        let (key, entry) = self.entries.remove(key)?;
        self.forget(Some(&entry));
        self.track(&key, entry.expires_ms, None);
        Some(entry)
    }

    /// Bytes of all keys and values, as [`Entry::memory`] reckons them.
    pub fn memory(&self) -> usize {
        self.unreckoned.iter().filter_map(|key| Some((key, self.entries.get(key)?))).fold(
            self.reckoned,
            |sum, (key, entry)| {
                let change = if entry.unreckoned { entry.memory(key) } else { entry.reckoned };
                (sum + change).saturating_sub(entry.reckoned)
            },
        )
    }

    /// The same; what has changed is looked at, and need not be the next time.
    pub fn reckon(&mut self) -> usize {
        for key in std::mem::take(&mut self.unreckoned) {
            if let Some(entry) = self.entries.get_mut(&key).filter(|entry| entry.unreckoned) {
                let now = entry.memory(&key);
                self.reckoned = (self.reckoned + now).saturating_sub(entry.reckoned);
                (entry.reckoned, entry.unreckoned) = (now, false);
            }
        }
        self.reckoned
    }

    fn mark(&mut self, key: &[u8]) {
        // A key that comes and goes leaves a note each time: they are cleared away when they outnumber the keys.
        if self.unreckoned.len() > 2 * self.entries.len() + 64 {
            self.reckon();
        }
        let Some((key, _)) = self.entries.get_key_value(key).filter(|(_, entry)| !entry.unreckoned) else {
            return;
        };
        let key = key.clone();
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.unreckoned = true;
        }
        self.unreckoned.push(key);
    }

    fn forget(&mut self, gone: Option<&Entry>) {
        self.reckoned = self.reckoned.saturating_sub(gone.map_or(0, |entry| entry.reckoned));
    }

    /// Removes every key.
    pub fn clear(&mut self) {
        *self = Db::default();
    }
}
