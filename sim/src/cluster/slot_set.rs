//! A set of slots, as the bus carries it: one bit for each slot.

use std::fmt;

use super::slot::SLOTS;

/// Bytes of a set on the wire.
pub(super) const SLOT_BYTES: usize = SLOTS as usize / 8;

/// A set of slots, 2,048 bytes long whatever its contents.
#[derive(Clone, PartialEq, Eq)]
pub struct SlotSet {
    bits: Box<[u8; SLOT_BYTES]>,
    count: u16,
}

impl Default for SlotSet {
    fn default() -> SlotSet {
        SlotSet { bits: Box::new([0; SLOT_BYTES]), count: 0 }
    }
}

impl fmt::Debug for SlotSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.ranges()).finish()
    }
}

impl SlotSet {
    /// Creates a set from its bits; the lowest bit of the first byte is slot 0.
    pub fn of(bytes: &[u8; SLOT_BYTES]) -> SlotSet {
        let words = bytes.as_chunks::<8>().0.iter();
        let count = words.map(|word| u64::from_le_bytes(*word).count_ones() as u16).sum();
        SlotSet { bits: Box::new(*bytes), count }
    }

    /// The bits, in the order of [`SlotSet::of`].
    pub fn bytes(&self) -> &[u8; SLOT_BYTES] {
        &self.bits
    }

    /// Returns the number of slots in the set, from 0 to 16,384.
    pub fn len(&self) -> u16 {
        self.count
    }

    /// Returns true if the set has no slot.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns true if the set has this slot. Panics for a slot above 16,383.
    pub fn has(&self, slot: u16) -> bool {
        self.bits[usize::from(slot / 8)] & (1 << (slot % 8)) != 0
    }

    /// Adds a slot; returns true if it was not in the set.
    pub fn add(&mut self, slot: u16) -> bool {
        let is_new = !self.has(slot);
        self.bits[usize::from(slot / 8)] |= 1 << (slot % 8);
        self.count += u16::from(is_new);
        is_new
    }

    /// Removes a slot; returns true if it was in the set.
    pub fn remove(&mut self, slot: u16) -> bool {
        let was = self.has(slot);
        self.bits[usize::from(slot / 8)] &= !(1 << (slot % 8));
        self.count -= u16::from(was);
        was
    }

    /// The slots in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u16> {
        self.runs().flat_map(|(first, last)| first..=last)
    }

    /// The first and the last slot of each run of consecutive slots.
    pub fn ranges(&self) -> Vec<(u16, u16)> {
        self.runs().collect()
    }

    /// The runs, found 64 slots at a time: a master has few runs of thousands of slots.
    pub(super) fn runs(&self) -> impl Iterator<Item = (u16, u16)> {
        let mut next = 0;
        std::iter::from_fn(move || {
            let first = self.next_with(next, true)?;
            next = self.next_with(first, false).unwrap_or(SLOTS);
            Some((first, next - 1))
        })
    }

    /// Returns the first slot from `from` on that is in the set, or not, as `wanted` says.
    fn next_with(&self, from: u16, wanted: bool) -> Option<u16> {
        let words = self.bits.as_chunks::<8>().0;
        let mut from_there = u64::MAX << (from % 64);
        for (at, word) in (0u16..).zip(words).skip(usize::from(from / 64)) {
            let word = u64::from_le_bytes(*word);
            let found = from_there & if wanted { word } else { !word };
            if found != 0 {
                return Some(at * 64 + found.trailing_zeros() as u16);
            }
            from_there = u64::MAX;
        }
        None
    }

    /// The runs in the notation of CLUSTER NODES, such as `0-2 9`.
    pub fn words(&self) -> String {
        let ranges = self.ranges().into_iter();
        let words = ranges.map(|(first, last)| match first == last {
            true => first.to_string(),
            false => format!("{first}-{last}"),
        });
        words.collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_counts_what_is_in_it_and_shows_it_as_ranges() {
        let mut set = SlotSet::default();
        for (slot, is_new) in [(0, true), (1, true), (2, true), (1, false), (9, true), (SLOTS - 1, true)] {
            assert_eq!(set.add(slot), is_new, "{slot}");
        }
        assert_eq!(set.words(), format!("0-2 9 {}", SLOTS - 1));
        assert_eq!((set.len(), set.ranges()), (5, vec![(0, 2), (9, 9), (SLOTS - 1, SLOTS - 1)]));
        assert!(set.remove(1) && !set.remove(1));
        assert_eq!((set.len(), set.ranges()[..2].to_vec()), (4, vec![(0, 0), (2, 2)]));
        assert_eq!((set.bytes()[0], set.bytes()[1]), (0b101, 0b10));
        assert_eq!(SlotSet::of(set.bytes()), set);
    }

    #[test]
    fn runs_may_end_anywhere_in_a_word() {
        for (first, last) in [(0, 0), (0, 63), (0, 64), (63, 64), (64, 127), (1, SLOTS - 1), (0, SLOTS - 1)] {
            let mut set = SlotSet::default();
            (first..=last).for_each(|slot| assert!(set.add(slot)));
            assert_eq!(set.ranges(), [(first, last)]);
            assert_eq!(set.iter().collect::<Vec<_>>(), (first..=last).collect::<Vec<_>>());
        }
        assert_eq!(SlotSet::default().ranges(), []);
    }
}
