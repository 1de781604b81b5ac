//! A hash table whose SCAN cursor keeps its guarantee while the table grows and shrinks.
//!
//! Entries live in numbered slots; each bucket chains its entries by slot number. A large table
//! grows by a few buckets with each added element, so that no insertion waits for a rehash of the
//! whole table. The technique is Witold Litwin's ("Linear hashing: a new tool for file and table
//! addressing", VLDB 1980).
//!
//! The cursor counts through bucket numbers with their bits reversed. Growing or shrinking the
//! table then splits or joins buckets without losing one that is not visited yet: a scan returns
//! every element that is present from the first call to the last at least once. The technique is
//! Pieter Noordhuis's, as Redis's documentation of SCAN describes it.

use xxhash_rust::xxh3::xxh3_64;

use super::segments::Segments;
use crate::blob::Blob;

const NONE: u32 = u32::MAX;

/// A table with at least this many buckets grows incrementally. A smaller one doubles in one step,
/// which takes no longer than a command.
const LARGE: usize = 1 << 10;

/// Buckets that each insertion adds while a table grows to twice its size: more than one, so that
/// growing ends.
const ADDED: usize = 2;

fn hash_of(key: &[u8]) -> u32 {
    xxh3_64(key) as u32
}

/// A map from byte strings to `V` with O(1) lookup, random choice and incremental scans.
///
/// Iteration follows the order of insertion until an element is removed. It always depends on the
/// operations alone.
#[derive(Debug, Clone)]
pub struct Dict<V> {
    /// First entry of each bucket. The number of buckets is 0 or a power of two; while a large
    /// table grows, it is between two powers of two.
    buckets: Segments<Link>,
    /// Hash bits that select the bucket: those of all numbers below the next power of two of the
    /// number of buckets.
    mask: u32,
    /// For each slot, the next entry of its bucket or the next free slot.
    links: Segments<Link>,
    slots: Segments<Option<(Blob, V)>>,
    free: u32,
    len: usize,
}

/// Slot of an entry, with its hash: most lookups then touch one bucket and one slot. Each touch
/// costs a memory access.
#[derive(Debug, Clone, Copy)]
struct Link {
    /// Low half of the hash: enough for the maximum number of buckets, and to tell most keys apart.
    hash: u32,
    /// Slot number.
    at: u32,
}

impl Link {
    const NONE: Link = Link { hash: 0, at: NONE };
}

impl<V> Default for Dict<V> {
    fn default() -> Self {
        let (buckets, links, slots) = Default::default();
        Dict { buckets, mask: 0, links, slots, free: NONE, len: 0 }
    }
}

impl<V> Dict<V> {
    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if the table has no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn find(&self, key: &[u8], hash: u32) -> Option<u32> {
        let mut link = *self.buckets.get(self.bucket_of(hash))?;
        while link.at != NONE {
            if link.hash == hash && self.slots[link.at as usize].as_ref().is_some_and(|(k, _)| **k == *key) {
                return Some(link.at);
            }
            link = self.links[link.at as usize];
        }
        None
    }

    /// Returns the bucket of a hash. In an empty table it does not exist.
    fn bucket_of(&self, hash: u32) -> usize {
        let bucket = (hash & self.mask) as usize;
        // The elements of a bucket that does not exist yet are in the bucket it will be split from.
        if bucket < self.buckets.len() { bucket } else { bucket & (self.mask >> 1) as usize }
    }

    /// Returns the value of `key`.
    pub fn get(&self, key: &[u8]) -> Option<&V> {
        let at = self.find(key, hash_of(key))?;
        self.slots[at as usize].as_ref().map(|(_, value)| value)
    }

    /// Returns the value of `key`, for changes in place.
    pub fn get_mut(&mut self, key: &[u8]) -> Option<&mut V> {
        let at = self.find(key, hash_of(key))?;
        self.slots[at as usize].as_mut().map(|(_, value)| value)
    }

    /// Returns the number of the slot of `key`. It is valid until [`Dict::compact`] is called.
    pub(super) fn slot_of(&self, key: &[u8]) -> Option<u32> {
        self.find(key, hash_of(key))
    }

    /// Returns the slot number of `key`, and its value for changes in place. The slot number is
    /// valid until [`Dict::compact`] is called.
    pub(super) fn get_slot_mut(&mut self, key: &[u8]) -> Option<(u32, &mut V)> {
        let at = self.find(key, hash_of(key))?;
        Some((at, self.slots[at as usize].as_mut().map(|(_, value)| value)?))
    }

    /// Returns the numbers and values of all full slots.
    pub(super) fn slots(&self) -> impl Iterator<Item = (u32, &V)> {
        let full = self.slots.iter().enumerate().filter_map(|(at, slot)| Some((at, slot.as_ref()?)));
        full.map(|(at, (_, value))| (at as u32, value))
    }

    /// Returns the entry in a slot. `None` if the slot is free.
    pub(super) fn at(&self, slot: u32) -> Option<(&Blob, &V)> {
        self.slots.get(slot as usize)?.as_ref().map(|(key, value)| (key, value))
    }

    /// Returns the key and the value in a slot, the value for changes in place.
    pub(super) fn at_mut(&mut self, slot: u32) -> Option<(&Blob, &mut V)> {
        self.slots.get_mut(slot as usize)?.as_mut().map(|(key, value)| (&*key, value))
    }

    /// Returns the stored key and its value.
    pub fn get_key_value(&self, key: &[u8]) -> Option<(&Blob, &V)> {
        let at = self.find(key, hash_of(key))?;
        self.slots[at as usize].as_ref().map(|(key, value)| (key, value))
    }

    /// Returns true if `key` is present.
    pub fn contains(&self, key: &[u8]) -> bool {
        self.find(key, hash_of(key)).is_some()
    }

    /// Sets `key` to `value`; returns the old value.
    pub fn insert(&mut self, key: impl AsRef<[u8]> + Into<Blob>, value: V) -> Option<V> {
        self.insert_slot(key, value).1
    }

    /// Sets `key` to `value`; returns its slot number and the old value.
    pub(super) fn insert_slot(&mut self, key: impl AsRef<[u8]> + Into<Blob>, value: V) -> (u32, Option<V>) {
        let hash = hash_of(key.as_ref());
        match self.find(key.as_ref(), hash) {
            Some(at) => (at, Some(self.replace(at, value))),
            None => (self.add(hash, key.into(), value), None),
        }
    }

    fn replace(&mut self, at: u32, value: V) -> V {
        let (_, old) = self.slots[at as usize].as_mut().expect("a found slot is full");
        std::mem::replace(old, value)
    }

    /// Adds a key that is not present; returns its slot number.
    fn add(&mut self, hash: u32, key: Blob, value: V) -> u32 {
        if self.len >= self.buckets.len() || self.grows() {
            self.grow();
        }
        let bucket = self.bucket_of(hash);
        let next = self.buckets[bucket];
        let at = if self.free == NONE {
            self.links.push(next);
            self.slots.push(Some((key, value)));
            u32::try_from(self.slots.len() - 1).expect("fewer than 2^32 elements")
        } else {
            let at = self.free;
            self.free = std::mem::replace(&mut self.links[at as usize], next).at;
            self.slots[at as usize] = Some((key, value));
            at
        };
        self.buckets[bucket] = Link { hash, at };
        self.len += 1;
        at
    }

    /// Returns the value of `key`. If the key is absent, inserts the value that `make` returns.
    pub fn get_or_insert_with(&mut self, key: &[u8], make: impl FnOnce() -> V) -> &mut V {
        let hash = hash_of(key);
        let at = self.find(key, hash).unwrap_or_else(|| self.add(hash, Blob::copy(key), make()));
        let (_, value) = self.slots[at as usize].as_mut().expect("a found slot is full");
        value
    }

    /// Removes `key`; returns the stored key and value.
    pub fn remove(&mut self, key: &[u8]) -> Option<(Blob, V)> {
        let (_, key, value) = self.take(key)?;
        if self.is_sparse() {
            self.compact();
        }
        Some((key, value))
    }

    /// Removes `key` without releasing memory; returns its slot number, the stored key and the
    /// value. The caller must call [`Dict::compact`] when [`Dict::is_sparse`] returns true.
    pub(super) fn take(&mut self, key: &[u8]) -> Option<(u32, Blob, V)> {
        let hash = hash_of(key);
        let at = self.find(key, hash)?;
        let bucket = self.bucket_of(hash);
        let next = std::mem::replace(&mut self.links[at as usize], Link { hash, at: self.free });
        let mut before = NONE;
        let mut link = self.buckets[bucket];
        while link.at != at {
            before = link.at;
            link = self.links[before as usize];
        }
        match before {
            NONE => self.buckets[bucket] = next,
            before => self.links[before as usize] = next,
        }
        let (key, value) = self.slots[at as usize].take()?;
        self.free = at;
        self.len -= 1;
        Some((at, key, value))
    }

    /// Returns true if the capacity is much larger than needed.
    pub(super) fn is_sparse(&self) -> bool {
        let empty = self.len == 0 && !self.slots.is_empty();
        empty || (self.buckets.len() > 64 && self.len * 8 < self.buckets.len())
    }

    /// Returns true while a large table is growing to twice as many buckets.
    fn grows(&self) -> bool {
        self.buckets.len() <= self.mask as usize
    }

    /// Adds buckets for more elements: a small table doubles, a large one adds [`ADDED`] buckets.
    #[inline(never)]
    fn grow(&mut self) {
        let buckets = self.buckets.len();
        if buckets < LARGE {
            let hashes = self.hashes();
            return self.link((buckets * 2).max(4), &hashes);
        }
        for _ in 0..ADDED {
            self.split();
            if !self.grows() {
                break;
            }
        }
    }

    /// Adds one bucket, and moves its entries there from the bucket that it splits.
    fn split(&mut self) {
        let new = self.buckets.len();
        self.mask = u32::MAX >> (new as u32).leading_zeros();
        let old = new & (self.mask >> 1) as usize;
        let (mut kept, mut moved) = (Link::NONE, Link::NONE);
        let mut link = self.buckets[old];
        while link.at != NONE {
            let heap = if (link.hash & self.mask) as usize == new { &mut moved } else { &mut kept };
            let next = std::mem::replace(&mut self.links[link.at as usize], *heap);
            *heap = link;
            link = next;
        }
        self.buckets[old] = kept;
        self.buckets.push(moved);
    }

    /// Returns the hash of the key in each slot.
    fn hashes(&self) -> Vec<u32> {
        let mut hashes = vec![0; self.slots.len()];
        for bucket in self.buckets.iter() {
            let mut link = *bucket;
            while link.at != NONE {
                hashes[link.at as usize] = link.hash;
                link = self.links[link.at as usize];
            }
        }
        hashes
    }

    /// Makes `buckets` buckets, and links every full slot into one. Free slots stay as they are.
    fn link(&mut self, buckets: usize, hashes: &[u32]) {
        self.buckets = Segments::of(Link::NONE, buckets);
        self.mask = buckets as u32 - 1;
        for (at, hash) in hashes.iter().copied().enumerate().filter(|(at, _)| self.slots[*at].is_some()) {
            let first = &mut self.buckets[hash as usize & (buckets - 1)];
            self.links[at] = std::mem::replace(first, Link { hash, at: at as u32 });
        }
    }

    /// Shrinks a table that was larger, which frees memory and avoids long scans of empty buckets.
    /// Elements change their slots.
    pub(super) fn compact(&mut self) {
        if self.len == 0 {
            *self = Dict::default();
            return;
        }
        let hashes = self.hashes().into_iter().zip(self.slots.iter());
        let hashes: Vec<u32> = hashes.filter(|(_, slot)| slot.is_some()).map(|(hash, _)| hash).collect();
        self.slots.retain(Option::is_some);
        self.links = Segments::of(Link::NONE, self.slots.len());
        self.free = NONE;
        self.link(self.len.next_power_of_two().max(4), &hashes);
    }

    /// Returns all elements, in the order of their slots.
    pub fn iter(&self) -> impl Iterator<Item = (&Blob, &V)> {
        self.slots.iter().filter_map(|slot| slot.as_ref().map(|(key, value)| (key, value)))
    }

    /// Returns `count` elements in the order of their slots, fewer if gaps get in the way. The cost
    /// does not grow with the table, although removals may have left gaps of any length.
    pub fn sample(&self, count: usize) -> impl Iterator<Item = (&Blob, &V)> {
        // At least one slot in eight is full if the table has more than 64 buckets. A smaller table
        // may have a single full slot, so look at all of its slots.
        let looked_at = 16 * count.max(1);
        let step = if self.slots.len() > 64 { (self.slots.len() / looked_at).max(1) } else { 1 };
        let slots = (0..self.slots.len()).step_by(step);
        slots.filter_map(|at| self.slots[at].as_ref().map(|(key, value)| (key, value))).take(count)
    }

    /// Performs one step of an incremental scan: calls `visit` for the elements of the bucket at
    /// `cursor`, and returns the next cursor, 0 at the end.
    pub fn scan(&self, cursor: u64, mut visit: impl FnMut(&Blob, &V)) -> u64 {
        if self.buckets.is_empty() {
            return 0;
        }
        // While the table grows, a bucket and the bucket split from it count as one.
        let mask = u64::from(if self.grows() { self.mask >> 1 } else { self.mask });
        let bucket = (cursor & mask) as usize;
        let split =
            (self.grows()).then_some(bucket + mask as usize + 1).filter(|at| *at < self.buckets.len());
        for bucket in [Some(bucket), split].into_iter().flatten() {
            let mut at = self.buckets[bucket].at;
            while at != NONE {
                if let Some((key, value)) = &self.slots[at as usize] {
                    visit(key, value);
                }
                at = self.links[at as usize].at;
            }
        }
        // Count up in the reversed bits: set the bits above the mask, reverse, add one, reverse
        // back.
        (cursor | !mask).reverse_bits().wrapping_add(1).reverse_bits()
    }

    /// Returns an element chosen by `draw`, which gets a bound and returns an index below it.
    pub fn random(&self, mut draw: impl FnMut(usize) -> usize) -> Option<(&Blob, &V)> {
        if self.len == 0 {
            return None;
        }
        // `compact` keeps free slots few: expect under nine draws, or up to 64 in a small table.
        loop {
            if let Some((key, value)) = &self.slots[draw(self.slots.len())] {
                return Some((key, value));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(n: u32) -> Blob {
        Blob::copy(n.to_string().as_bytes())
    }

    #[test]
    fn a_scan_returns_every_element_present_throughout_while_the_table_grows_and_shrinks() {
        for churn in [0u32, 3, 40] {
            let mut dict = Dict::default();
            for n in 0..1000 {
                dict.insert(key(n), ());
            }
            let (mut seen, mut cursor, mut round) = (std::collections::BTreeSet::new(), 0, 0);
            loop {
                cursor = dict.scan(cursor, |key, _| {
                    seen.insert(key.clone());
                });
                if cursor == 0 {
                    break;
                }
                // Elements 0..100 stay; the loop removes and adds others.
                for n in round * churn..(round + 1) * churn {
                    dict.remove(&key(100 + n % 900));
                    dict.insert(key(10_000 + n * 7 % 5_000), ());
                }
                round += 1;
            }
            for n in 0..100 {
                assert!(seen.contains(&key(n)), "element {n} was missed with churn {churn}");
            }
        }
    }

    #[test]
    fn a_large_table_grows_by_a_few_buckets_with_each_element() {
        let (mut dict, mut model) = (Dict::default(), std::collections::BTreeMap::new());
        let mut caught_growing = 0;
        for n in 0..40_000 {
            let before = dict.buckets.len();
            assert_eq!(dict.insert(key(n), n), model.insert(key(n), n));
            assert!(before < LARGE || dict.buckets.len() <= before + ADDED, "{n}");
            // Remove some elements between the insertions.
            if n % 3 == 0 {
                let gone = key(n / 2);
                assert_eq!(dict.remove(&gone).map(|(_, n)| n), model.remove(&gone), "{n}");
            }
            if n % 1_777 == 0 {
                caught_growing += u32::from(dict.grows());
                assert!(model.iter().all(|(key, n)| dict.get(key) == Some(n)), "{n}");
                let (mut seen, mut cursor) = (Vec::new(), 0);
                while {
                    cursor = dict.scan(cursor, |key, _| seen.push(key.clone()));
                    cursor != 0
                } {}
                seen.sort();
                assert!(seen.iter().eq(model.keys()), "each one once while nothing changes, {n}");
            }
        }
        assert!((1..20).contains(&caught_growing), "{caught_growing} looks while it grew, of 23");
        assert_eq!((dict.len(), dict.buckets.len()), (model.len(), 1 << 15));
    }

    #[test]
    fn a_sample_is_found_however_long_the_gaps_are() {
        let mut dict = Dict::default();
        (0..10_000).for_each(|n| _ = dict.insert(key(n), n));
        assert!(dict.sample(3).map(|(_, n)| *n).eq([0, 208, 416]));
        (0..8_000).for_each(|n| _ = dict.remove(&key(n)));
        assert_eq!(dict.sample(5).count(), 5);
        assert!(dict.sample(5).all(|(name, n)| *n >= 8_000 && *name == key(*n)));
        assert_eq!((dict.sample(0).count(), Dict::<()>::default().sample(5).count()), (0, 0));
    }

    /// Regression: a sample of one or two elements skipped slots of a table with up to 64 of them.
    #[test]
    fn a_sample_finds_the_only_element_of_a_small_table() {
        for kept in 0..64 {
            let mut dict = Dict::default();
            (0..64).for_each(|n| _ = dict.insert(key(n), n));
            (0..64).filter(|n| *n != kept).for_each(|n| _ = dict.remove(&key(n)));
            assert_eq!(dict.slots.len(), 64, "too small to be compacted");
            for count in 1..6 {
                assert!(dict.sample(count).map(|(_, n)| *n).eq([kept]), "{kept}, {count}");
            }
        }
    }

    #[test]
    fn removal_reuses_slots_and_an_emptied_table_gives_its_memory_back() {
        let mut dict = Dict::default();
        for n in 0..500 {
            dict.insert(key(n), n);
        }
        for n in 0..500 {
            assert_eq!(dict.remove(&key(n)).map(|(_, v)| v), Some(n));
            assert_eq!(dict.len(), 499 - n as usize);
            assert!(n == 499 || dict.get(&key(499)) == Some(&499));
        }
        assert_eq!((dict.slots.len(), dict.links.len(), dict.buckets.len()), (0, 0, 0));
    }
}
