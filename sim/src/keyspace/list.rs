//! A list: push and pop take constant time at both ends; any element is found by index.

use std::collections::VecDeque;

use super::{Typed, Value};
use crate::blob::Blob;

/// One of the two ends of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The head, index 0.
    Left,
    /// The tail, index -1.
    Right,
}

/// Up to this many elements are removed one by one, each at the cost of its distance from the
/// nearer end. More are removed in one pass.
const FEW: usize = 4;

/// The elements, head first.
#[derive(Debug, Clone, Default)]
pub struct List(VecDeque<Blob>);

impl List {
    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if the list has no elements.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds an element at an end.
    pub fn push(&mut self, end: End, element: impl Into<Blob>) {
        match end {
            End::Left => self.0.push_front(element.into()),
            End::Right => self.0.push_back(element.into()),
        }
    }

    /// Removes and returns the element at an end.
    pub fn pop(&mut self, end: End) -> Option<Blob> {
        match end {
            End::Left => self.0.pop_front(),
            End::Right => self.0.pop_back(),
        }
    }

    /// Returns the element at an index from the head.
    pub fn get(&self, index: usize) -> Option<&Blob> {
        self.0.get(index)
    }

    /// Replaces the element at an index from the head; returns true if the element exists.
    pub fn set(&mut self, index: usize, element: impl Into<Blob>) -> bool {
        self.0.get_mut(index).map(|old| *old = element.into()).is_some()
    }

    /// Inserts an element before the one at `index`. `index` may be the length.
    ///
    /// # Panics
    /// If `index` is larger than the length.
    pub fn insert(&mut self, index: usize, element: impl Into<Blob>) {
        self.0.insert(index, element.into());
    }

    /// Removes up to `limit` elements equal to `element`, those nearest to `end` first; returns
    /// their number.
    pub fn remove_equal(&mut self, element: &[u8], end: End, limit: usize) -> usize {
        let equal = |at: &usize| *self.0[*at] == *element;
        // The search ends at the last element to remove.
        let mut found: Vec<usize> = match end {
            End::Left => (0..self.0.len()).filter(equal).take(limit).collect(),
            End::Right => (0..self.0.len()).rev().filter(equal).take(limit).collect(),
        };
        let removed = found.len();
        if removed <= FEW {
            // Remove from the last to the first, so that the indices of the others stay valid.
            found.sort_unstable_by(|a, b| b.cmp(a));
            found.into_iter().for_each(|at| _ = self.0.remove(at));
            return removed;
        }
        found.sort_unstable();
        let (mut at, mut gone) = (0, found.into_iter().peekable());
        self.0.retain(|_| {
            at += 1;
            gone.next_if_eq(&(at - 1)).is_none()
        });
        removed
    }

    /// Keeps only the elements from index `start` to before index `end`.
    pub fn trim(&mut self, start: usize, end: usize) {
        self.0.truncate(end);
        self.0.drain(..start.min(self.0.len()));
    }

    /// Returns the elements from index `start` on, head first.
    pub fn iter_from(&self, start: usize) -> impl Iterator<Item = &Blob> {
        self.0.range(start.min(self.0.len())..)
    }

    /// Returns all elements, head first; reversible.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Blob> + ExactSizeIterator {
        self.0.iter()
    }

    /// Returns the encoding's name in the reply of OBJECT ENCODING.
    pub fn encoding(&self) -> &'static str {
        "quicklist"
    }
}

impl<T: Into<Blob>> FromIterator<T> for List {
    fn from_iter<I: IntoIterator<Item = T>>(elements: I) -> List {
        List(elements.into_iter().map(Into::into).collect())
    }
}

impl Typed for List {
    fn of(value: &Value) -> Option<&List> {
        if let Value::List(list) = value { Some(list) } else { None }
    }
    fn of_mut(value: &mut Value) -> Option<&mut List> {
        if let Value::List(list) = value { Some(list) } else { None }
    }
    fn empty() -> Value {
        Value::List(List::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_elements_are_removed_from_the_end_that_is_asked_for() {
        let all = ["a", "b", "a", "c", "a"];
        for (end, limit, expected) in [
            (End::Left, 1, "baca"),
            (End::Left, 2, "bca"),
            (End::Right, 1, "abac"),
            (End::Right, 2, "abc"),
            (End::Right, usize::MAX, "bc"),
        ] {
            let mut list: List = all.iter().map(|element| Blob::copy(element.as_bytes())).collect();
            let removed = list.remove_equal(b"a", end, limit);
            assert_eq!(removed, limit.min(3));
            let left: String = list.iter().map(|element| String::from_utf8_lossy(element)).collect();
            assert_eq!(left, expected, "{limit} from {end:?}");
        }
    }
}
