//! A vector that grows without moving its elements.
//!
//! A plain vector of a million keys would be copied whole each time it doubles, while all clients
//! wait, and would leave behind as much memory as it had.

use std::ops::{Index, IndexMut};

/// Maximum bytes of a segment.
const SEGMENT: usize = 64 << 10;

/// Elements by number, from 0. The first segment is a vector that grows; further segments are
/// allocated in full.
#[derive(Debug, Clone)]
pub(super) struct Segments<T> {
    /// Separate from the others, because most tables are small.
    first: Vec<T>,
    rest: Vec<Vec<T>>,
    len: usize,
}

impl<T> Default for Segments<T> {
    fn default() -> Self {
        Segments { first: Vec::new(), rest: Vec::new(), len: 0 }
    }
}

impl<T> Segments<T> {
    /// Elements of a segment: a power of two, so that dividing a number by it is fast.
    const LEN: usize = 1 << (SEGMENT / size_of::<T>()).ilog2();

    /// Returns `count` copies of `element`.
    pub(super) fn of(element: T, count: usize) -> Segments<T>
    where
        T: Copy,
    {
        let mut segments = Segments::default();
        segments.first.reserve_exact(count.min(Self::LEN));
        (0..count).for_each(|_| segments.push(element));
        segments
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline]
    pub(super) fn get(&self, at: usize) -> Option<&T> {
        if at < Self::LEN {
            self.first.get(at)
        } else {
            self.rest.get(at / Self::LEN - 1)?.get(at % Self::LEN)
        }
    }

    #[inline]
    pub(super) fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        if at < Self::LEN {
            self.first.get_mut(at)
        } else {
            self.rest.get_mut(at / Self::LEN - 1)?.get_mut(at % Self::LEN)
        }
    }

    #[inline]
    pub(super) fn push(&mut self, element: T) {
        self.len += 1;
        if self.first.len() < Self::LEN {
            self.first.push(element);
        } else {
            self.push_behind(element);
        }
    }

    #[inline(never)]
    fn push_behind(&mut self, element: T) {
        if self.rest.last().is_none_or(|last| last.len() == Self::LEN) {
            self.rest.push(Vec::with_capacity(Self::LEN));
        }
        self.rest.last_mut().expect("just made").push(element);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.first.iter().chain(self.rest.iter().flatten())
    }

    /// Keeps the elements that `keep` selects, in no more memory than they need. Frees memory along
    /// the way.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        let Segments { first, rest, .. } = std::mem::take(self);
        for segment in std::iter::once(first).chain(rest) {
            segment.into_iter().filter(&mut keep).for_each(|element| self.push(element));
        }
        self.first.shrink_to_fit();
    }
}

impl<T> Index<usize> for Segments<T> {
    type Output = T;

    #[inline]
    fn index(&self, at: usize) -> &T {
        self.get(at).expect("an element that is there")
    }
}

impl<T> IndexMut<usize> for Segments<T> {
    #[inline]
    fn index_mut(&mut self, at: usize) -> &mut T {
        self.get_mut(at).expect("an element that is there")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEN: usize = Segments::<usize>::LEN;

    #[test]
    fn elements_stay_where_they_are_while_more_come() {
        let mut segments = Segments::default();
        segments.push(0);
        for n in 1..LEN * 3 {
            segments.push(n);
        }
        let places: Vec<*const usize> = segments.iter().map(std::ptr::from_ref).collect();
        for n in LEN * 3..LEN * 9 {
            segments.push(n);
        }
        assert!(segments.iter().take(LEN * 3).map(std::ptr::from_ref).eq(places));
        assert!(segments.iter().copied().eq(0..LEN * 9));
    }

    #[test]
    fn it_is_a_vector() {
        for len in [0, 1, LEN - 1, LEN, LEN + 1, 2 * LEN, 2 * LEN + 1] {
            let mut segments = Segments::of(0, len);
            (0..len).for_each(|n| segments[n] = n);
            assert_eq!((segments.len(), segments.is_empty()), (len, len == 0));
            assert!((0..len).all(|at| segments[at] == at), "{len}");
            assert_eq!((segments.get(len), segments.get(len + LEN)), (None, None), "{len}");
            if let Some(last) = len.checked_sub(1) {
                segments[last] += 1;
                assert_eq!(segments.get_mut(last), Some(&mut len.clone()));
            }
            segments.retain(|n| n % 3 == 0);
            assert!((0..segments.len()).all(|at| segments[at] == 3 * at || segments[at] == len), "{len}");
        }
    }
}
