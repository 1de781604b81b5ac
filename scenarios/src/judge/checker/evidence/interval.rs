//! Intervals of true time in which owners had a lock, and the overlaps between those of different
//! owners: the one sweep behind every question about mutual exclusion.

use std::time::Duration;

use lockstorm_world::time::True;

use crate::judge::history::{Lock, Mode, Owner};

/// An interval of true time in which an owner had a lock, by promise, belief or critical section.
pub(in crate::judge::checker) trait Interval {
    /// True if the owner still acted at the end, so that the end belongs to the interval. Then an
    /// interval that begins and ends at the same instant is not empty.
    const HAS_END: bool;

    fn lock(&self) -> Lock;
    fn owner(&self) -> Owner;
    fn mode(&self) -> Mode;
    fn from(&self) -> True;
    fn until(&self) -> True;
}

/// Implements [`Interval`] for a struct with fields of these names: `without_end` or `with_end`.
macro_rules! interval {
    ($kind:ty, without_end) => {
        $crate::judge::checker::evidence::interval::interval!($kind, false);
    };
    ($kind:ty, with_end) => {
        $crate::judge::checker::evidence::interval::interval!($kind, true);
    };
    ($kind:ty, $has_end:literal) => {
        impl $crate::judge::checker::evidence::interval::Interval for $kind {
            const HAS_END: bool = $has_end;

            fn lock(&self) -> Lock {
                self.lock
            }
            fn owner(&self) -> Owner {
                self.owner
            }
            fn mode(&self) -> Mode {
                self.mode
            }
            fn from(&self) -> True {
                self.from
            }
            fn until(&self) -> True {
                self.until
            }
        }
    };
}
pub(in crate::judge::checker) use interval;

/// Two intervals of different owners with an instant in common.
#[derive(Debug)]
pub(in crate::judge::checker) struct Overlap<'a, I> {
    /// The interval that began first.
    pub(in crate::judge::checker) first: &'a I,
    pub(in crate::judge::checker) second: &'a I,
    pub(in crate::judge::checker) from: True,
    pub(in crate::judge::checker) until: True,
}

impl<I: Interval> Overlap<'_, I> {
    pub(in crate::judge::checker) fn length(&self) -> Duration {
        self.until.since(self.from)
    }

    /// Returns true if the two would not overlap if one of them was this much earlier or later.
    pub(in crate::judge::checker) fn is_within(&self, tolerance: Duration) -> bool {
        let apart = self.first.until().since(self.from).min(self.second.until().since(self.first.from()));
        apart <= tolerance
    }
}

/// Returns all overlaps, in the order of their beginnings. The intervals must be sorted by lock and
/// beginning.
///
/// Two intervals overlap if they have more than an instant in common, or if one is an instant
/// within the other. Two that only touch, such as a hold that ends when the next one begins, do not
/// overlap.
pub(in crate::judge::checker) fn overlaps<I: Interval>(intervals: &[I]) -> Vec<Overlap<'_, I>> {
    debug_assert!(intervals.is_sorted_by_key(|interval| (interval.lock(), interval.from())));
    let mut live: Vec<&I> = Vec::new();
    let mut all = Vec::new();
    for second in intervals {
        live.retain(|first| first.lock() == second.lock() && first.until() > second.from());
        for first in &live {
            let shared = first.mode() == Mode::Shared && second.mode() == Mode::Shared;
            let until = first.until().min(second.until());
            let instant = I::HAS_END && first.from() < second.from() && second.from() == second.until();
            if first.owner() != second.owner() && !shared && (second.from() < until || instant) {
                all.push(Overlap { first: *first, second, from: second.from(), until });
            }
        }
        live.push(second);
    }
    all
}

/// Returns the longest overlap; the earliest of equally long ones.
pub(in crate::judge::checker) fn worst<'o, 'a, I: Interval>(
    overlaps: &'o [Overlap<'a, I>],
) -> Option<&'o Overlap<'a, I>> {
    overlaps.iter().rev().max_by_key(|overlap| overlap.length())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An interval of the first lock, between two milliseconds.
    macro_rules! stretch {
        ($kind:ident, $end:ident) => {
            #[derive(Debug)]
            struct $kind {
                lock: Lock,
                owner: Owner,
                mode: Mode,
                from: True,
                until: True,
            }
            interval!($kind, $end);

            impl $kind {
                fn of((owner, from, until): (u32, i64, i64)) -> Self {
                    let (lock, owner, mode) = (Lock(0), Owner(owner), Mode::Exclusive);
                    Self { lock, owner, mode, from: True::from_millis(from), until: True::from_millis(until) }
                }
            }
        };
    }
    stretch!(Held, without_end);
    stretch!(Acted, with_end);

    #[test]
    fn an_instant_within_another_interval_overlaps_only_where_ends_count() {
        for (second, held, acted) in [
            ((1, 5, 7), 1, 1),
            // An instant within the first interval, at its beginning and at its end.
            ((1, 5, 5), 0, 1),
            ((1, 0, 0), 0, 0),
            ((1, 10, 10), 0, 0),
            ((1, 10, 12), 0, 0),
            ((0, 5, 7), 0, 0),
        ] {
            let pair = [(0, 0, 10), second];
            assert_eq!(overlaps(&pair.map(Held::of)).len(), held, "{second:?}");
            assert_eq!(overlaps(&pair.map(Acted::of)).len(), acted, "{second:?}");
        }
    }
}
