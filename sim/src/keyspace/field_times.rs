//! The times at which fields of a hash expire.

use std::collections::BTreeMap;

use super::ExpiryRule;
use crate::blob::Blob;

/// The fields of one hash that have a time to live, each with the wall-clock time in milliseconds
/// after which it has expired.
#[derive(Debug, Clone, Default)]
pub(super) struct FieldTimes {
    by_field: BTreeMap<Blob, Place>,
    order: BTreeMap<Place, Blob>,
    /// The number of times set so far.
    count: u64,
}

/// The position of a field in the order of expiry. Of fields with the same time, the one whose time
/// was set last comes first, as in Redis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    when_ms: i64,
    /// Counts down with each time that is set.
    rank: u64,
}

impl FieldTimes {
    /// Returns true if no field has a time.
    pub(super) fn is_empty(&self) -> bool {
        self.by_field.is_empty()
    }

    /// Returns the expiry time of a field.
    pub(super) fn get(&self, field: &[u8]) -> Option<i64> {
        self.by_field.get(field).map(|place| place.when_ms)
    }

    /// Sets the expiry time of a field; returns the old one.
    pub(super) fn set(&mut self, field: &[u8], when_ms: i64) -> Option<i64> {
        let old_ms = self.clear(field);
        self.count += 1;
        let place = Place { when_ms, rank: u64::MAX - self.count };
        let field = Blob::copy(field);
        self.by_field.insert(field.clone(), place);
        self.order.insert(place, field);
        old_ms
    }

    /// Removes the expiry time of a field; returns it.
    pub(super) fn clear(&mut self, field: &[u8]) -> Option<i64> {
        let place = self.by_field.remove(field)?;
        self.order.remove(&place);
        Some(place.when_ms)
    }

    /// Returns the field that expires first, with its time.
    pub(super) fn first(&self) -> Option<(i64, &Blob)> {
        self.order.first_key_value().map(|(place, field)| (place.when_ms, field))
    }

    /// Returns true if a field has a time and is past it.
    pub(super) fn is_past(&self, field: &[u8], rule: ExpiryRule) -> bool {
        self.get(field).is_some_and(|when_ms| rule.is_past(when_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_expire_in_the_order_of_their_times_and_the_last_set_first() {
        let mut times = FieldTimes::default();
        for (field, when_ms) in [("a", 20), ("b", 10), ("c", 20), ("d", 30)] {
            assert_eq!(times.set(field.as_bytes(), when_ms), None);
        }
        assert_eq!(times.set(b"d", 20), Some(30));
        assert!(times.is_past(b"b", ExpiryRule::at(11)) && !times.is_past(b"b", ExpiryRule::at(10)));
        let mut order = Vec::new();
        while let Some((when_ms, field)) = times.first() {
            let field = field.clone();
            assert_eq!(times.clear(&field), Some(when_ms));
            order.push(field);
        }
        assert_eq!(order, ["b", "d", "c", "a"].map(Blob::from));
        assert!(times.is_empty());
    }
}
