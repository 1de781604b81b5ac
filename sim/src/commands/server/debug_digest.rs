//! The digest of data for DEBUG DIGEST: equal for equal data, regardless of the order in memory.
//!
//! Source: the replies of `redis-server` 7.0, which are the reference for every type.

use sha1_smol::Sha1;

use crate::keyspace::{Db, Entry, Value};

/// The SHA-1 that identifies the data of a key, a database or a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Digest([u8; 20]);

impl Digest {
    /// Adds an element of an unordered value.
    fn add(&mut self, bytes: &[u8]) {
        let hash = Sha1::from(bytes).digest().bytes();
        self.0.iter_mut().zip(hash).for_each(|(own, other)| *own ^= other);
    }

    /// Adds an element of an ordered value.
    fn append(&mut self, bytes: &[u8]) {
        self.add(bytes);
        self.0 = Sha1::from(self.0).digest().bytes();
    }

    /// Returns the digest of all databases.
    pub(super) fn of_all(dbs: &[Db]) -> Digest {
        let mut all = Digest::default();
        for (number, db) in dbs.iter().enumerate().filter(|(_, db)| !db.is_empty()) {
            all.append(&(number as u32).to_be_bytes());
            for (key, entry) in db.entries().iter() {
                let mut one = Digest::default();
                one.append(key);
                one.value(entry);
                all.add(&one.0);
            }
        }
        all
    }

    /// Returns the digest of one value, without its key.
    pub(super) fn of(entry: &Entry) -> Digest {
        let mut one = Digest::default();
        one.value(entry);
        one
    }

    fn value(&mut self, entry: &Entry) {
        let number: u32 = match &entry.value {
            Value::String(_) => 0,
            Value::List(_) => 1,
            Value::Set(_) => 2,
            Value::SortedSet(_) => 3,
            Value::Hash(_) => 4,
            Value::Stream(_) => 6,
        };
        self.append(&number.to_be_bytes());
        match &entry.value {
            Value::String(text) => self.append(text.bytes()),
            Value::List(list) => list.iter().for_each(|element| self.append(element)),
            Value::Set(set) => set.iter().for_each(|member| self.add(&member)),
            Value::SortedSet(sorted) => {
                for (score, member) in sorted.iter() {
                    self.pair(member, crate::resp::format_double(score).as_bytes());
                }
            }
            Value::Hash(hash) => hash.iter().for_each(|(field, value)| self.pair(field, value)),
            Value::Stream(stream) => {
                for entry in stream.log.iter() {
                    let id = entry.id();
                    self.append(format!("{}.{}", id.ms, id.seq).as_bytes());
                    for (field, value) in entry.pairs() {
                        self.append(&field);
                        self.append(&value);
                    }
                }
            }
        }
        if entry.expires_ms().is_some() {
            self.add(b"!!expire!!");
        }
    }

    /// Adds two associated values; the order of such pairs does not matter.
    fn pair(&mut self, one: &[u8], other: &[u8]) {
        let mut both = Digest::default();
        both.append(one);
        both.append(other);
        self.add(&both.0);
    }
}

impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
