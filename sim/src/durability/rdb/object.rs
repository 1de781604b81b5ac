//! A value between the keyspace and the bytes of a snapshot: what each type is made of, whatever encoding it had.

use bytes::Bytes;

use super::RdbError;
use crate::keyspace::{Encodings, Hash, List, Set, SortedSet, Str, Value};

/// The parts of a value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Object {
    String(Bytes),
    List(Vec<Bytes>),
    Set(Vec<Bytes>),
    Hash(Vec<(Bytes, Bytes)>),
    SortedSet(Vec<(Bytes, f64)>),
}

impl Object {
    pub(super) fn of(value: &Value) -> Object {
        match value {
            Value::String(string) => Object::String(string.bytes().clone()),
            Value::Hash(hash) => {
                Object::Hash(hash.iter().map(|(field, value)| (field.clone(), value.clone())).collect())
            }
            Value::List(list) => Object::List(list.iter().cloned().collect()),
            Value::Set(set) => Object::Set(set.iter().collect()),
            Value::SortedSet(set) => {
                Object::SortedSet(set.iter().map(|(score, member)| (member.clone(), score)).collect())
            }
        }
    }

    pub(super) fn into_value(self, encodings: &Encodings) -> Result<Value, RdbError> {
        Ok(match self {
            Object::String(bytes) => Value::String(Str::new(bytes)),
            Object::Hash(pairs) => {
                let mut hash = Hash::default();
                for (field, value) in pairs {
                    hash.set(field, value, encodings);
                }
                Value::Hash(hash)
            }
            Object::List(elements) => Value::List(elements.into_iter().collect::<List>()),
            Object::Set(members) => {
                let mut set = Set::default();
                for member in members {
                    set.insert(member, encodings);
                }
                Value::Set(set)
            }
            Object::SortedSet(members) => {
                let mut set = SortedSet::default();
                for (member, score) in members {
                    if score.is_nan() {
                        return Err(RdbError::Damaged("a score that is not a number"));
                    }
                    set.insert(member, score, encodings);
                }
                Value::SortedSet(set)
            }
        })
    }
}
