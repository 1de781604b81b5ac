//! The positions of keys and values in a file, for mistakes that become visible only after the
//! whole file is read.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

/// The file as a tree in which every key and every value has its position.
pub(super) struct Places<'a, 'i>(&'a DeTable<'i>);

impl<'a, 'i> Places<'a, 'i> {
    /// Takes the tree of a file, with or without a variant laid over it.
    pub(super) fn of(root: &'a DeTable<'i>) -> Places<'a, 'i> {
        Places(root)
    }

    /// Returns the position of the last key of a path, in bytes of the file. Items of arrays are
    /// counted from 0.
    ///
    /// A key that is not written has its default; its position is that of the nearest table in
    /// which it could be written.
    pub(super) fn of_key(&self, path: &[&str]) -> Range<usize> {
        self.find(path, |key, _| key)
    }

    /// Returns the position of the value at the end of a path.
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
