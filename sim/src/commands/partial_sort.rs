//! Sorts a part of a sequence, so that equal elements get the same positions as in Redis.
//!
//! Source: J. L. Bentley and M. D. McIlroy, "Engineering a Sort Function", 1993. Parts without a
//! wanted position stay unsorted.

use std::{cmp::Ordering, ops::Range};

/// Shorter sequences are sorted by insertion.
const SHORT: usize = 7;
/// In longer sequences the pivot is the median of nine.
const LONG: usize = 40;

/// Sorts `items` until the positions in `wanted` hold the same elements as after a full sort. Equal
/// elements do not keep their order.
pub(super) fn partial_sort_by<T>(
    items: &mut [T],
    wanted: Range<usize>,
    mut compare: impl FnMut(&T, &T) -> Ordering,
) {
    let mut parts = vec![(0, items.len())];
    while let Some((start, end)) = parts.pop() {
        if end <= wanted.start || start >= wanted.end {
            continue;
        }
        let slice = &mut items[start..end];
        if slice.len() < SHORT {
            for next in 1..slice.len() {
                let mut at = next;
                while at > 0 && compare(&slice[at - 1], &slice[at]).is_gt() {
                    slice.swap(at - 1, at);
                    at -= 1;
                }
            }
            continue;
        }
        let (smaller, larger) = partition(slice, &mut compare);
        if larger > 1 {
            parts.push((end - larger, end));
        }
        if smaller > 1 {
            parts.push((start, start + smaller));
        }
    }
}

/// Moves elements smaller than a pivot to the front and larger ones to the end; returns the number
/// of each.
fn partition<T>(items: &mut [T], compare: &mut impl FnMut(&T, &T) -> Ordering) -> (usize, usize) {
    let len = items.len();
    let pivot = pivot(items, compare);
    items.swap(0, pivot);
    // Elements equal to the pivot gather at both ends: before `low_equal` and after `high_equal`.
    let (mut low_equal, mut low) = (1, 1);
    let (mut high_equal, mut high) = (len, len);
    loop {
        while low < high {
            match compare(&items[low], &items[0]) {
                Ordering::Greater => break,
                Ordering::Equal => {
                    items.swap(low_equal, low);
                    low_equal += 1;
                }
                Ordering::Less => {}
            }
            low += 1;
        }
        while low < high {
            match compare(&items[high - 1], &items[0]) {
                Ordering::Less => break,
                Ordering::Equal => {
                    items.swap(high - 1, high_equal - 1);
                    high_equal -= 1;
                }
                Ordering::Greater => {}
            }
            high -= 1;
        }
        if low >= high {
            break;
        }
        items.swap(low, high - 1);
        low += 1;
        high -= 1;
    }
    // Move the equal elements from the ends to the middle.
    let (smaller, larger) = (low - low_equal, high_equal - high);
    let moved = low_equal.min(smaller);
    (0..moved).for_each(|at| items.swap(at, low - moved + at));
    let moved = larger.min(len - high_equal);
    (0..moved).for_each(|at| items.swap(low + at, len - moved + at));
    (smaller, larger)
}

fn pivot<T>(items: &[T], compare: &mut impl FnMut(&T, &T) -> Ordering) -> usize {
    let (len, mut first, mut middle, mut last) = (items.len(), 0, items.len() / 2, items.len() - 1);
    if len == SHORT {
        return middle;
    }
    let mut median = |a: usize, b: usize, c: usize| {
        let mut less = |one: usize, other: usize| compare(&items[one], &items[other]).is_lt();
        if less(a, b) {
            if less(b, c) {
                b
            } else if less(a, c) {
                c
            } else {
                a
            }
        } else if less(c, b) {
            b
        } else if less(a, c) {
            a
        } else {
            c
        }
    };
    if len > LONG {
        let step = len / 8;
        first = median(first, first + step, first + 2 * step);
        middle = median(middle - step, middle, middle + step);
        last = median(last - 2 * step, last - step, last);
    }
    median(first, middle, last)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::partial_sort_by;

    proptest! {
        #[test]
        fn the_wanted_places_are_as_in_a_whole_sort(
            items in prop::collection::vec(0u8..20, 0..200),
            start in 0usize..200,
            len in 0usize..200,
        ) {
            let (start, end) = (start.min(items.len()), (start + len).min(items.len()));
            let mut sorted = items.clone();
            sorted.sort_unstable();
            let mut partly = items;
            partial_sort_by(&mut partly, start..end, |a, b| a.cmp(b));
            prop_assert_eq!(&partly[start..end], &sorted[start..end]);
            partly.sort_unstable();
            prop_assert_eq!(partly, sorted);
        }
    }
}
