//! Hashes: fields and their values, in order of insertion while they are few and small.

use bytes::Bytes;

use super::{Dict, Encodings, Typed, Value};
use crate::blob::Blob;

/// A hash. A small one is a list in order of insertion, like Redis's listpacks. One entry too many
/// or too long turns it into a table for good.
#[derive(Debug, Clone)]
pub struct Hash {
    fields: Fields,
}

#[derive(Debug, Clone)]
enum Fields {
    Listpack(Vec<(Blob, Blob)>),
    Table(Box<Dict<Blob>>),
}

impl Default for Hash {
    fn default() -> Hash {
        Hash { fields: Fields::Listpack(Vec::new()) }
    }
}

impl Hash {
    /// Returns the number of fields.
    pub fn len(&self) -> usize {
        match &self.fields {
            Fields::Listpack(list) => list.len(),
            Fields::Table(table) => table.len(),
        }
    }

    /// Returns true if the hash has no fields.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the value of a field.
    pub fn get(&self, field: &[u8]) -> Option<&Blob> {
        match &self.fields {
            Fields::Listpack(list) => list.iter().find(|(name, _)| **name == *field).map(|(_, value)| value),
            Fields::Table(table) => table.get(field),
        }
    }

    /// Returns true if the field exists.
    pub fn contains(&self, field: &[u8]) -> bool {
        self.get(field).is_some()
    }

    /// Sets a field, or replaces its value; returns true if the field is new.
    pub fn set(&mut self, field: &Bytes, value: impl Into<Blob>, encodings: &Encodings) -> bool {
        let value = value.into();
        if field.len().max(value.len()) > encodings.hash_value_max {
            self.spread();
        }
        match &mut self.fields {
            Fields::Table(table) => table.insert(field, value).is_none(),
            Fields::Listpack(list) => {
                let known = list.iter_mut().find(|(name, _)| **name == *field);
                let is_new = known.is_none();
                match known {
                    Some((_, old)) => *old = value,
                    None => list.push((field.into(), value)),
                }
                // The limit may have become lower since the last field was set.
                if list.len() > encodings.hash_entries_max {
                    self.spread();
                }
                is_new
            }
        }
    }

    /// Removes a field; returns its value.
    pub fn remove(&mut self, field: &[u8]) -> Option<Blob> {
        match &mut self.fields {
            Fields::Listpack(list) => {
                let at = list.iter().position(|(name, _)| **name == *field)?;
                Some(list.remove(at).1)
            }
            Fields::Table(table) => table.remove(field).map(|(_, value)| value),
        }
    }

    /// Turns the listpack into a table. It never becomes a listpack again.
    fn spread(&mut self) {
        if let Fields::Listpack(list) = &mut self.fields {
            let mut table = Box::<Dict<Blob>>::default();
            for (field, value) in list.drain(..) {
                table.insert(field, value);
            }
            self.fields = Fields::Table(table);
        }
    }

    /// Returns all fields and values.
    pub fn iter(&self) -> impl Iterator<Item = (&Blob, &Blob)> {
        let (list, table) = match &self.fields {
            Fields::Listpack(list) => (Some(list), None),
            Fields::Table(table) => (None, Some(table)),
        };
        let list = list.into_iter().flatten().map(|(field, value)| (field, value));
        list.chain(table.into_iter().flat_map(|table| table.iter()))
    }

    /// Returns some fields and values, like [`Dict::sample`].
    pub fn sample(&self, count: usize) -> impl Iterator<Item = (&Blob, &Blob)> {
        let (list, table) = match &self.fields {
            Fields::Listpack(list) => (Some(list), None),
            Fields::Table(table) => (None, Some(table)),
        };
        let list = list.into_iter().flat_map(move |list| list.iter().take(count));
        let table = table.into_iter().flat_map(move |table| table.sample(count));
        list.map(|(field, value)| (field, value)).chain(table)
    }

    /// Returns a field and its value chosen by `draw`, which gets a bound and returns an index
    /// below it.
    pub fn random(&self, mut draw: impl FnMut(usize) -> usize) -> Option<(&Blob, &Blob)> {
        match &self.fields {
            Fields::Listpack(list) if list.is_empty() => None,
            Fields::Listpack(list) => list.get(draw(list.len())).map(|(field, value)| (field, value)),
            Fields::Table(table) => table.random(draw),
        }
    }

    /// Performs one step of an incremental scan, like [`Dict::scan`]. A listpack is visited in one
    /// step.
    pub fn scan(&self, cursor: u64, mut visit: impl FnMut(&Blob, &Blob)) -> u64 {
        match &self.fields {
            Fields::Listpack(list) => {
                list.iter().for_each(|(field, value)| visit(field, value));
                0
            }
            Fields::Table(table) => table.scan(cursor, visit),
        }
    }

    /// Returns true if the hash is small enough for the compact encoding, and always was.
    pub fn is_compact(&self) -> bool {
        matches!(self.fields, Fields::Listpack(_))
    }

    /// Returns the encoding's name in the reply of OBJECT ENCODING.
    pub fn encoding(&self) -> &'static str {
        match self.fields {
            Fields::Listpack(_) => "listpack",
            Fields::Table(_) => "hashtable",
        }
    }
}

impl Typed for Hash {
    fn of(value: &Value) -> Option<&Hash> {
        if let Value::Hash(hash) = value { Some(hash) } else { None }
    }
    fn of_mut(value: &mut Value) -> Option<&mut Hash> {
        if let Value::Hash(hash) = value { Some(hash) } else { None }
    }
    fn empty() -> Value {
        Value::Hash(Hash::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_entry_too_many_or_too_long_makes_a_table_for_good() {
        let encodings = Encodings::default();
        let long = Bytes::from(vec![b'x'; 65]);
        let few: fn(usize) -> Bytes = |n| Bytes::from(n.to_string());
        for (entries, value, expected) in
            [(512, few(1), "listpack"), (513, few(1), "hashtable"), (1, long, "hashtable")]
        {
            let mut hash = Hash::default();
            (0..entries).for_each(|n| assert!(hash.set(&few(n), value.clone(), &encodings)));
            assert_eq!(hash.encoding(), expected, "{entries} entries");
            assert!(hash.iter().map(|(field, _)| field).eq(&(0..entries).map(few).collect::<Vec<_>>()));
            (1..entries).for_each(|n| assert_eq!(hash.remove(&few(n)), Some(Blob::from(&value))));
            assert_eq!((hash.encoding(), hash.len()), (expected, 1));
        }
    }
}
