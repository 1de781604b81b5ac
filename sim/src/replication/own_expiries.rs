//! The keys that a writable replica expires without its master.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use crate::keyspace::ExpiryRule;

/// Keys to which clients of a writable replica have given an expiry. The master may not know them
/// and never delete them, so the replica does. A later change of a key is noticed only when its
/// time comes.
#[derive(Debug, Default)]
pub struct OwnExpiries {
    by_key: BTreeMap<(usize, Bytes), i64>,
    in_order: BTreeSet<(i64, usize, Bytes)>,
}

impl OwnExpiries {
    /// Records that a key of database `db` expires at `when_ms`, in milliseconds of the wall clock.
    pub fn note(&mut self, db: usize, key: &Bytes, when_ms: i64) {
        if let Some(old_ms) = self.by_key.insert((db, key.clone()), when_ms) {
            self.in_order.remove(&(old_ms, db, key.clone()));
        }
        self.in_order.insert((when_ms, db, key.clone()));
    }

    /// The time of the key that expires first, in milliseconds of the wall clock.
    pub fn next_ms(&self) -> Option<i64> {
        self.in_order.first().map(|(when_ms, ..)| *when_ms)
    }

    /// Takes the key that expires first, if its time is past.
    pub fn take_due(&mut self, rule: ExpiryRule) -> Option<(usize, Bytes)> {
        self.next_ms().filter(|when_ms| rule.is_past(*when_ms))?;
        let (_, db, key) = self.in_order.pop_first()?;
        self.by_key.remove(&(db, key.clone()));
        Some((db, key))
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Returns true if there are no keys.
    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    /// Removes all keys.
    pub fn clear(&mut self) {
        *self = OwnExpiries::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_due_in_the_order_of_their_last_times() {
        let mut own = OwnExpiries::default();
        assert_eq!(own.next_ms(), None);
        own.note(0, &"late".into(), 3_000);
        own.note(0, &"k".into(), 4_000);
        own.note(1, &"k".into(), 2_000);
        own.note(0, &"k".into(), 1_000);
        assert_eq!((own.len(), own.next_ms()), (3, Some(1_000)));
        for (now_ms, due, next_ms) in [
            (1_000, None, Some(1_000)),
            (1_001, Some((0, "k".into())), Some(2_000)),
            (1_001, None, Some(2_000)),
            (9_000, Some((1, "k".into())), Some(3_000)),
            (9_000, Some((0, "late".into())), None),
            (9_000, None, None),
        ] {
            assert_eq!(own.take_due(ExpiryRule::at(now_ms)), due, "at {now_ms}");
            assert_eq!(own.next_ms(), next_ms, "after {due:?}");
        }
        assert!(own.is_empty());
    }
}
