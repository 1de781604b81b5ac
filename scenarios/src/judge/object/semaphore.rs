//! The semaphore: a string with the number of permits left.

use super::{Counts, Holding, Known, Object, Value, alone, exclusive};
use crate::judge::history;

#[derive(Debug)]
pub(super) struct Semaphore {
    /// The total number of permits.
    pub(super) permits: u32,
}

impl Object for Semaphore {
    fn promises(&self) -> history::LockKind {
        history::LockKind::Semaphore { permits: self.permits }
    }

    /// The key does not contain the holders, so each change of the number is credited to the owner
    /// that made it. A permit released by an owner that has none is an extra permit; the owner that
    /// takes it counts as a holder like any other.
    fn holding(&self, values: &[Value], before: &Known, by: Option<&str>) -> Holding {
        let holding = exclusive::holding(values);
        let Some(left) = values.first().and_then(Value::number) else {
            return Holding { holds: alone(Counts::new(), None), ..holding };
        };
        // The first owner to take a permit, or a process before, sets the semaphore to this number.
        let had = before.left.unwrap_or_else(|| self.permits.into());
        let expires_ms = values.first().and_then(|value| value.expires_ms);
        let counts = moved(&before.counts, had - left, by);
        Holding { holds: alone(counts, expires_ms), left: Some(left), ..holding }
    }
}

/// Returns the permits of each owner after `by` took `taken` permits; a negative number is a
/// release.
fn moved(before: &Counts, taken: i64, by: Option<&str>) -> Counts {
    let mut counts = before.clone();
    let Some(name) = by else { return counts };
    let count = i64::from(counts.get(name).copied().unwrap_or(0)).saturating_add(taken);
    counts.remove(name);
    if let Some(count) = u32::try_from(count).ok().filter(|count| *count > 0) {
        counts.insert(name.to_owned(), count);
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::object::Content;

    #[test]
    fn permits_are_known_by_the_owner_that_took_them() {
        let mut known = Known::default();
        let rows = [
            ("2", Some("c1"), vec![("c1", 1)]),
            ("0", Some("c2"), vec![("c1", 1), ("c2", 2)]),
            ("-1", Some("c3"), vec![("c1", 1), ("c2", 2), ("c3", 1)]),
            // A change by an unknown owner leaves the permits of all owners unchanged.
            ("1", None, vec![("c1", 1), ("c2", 2), ("c3", 1)]),
            ("2", Some("c1"), vec![("c2", 2), ("c3", 1)]),
            // Released by an owner that has none: one too many, and the owner that takes it is
            // counted.
            ("3", Some("c1"), vec![("c2", 2), ("c3", 1)]),
            ("2", Some("c4"), vec![("c2", 2), ("c3", 1), ("c4", 1)]),
        ];
        for (left, by, expected) in rows {
            let value = Value { content: Content::Text(left.to_owned()), ..Value::default() };
            let Holding { holds, left: now, .. } = Semaphore { permits: 3 }.holding(&[value], &known, by);
            let counts: Counts = holds.into_iter().map(|((name, _), hold)| (name, hold.count)).collect();
            let expected = expected.into_iter().map(|(name, count)| (name.to_owned(), count));
            assert_eq!(counts, expected.collect(), "{left} left");
            known = Known { counts, left: now, ..Known::default() };
        }
    }
}
