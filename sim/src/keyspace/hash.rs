//! Hashes: fields and their values, in order of insertion while they are few and small.

use bytes::Bytes;

use super::{Dict, Encodings, ExpiryRule, Typed, Value, field_times::FieldTimes};
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
    /// A field has or had a time to live. A hash without such fields does not pay for it.
    Timed(Box<Timed>),
}

/// The fields of a hash, and the times at which some of them expire.
#[derive(Debug, Clone)]
struct Timed {
    /// Without times of its own.
    hash: Hash,
    times: FieldTimes,
}

impl Default for Hash {
    fn default() -> Hash {
        Hash { fields: Fields::Listpack(Vec::new()) }
    }
}

/// The list and the table of a hash, one of which is `None`.
type Parts<'a> = (Option<&'a Vec<(Blob, Blob)>>, Option<&'a Dict<Blob>>);

impl Hash {
    /// Returns the number of fields.
    pub fn len(&self) -> usize {
        match &self.fields {
            Fields::Listpack(list) => list.len(),
            Fields::Table(table) => table.len(),
            Fields::Timed(timed) => timed.hash.len(),
        }
    }

    /// Returns true if the hash has no fields.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the value of a field, expired or not.
    pub fn get(&self, field: &[u8]) -> Option<&Blob> {
        match &self.fields {
            Fields::Listpack(list) => list.iter().find(|(name, _)| **name == *field).map(|(_, value)| value),
            Fields::Table(table) => table.get(field),
            Fields::Timed(timed) => timed.hash.get(field),
        }
    }

    /// Returns true if the field exists, expired or not.
    pub fn contains(&self, field: &[u8]) -> bool {
        self.get(field).is_some()
    }

    /// Sets a field, or replaces its value; returns true if the field is new. An old field keeps
    /// its time to live.
    pub fn set(&mut self, field: &Bytes, value: impl Into<Blob>, encodings: &Encodings) -> bool {
        let value = value.into();
        if field.len().max(value.len()) > encodings.hash_value_max {
            self.spread();
        }
        match &mut self.fields {
            Fields::Timed(timed) => timed.hash.set(field, value, encodings),
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
            Fields::Timed(timed) => {
                timed.times.clear(field);
                timed.hash.remove(field)
            }
        }
    }

    /// Turns the listpack into a table. It never becomes a listpack again.
    fn spread(&mut self) {
        match &mut self.fields {
            Fields::Listpack(list) => {
                let mut table = Box::<Dict<Blob>>::default();
                for (field, value) in list.drain(..) {
                    table.insert(field, value);
                }
                self.fields = Fields::Table(table);
            }
            Fields::Table(_) => {}
            Fields::Timed(timed) => timed.hash.spread(),
        }
    }

    /// Returns the list and the table that hold the fields, one of which is `None`.
    fn parts(&self) -> Parts<'_> {
        match &self.fields {
            Fields::Listpack(list) => (Some(list), None),
            Fields::Table(table) => (None, Some(&**table)),
            Fields::Timed(timed) => timed.hash.parts(),
        }
    }

    /// Returns all fields and values, including expired fields that are not removed yet.
    pub fn iter(&self) -> impl Iterator<Item = (&Blob, &Blob)> {
        let (list, table) = self.parts();
        let list = list.into_iter().flatten().map(|(field, value)| (field, value));
        list.chain(table.into_iter().flat_map(|table| table.iter()))
    }

    /// Returns some fields and values, like [`Dict::sample`].
    pub fn sample(&self, count: usize) -> impl Iterator<Item = (&Blob, &Blob)> {
        let (list, table) = self.parts();
        let list = list.into_iter().flat_map(move |list| list.iter().take(count));
        let table = table.into_iter().flat_map(move |table| table.sample(count));
        list.map(|(field, value)| (field, value)).chain(table)
    }

    /// Returns a field and its value chosen by `draw`, which gets a bound and returns an index
    /// below it.
    pub fn random(&self, mut draw: impl FnMut(usize) -> usize) -> Option<(&Blob, &Blob)> {
        match self.parts() {
            (Some(list), _) if list.is_empty() => None,
            (Some(list), _) => list.get(draw(list.len())).map(|(field, value)| (field, value)),
            (None, table) => table?.random(draw),
        }
    }

    /// Performs one step of an incremental scan, like [`Dict::scan`]. A listpack is visited in one
    /// step.
    pub fn scan(&self, cursor: u64, mut visit: impl FnMut(&Blob, &Blob)) -> u64 {
        let (list, table) = self.parts();
        list.into_iter().flatten().for_each(|(field, value)| visit(field, value));
        table.map_or(0, |table| table.scan(cursor, visit))
    }

    /// Returns true if the hash is small enough for the compact encoding, and always was.
    pub fn is_compact(&self) -> bool {
        self.parts().0.is_some()
    }

    /// Returns the encoding's name in the reply of OBJECT ENCODING.
    pub fn encoding(&self) -> &'static str {
        match &self.fields {
            Fields::Listpack(_) => "listpack",
            Fields::Table(_) => "hashtable",
            Fields::Timed(timed) if timed.hash.is_compact() => "listpackex",
            Fields::Timed(_) => "hashtable",
        }
    }

    /// Returns the expiry times of the fields; `None` for a hash that never had any.
    fn times(&self) -> Option<&FieldTimes> {
        if let Fields::Timed(timed) = &self.fields { Some(&timed.times) } else { None }
    }

    /// Returns true if a field has a time to live.
    pub fn has_times(&self) -> bool {
        self.times().is_some_and(|times| !times.is_empty())
    }

    /// Returns the wall-clock time in milliseconds after which a field has expired; `None` if it
    /// never expires.
    pub fn time_of(&self, field: &[u8]) -> Option<i64> {
        self.times()?.get(field)
    }

    /// Returns the expiry time of the field that expires first.
    pub fn first_time_ms(&self) -> Option<i64> {
        self.times()?.first().map(|(when_ms, _)| when_ms)
    }

    /// Returns the field that expired first, if one is past its time.
    pub fn next_expired(&self, rule: ExpiryRule) -> Option<&Blob> {
        let (when_ms, field) = self.times()?.first()?;
        rule.is_past(when_ms).then_some(field)
    }

    /// Removes the fields that are past their time.
    pub fn drop_expired(&mut self, rule: ExpiryRule) {
        while let Some(field) = self.next_expired(rule).cloned() {
            self.remove(&field);
        }
    }

    /// Returns true if a field is past its time.
    pub fn is_expired(&self, field: &[u8], rule: ExpiryRule) -> bool {
        self.times().is_some_and(|times| times.is_past(field, rule))
    }

    /// Returns the value of a field that has not expired.
    pub fn get_by(&self, field: &[u8], rule: ExpiryRule) -> Option<&Blob> {
        if self.is_expired(field, rule) { None } else { self.get(field) }
    }

    /// Returns the fields that have not expired, and their values.
    pub fn iter_by(&self, rule: ExpiryRule) -> impl Iterator<Item = (&Blob, &Blob)> {
        let times = self.times().filter(|_| self.next_expired(rule).is_some());
        self.iter().filter(move |(field, _)| !times.is_some_and(|times| times.is_past(field, rule)))
    }

    /// Sets the time at which an existing field expires. Redis keeps a listpack, whose fields it
    /// sorts by time; with `as_table` the hash becomes a table, as in Valkey.
    pub fn set_time(&mut self, field: &[u8], when_ms: i64, as_table: bool) {
        let timed = self.timed();
        if as_table {
            timed.hash.spread();
        }
        timed.times.set(field, when_ms);
        timed.sort(field);
    }

    /// Removes the expiry time of a field; returns it.
    pub fn clear_time(&mut self, field: &[u8]) -> Option<i64> {
        let Fields::Timed(timed) = &mut self.fields else { return None };
        let when_ms = timed.times.clear(field)?;
        timed.sort(field);
        Some(when_ms)
    }

    /// Gives the hash the encoding of fields with a time, before any field has one.
    pub fn expect_times(&mut self) {
        self.timed();
    }

    /// Turns the listpack into a table if so many fields at once do not fit into it, also if some
    /// of them are the same.
    pub fn expect(&mut self, fields: usize, encodings: &Encodings) {
        if fields > encodings.hash_entries_max {
            self.spread();
        }
    }

    fn timed(&mut self) -> &mut Timed {
        if !matches!(self.fields, Fields::Timed(_)) {
            let hash = std::mem::take(self);
            self.fields = Fields::Timed(Box::new(Timed { hash, times: FieldTimes::default() }));
        }
        match &mut self.fields {
            Fields::Timed(timed) => timed,
            _ => unreachable!("the fields were just given times"),
        }
    }
}

impl Timed {
    /// Moves a field of a listpack before the fields that expire at the same time or later. Fields
    /// without a time come last.
    fn sort(&mut self, field: &[u8]) {
        let Fields::Listpack(list) = &mut self.hash.fields else { return };
        let Some(at) = list.iter().position(|(name, _)| **name == *field) else { return };
        let entry = list.remove(at);
        let times = &self.times;
        let place = times.get(field).and_then(|when_ms| {
            list.iter().position(|(name, _)| times.get(name).is_none_or(|other_ms| other_ms >= when_ms))
        });
        let place = place.unwrap_or(list.len());
        list.insert(place, entry);
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

    /// The order is that of `redis-server` 8.2: by time, the last set first, and then the fields
    /// without a time.
    #[test]
    fn a_listpack_is_sorted_by_the_times_of_its_fields() {
        let encodings = Encodings::default();
        let mut hash = Hash::default();
        for field in ["a", "b", "c", "d", "e"] {
            hash.set(&field.into(), Blob::from("1"), &encodings);
        }
        let mut table = hash.clone();
        let order = |hash: &Hash| hash.iter().map(|(field, _)| field.to_bytes()).collect::<Vec<_>>();
        for (field, when_ms, expected) in [
            ("d", Some(300), "d a b c e"),
            ("b", Some(200), "b d a c e"),
            ("c", Some(200), "c b d a e"),
            ("a", Some(900), "c b d a e"),
            ("e", Some(900), "c b d e a"),
            ("a", None, "c b d e a"),
            ("b", None, "c d e a b"),
        ] {
            let set = |hash: &mut Hash, as_table| match when_ms {
                Some(when_ms) => hash.set_time(field.as_bytes(), when_ms, as_table),
                None => _ = hash.clear_time(field.as_bytes()),
            };
            set(&mut hash, false);
            set(&mut table, true);
            assert_eq!(order(&hash), expected.split(' ').collect::<Vec<_>>(), "after {field}");
            assert_eq!(order(&table), ["a", "b", "c", "d", "e"], "after {field}");
            assert_eq!(hash.time_of(field.as_bytes()), when_ms);
        }
        assert_eq!((hash.encoding(), table.encoding()), ("listpackex", "hashtable"));
        assert_eq!((hash.first_time_ms(), table.first_time_ms()), (Some(200), Some(200)));
    }

    #[test]
    fn an_expired_field_is_hidden_until_it_is_removed() {
        let encodings = Encodings::default();
        let mut hash = Hash::default();
        assert!(hash.set(&"a".into(), Blob::from("1"), &encodings));
        assert!(hash.set(&"b".into(), Blob::from("2"), &encodings));
        hash.set_time(b"a", 100, false);
        let (before, after) = (ExpiryRule::at(100), ExpiryRule::at(101));
        assert_eq!((hash.get_by(b"a", before).is_some(), hash.get_by(b"a", after)), (true, None));
        assert_eq!((hash.iter_by(before).count(), hash.iter_by(after).count(), hash.len()), (2, 1, 2));
        assert!(hash.next_expired(before).is_none() && hash.next_expired(after).is_some());
        assert!(!hash.set(&"a".into(), Blob::from("3"), &encodings), "it keeps its time");
        assert_eq!(
            (hash.time_of(b"a"), hash.remove(b"a"), hash.has_times()),
            (Some(100), Some("3".into()), false)
        );
    }
}
