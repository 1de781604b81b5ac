//! The types a key can hold.

use super::{Hash, List, Set, SortedSet, Str, Stream};

/// A value of one of Redis's types.
#[derive(Debug, Clone)]
pub enum Value {
    /// A byte string.
    String(Str),
    /// A map from fields to values.
    Hash(Hash),
    /// A sequence of byte strings.
    List(List),
    /// Byte strings, each once.
    Set(Set),
    /// Byte strings, each once, in order of their scores.
    SortedSet(Box<SortedSet>),
    /// Entries in order of their ids, with groups of readers.
    Stream(Box<Stream>),
}

/// The name of a type, as TYPE answers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `string`
    String,
    /// `hash`
    Hash,
    /// `list`
    List,
    /// `set`
    Set,
    /// `zset`
    SortedSet,
    /// `stream`
    Stream,
}

impl Kind {
    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Kind::String => "string",
            Kind::Hash => "hash",
            Kind::List => "list",
            Kind::Set => "set",
            Kind::SortedSet => "zset",
            Kind::Stream => "stream",
        }
    }
}

/// The key holds a value of another type than the command works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrongType;

/// A Rust type that is one of the [`Value`]s, so that looking a key up by type is written once.
pub trait Typed: Sized {
    /// The value as this type, if it is one.
    fn of(value: &Value) -> Option<&Self>;
    /// The value as this type, if it is one, to change in place.
    fn of_mut(value: &mut Value) -> Option<&mut Self>;
    /// An empty one, for commands that create what they add to.
    fn empty() -> Value;
}

impl Value {
    /// Which type this is.
    pub fn kind(&self) -> Kind {
        match self {
            Value::String(_) => Kind::String,
            Value::Hash(_) => Kind::Hash,
            Value::List(_) => Kind::List,
            Value::Set(_) => Kind::Set,
            Value::SortedSet(_) => Kind::SortedSet,
            Value::Stream(_) => Kind::Stream,
        }
    }

    /// The name of the encoding, as OBJECT ENCODING answers it.
    pub fn encoding(&self) -> &'static str {
        match self {
            Value::String(string) => string.encoding(),
            Value::Hash(hash) => hash.encoding(),
            Value::List(list) => list.encoding(),
            Value::Set(set) => set.encoding(),
            Value::SortedSet(set) => set.encoding(),
            Value::Stream(stream) => stream.encoding(),
        }
    }

    /// Whether a collection has lost its last element, and with it its key.
    pub fn is_empty_collection(&self) -> bool {
        match self {
            // A stream stays for its groups and its ids.
            Value::String(_) | Value::Stream(_) => false,
            Value::Hash(hash) => hash.is_empty(),
            Value::List(list) => list.is_empty(),
            Value::Set(set) => set.is_empty(),
            Value::SortedSet(set) => set.is_empty(),
        }
    }
}
