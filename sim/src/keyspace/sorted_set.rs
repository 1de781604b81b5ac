//! A sorted set: finds members in O(1), ranks and scores in O(log n).

use std::ops::Range;

use super::{Dict, Encodings, Extreme, Ranked, Typed, Value, Walk};
use crate::blob::Blob;

/// The members and their scores.
#[derive(Debug, Clone, Default)]
pub struct SortedSet {
    scores: Dict<f64>,
    order: Ranked,
    /// Set once the compact encoding is outgrown. Redis never converts back, and SCAN shows the
    /// difference.
    large: bool,
}

impl SortedSet {
    /// Returns the number of members.
    pub fn len(&self) -> usize {
        self.scores.len()
    }

    /// Returns true if the set has no members.
    pub fn is_empty(&self) -> bool {
        self.scores.is_empty()
    }

    /// Sets the score of a member, adding the member if it is absent; returns the old score. The
    /// score must not be NaN.
    pub fn insert(&mut self, member: impl Into<Blob>, score: f64, encodings: &Encodings) -> Option<f64> {
        assert!(!score.is_nan(), "a score is a number");
        let member = member.into();
        // The compact form writes whole scores as integers, which have only one zero.
        let plain = |score: f64, large| if large { score } else { score + 0.0 };
        if let Some(old) = self.scores.get_mut(&member) {
            let score = plain(score, self.large);
            let was = std::mem::replace(old, score);
            // 0.0 and -0.0 are the same score; the stored one stays.
            if was == score {
                *old = was;
            } else {
                // Move the stored member: it may share its bytes with the table.
                let kept = self.order.remove(was, &member);
                self.order.insert(score, kept.expect("both halves hold the same members"));
            }
            return Some(was);
        }
        self.large |=
            self.len() >= encodings.sorted_set_entries_max || member.len() > encodings.sorted_set_value_max;
        let score = plain(score, self.large);
        self.scores.insert(member.clone(), score);
        self.order.insert(score, member);
        None
    }

    /// Makes the set large if so many members at once do not fit into the compact encoding, also if
    /// some of them are the same.
    pub fn expect(&mut self, members: usize, encodings: &Encodings) {
        self.large |= members > encodings.sorted_set_entries_max;
    }

    /// Builds a set in the general encoding from these members, each of which must occur once.
    pub fn large(members: impl IntoIterator<Item = (impl Into<Blob>, f64)>) -> SortedSet {
        let mut set = SortedSet { large: true, ..SortedSet::default() };
        for (member, score) in members {
            set.insert(member, score, &Encodings::default());
        }
        set
    }

    /// Switches to the general encoding for good.
    pub fn enlarge(&mut self) {
        self.large = true;
    }

    /// Makes the set compact if it is small enough.
    pub fn compact(&mut self, encodings: &Encodings) {
        let small = self.len() <= encodings.sorted_set_entries_max
            && self.iter().all(|(_, member)| member.len() <= encodings.sorted_set_value_max);
        if small {
            let members: Vec<(Blob, f64)> =
                self.iter().map(|(score, member)| (member.clone(), score)).collect();
            *self = SortedSet::default();
            for (member, score) in members {
                self.insert(member, score, encodings);
            }
        }
    }

    /// Removes a member; returns its score.
    pub fn remove(&mut self, member: &[u8]) -> Option<f64> {
        let (_, score) = self.scores.remove(member)?;
        let removed = self.order.remove(score, member);
        debug_assert!(removed.is_some(), "both halves hold the same members");
        Some(score)
    }

    /// Removes and returns the member at one end, with its score.
    pub fn pop(&mut self, from: Extreme) -> Option<(f64, Blob)> {
        let (score, member) = self.order.pop(from)?;
        let removed = self.scores.remove(&member);
        debug_assert!(removed.is_some(), "both halves hold the same members");
        Some((score, member))
    }

    /// Returns the score of a member.
    pub fn score(&self, member: &[u8]) -> Option<f64> {
        self.scores.get(member).copied()
    }

    /// Returns the number of members before this one.
    pub fn rank(&self, member: &[u8]) -> Option<usize> {
        self.order.rank(self.score(member)?, member)
    }

    /// Returns the member at a rank, with its score.
    pub fn get(&self, rank: usize) -> Option<(f64, &Blob)> {
        self.order.get(rank)
    }

    /// Returns the number of members before the first one for which `is_before` is false, like
    /// [`Ranked::partition`].
    pub fn partition(&self, is_before: impl FnMut(f64, &Blob) -> bool) -> usize {
        self.order.partition(is_before)
    }

    /// Returns the members with a rank in `ranks`, first to last, or last to first if `reversed`.
    pub fn range(&self, ranks: Range<usize>, reversed: bool) -> Walk<'_> {
        self.order.range(ranks, reversed)
    }

    /// Returns all members in order.
    pub fn iter(&self) -> Walk<'_> {
        self.range(0..self.len(), false)
    }

    /// Performs one step of an incremental scan, like [`Dict::scan`]. A compact set is visited in
    /// order, in one step.
    pub fn scan(&self, cursor: u64, mut visit: impl FnMut(&Blob, f64)) -> u64 {
        if self.large {
            return self.scores.scan(cursor, |member, score| visit(member, *score));
        }
        self.iter().for_each(|(score, member)| visit(member, score));
        0
    }

    /// Returns true if the set is small enough for the compact encoding, and always was.
    pub fn is_compact(&self) -> bool {
        !self.large
    }

    /// Returns the encoding's name in the reply of OBJECT ENCODING.
    pub fn encoding(&self) -> &'static str {
        if self.large { "skiplist" } else { "listpack" }
    }
}

impl Typed for SortedSet {
    fn of(value: &Value) -> Option<&SortedSet> {
        if let Value::SortedSet(set) = value { Some(set) } else { None }
    }
    fn of_mut(value: &mut Value) -> Option<&mut SortedSet> {
        if let Value::SortedSet(set) = value { Some(set) } else { None }
    }
    fn empty() -> Value {
        Value::SortedSet(Box::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> Encodings {
        Encodings { sorted_set_entries_max: 2, sorted_set_value_max: 4, ..Encodings::default() }
    }

    #[test]
    fn it_is_compact_until_it_outgrows_its_limits_and_never_again() {
        for (members, encoding) in [
            (&["a", "bbbb"][..], "listpack"),
            (&["ccccc"][..], "skiplist"),
            (&["a", "b", "c"][..], "skiplist"),
        ] {
            let mut set = SortedSet::default();
            for member in members {
                set.insert(*member, 1.0, &small());
                set.insert(*member, 2.0, &small());
            }
            assert_eq!((set.encoding(), set.len()), (encoding, members.len()), "{members:?}");
            members.iter().for_each(|member| assert_eq!(set.remove(member.as_bytes()), Some(2.0)));
            assert_eq!((set.encoding(), set.is_empty()), (encoding, true), "{members:?}");
        }
    }

    #[test]
    fn a_new_score_moves_a_member_and_the_other_zero_does_not_replace_the_first() {
        let mut set = SortedSet::default();
        for (member, score) in [("a", 1.0), ("b", 0.0), ("a", -1.0), ("b", -0.0)] {
            set.insert(member, score, &small());
        }
        assert_eq!((set.rank(b"a"), set.rank(b"b"), set.rank(b"c")), (Some(0), Some(1), None));
        assert!(set.score(b"b").is_some_and(|score| score.is_sign_positive()));
    }
}
