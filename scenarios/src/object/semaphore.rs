//! The semaphore: a string with the number of permits that are left.

use super::{Counts, Holding, Object, Value, exclusive};
use crate::history;

#[derive(Debug)]
pub(super) struct Semaphore {
    /// How many there are.
    pub(super) permits: u32,
}

impl Object for Semaphore {
    fn promises(&self) -> history::LockKind {
        history::LockKind::Semaphore { permits: self.permits }
    }

    /// The key does not contain the holders of permits: each change of their number belongs to the owner that made it.
    fn holding(&self, values: &[Value], before: &Counts, by: Option<&str>) -> Holding {
        let mut holding = exclusive::holding(values);
        holding.counts = match values.first() {
            Some(Value { content: super::Content::Text(left), .. }) => {
                let permits = i64::from(self.permits);
                moved(before, permits - left.parse().unwrap_or(permits), by)
            }
            _ => Counts::new(),
        };
        holding
    }
}

/// Who has how many permits when `taken` of them are out, and the owner that changed that is known.
fn moved(before: &Counts, taken: i64, by: Option<&str>) -> Counts {
    let mut counts = before.clone();
    let out: i64 = before.values().map(|count| i64::from(*count)).sum();
    let Some(name) = by else { return counts };
    let count = i64::from(counts.get(name).copied().unwrap_or(0)) + taken - out;
    counts.remove(name);
    if let Some(count) = u32::try_from(count).ok().filter(|count| *count > 0) {
        counts.insert(name.to_owned(), count);
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Content;

    #[test]
    fn permits_are_known_by_the_owner_that_took_them() {
        let mut counts = Counts::new();
        let rows = [
            ("2", Some("c1"), vec![("c1", 1)]),
            ("0", Some("c2"), vec![("c1", 1), ("c2", 2)]),
            ("-1", Some("c3"), vec![("c1", 1), ("c2", 2), ("c3", 1)]),
            // A change by an unknown owner leaves the permits of all owners as they are.
            ("1", None, vec![("c1", 1), ("c2", 2), ("c3", 1)]),
            ("0", Some("c1"), vec![("c2", 2), ("c3", 1)]),
        ];
        for (left, by, expected) in rows {
            let value = Value { content: Content::Text(left.to_owned()), expires_ms: None };
            counts = Semaphore { permits: 3 }.holding(&[value], &counts, by).counts;
            let expected = expected.into_iter().map(|(name, count)| (name.to_owned(), count));
            assert_eq!(counts, expected.collect(), "{left} left");
        }
    }
}
