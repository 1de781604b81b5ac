//! The positions of keys and values in a file, for mistakes that show only once the whole file is
//! understood.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

/// The file as a tree in which every key and every value knows its place.
pub(super) struct Places<'a, 'i>(&'a DeTable<'i>);

impl<'a, 'i> Places<'a, 'i> {
    /// Of a file, with a variant laid over it or not.
    pub(super) fn of(root: &'a DeTable<'i>) -> Places<'a, 'i> {
        Places(root)
    }

    /// Where the last key of a path is written, in bytes of the file. Items of arrays are counted
    /// from 0.
    ///
    /// What is written nowhere is a default, and the nearest table around it is where it could have
    /// been written.
    pub(super) fn of_key(&self, path: &[&str]) -> Range<usize> {
        self.find(path, |key, _| key)
    }

    /// Where the value at the end of a path is written.
    pub(super) fn of_value(&self, path: &[&str]) -> Range<usize> {
        self.find(path, |_, value| value)
    }

    fn find(&self, path: &[&str], choose: fn(Range<usize>, Range<usize>) -> Range<usize>) -> Range<usize> {
        let Some((first, rest)) = path.split_first() else { return 0..0 };
        let Some((key, mut value)) = self.0.get_key_value(*first) else { return 0..0 };
        let mut place = choose(key.span(), value.span());
        for step in rest {
            let (key, next) = match value.get_ref() {
                DeValue::Table(table) => match table.get_key_value(*step) {
                    Some((key, next)) => (key.span(), next),
                    None => break,
                },
                DeValue::Array(items) => match step.parse::<usize>().ok().and_then(|at| items.get(at)) {
                    Some(next) => (next.span(), next),
                    None => break,
                },
                _ => break,
            };
            value = next;
            place = choose(key, next.span());
        }
        place
    }
}
