//! A value between the keyspace and the bytes of a snapshot: what each type is made of, whatever encoding it had.

use bytes::Bytes;

use super::RdbError;
use crate::keyspace::{Encodings, Hash, Str, Value};

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
            Object::List(_) | Object::Set(_) | Object::SortedSet(_) => {
                return Err(RdbError::Unsupported("a collection".into()));
            }
        })
    }
}
