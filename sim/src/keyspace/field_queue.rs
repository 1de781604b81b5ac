//! Queue of the hashes of a database that have fields with a time to live.
//!
//! A change of a hash updates its position only if a field expires earlier than before. A later
//! change, or the removal of the key, is noticed when the old time is checked.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

/// The keys of such hashes, each once.
#[derive(Debug, Clone, Default)]
pub(super) struct FieldQueue {
    /// Check time and key, sorted. No field of the key expires before its check time.
    order: BTreeSet<(i64, Bytes)>,
    by_key: BTreeMap<Bytes, i64>,
}

impl FieldQueue {
    /// Returns the next key to check, with its time.
    pub(super) fn first(&self) -> Option<(i64, &Bytes)> {
        self.order.first().map(|(look_ms, key)| (*look_ms, key))
    }

    /// Records that a field of the key expires at `when_ms`.
    pub(super) fn note(&mut self, key: &[u8], when_ms: i64) {
        if self.by_key.get(key).is_none_or(|look_ms| when_ms < *look_ms) {
            self.place(Bytes::copy_from_slice(key), when_ms);
        }
    }

    /// Moves the first key to the time at which its next field expires; `None` removes it.
    pub(super) fn postpone_first(&mut self, when_ms: Option<i64>) {
        let Some((_, key)) = self.order.pop_first() else { return };
        self.by_key.remove(&key);
        if let Some(when_ms) = when_ms {
            self.place(key, when_ms);
        }
    }

    fn place(&mut self, key: Bytes, when_ms: i64) {
        if let Some(old_ms) = self.by_key.insert(key.clone(), when_ms) {
            self.order.remove(&(old_ms, key.clone()));
        }
        self.order.insert((when_ms, key));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_checked_at_its_earliest_time() {
        let mut queue = FieldQueue::default();
        queue.note(b"a", 30);
        queue.note(b"b", 20);
        queue.note(b"a", 10);
        queue.note(b"a", 40);
        assert_eq!(queue.first(), Some((10, &"a".into())));
        queue.postpone_first(Some(40));
        assert_eq!(queue.first(), Some((20, &"b".into())));
        queue.postpone_first(None);
        assert_eq!(queue.first(), Some((40, &"a".into())));
        queue.postpone_first(None);
        assert_eq!(queue.first(), None);
    }
}
