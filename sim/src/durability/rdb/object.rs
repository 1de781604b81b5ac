//! A value between the keyspace and the bytes of a snapshot: what each type is made of, whatever encoding it had.

use bytes::Bytes;

use super::RdbError;
use crate::keyspace::{Dict, Value};

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
            Value::String(bytes) => Object::String(bytes.clone()),
            Value::Hash(hash) => {
                Object::Hash(hash.iter().map(|(field, value)| (field.clone(), value.clone())).collect())
            }
        }
    }

    pub(super) fn into_value(self) -> Result<Value, RdbError> {
        Ok(match self {
            Object::String(bytes) => Value::String(bytes),
            Object::Hash(pairs) => {
                let mut hash = Dict::default();
                for (field, value) in pairs {
                    hash.insert(field, value);
                }
                Value::Hash(hash)
            }
            Object::List(_) | Object::Set(_) | Object::SortedSet(_) => {
                return Err(RdbError::Unsupported("a collection".into()));
            }
        })
    }
}
