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
    /// Byte strings, each once, ordered by score.
    SortedSet(Box<SortedSet>),
    /// Entries ordered by id, with consumer groups.
    Stream(Box<Stream>),
}

/// A type, as named in the reply of TYPE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A byte string; TYPE replies `string`.
    String,
    /// A map from fields to values; TYPE replies `hash`.
    Hash,
    /// A sequence of byte strings; TYPE replies `list`.
    List,
    /// Byte strings, each once; TYPE replies `set`.
    Set,
    /// Byte strings ordered by score; TYPE replies `zset`.
    SortedSet,
    /// Entries ordered by id; TYPE replies `stream`.
    Stream,
}

impl Kind {
    /// All kinds.
    pub(crate) const ALL: [Kind; 6] =
        [Kind::String, Kind::Hash, Kind::List, Kind::Set, Kind::SortedSet, Kind::Stream];

    /// Returns the name on the wire.
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

/// Error: the key holds a value of another type than the command needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrongType;

/// A Rust type that is one of the [`Value`]s, so that one function looks up keys of every type.
pub trait Typed: Sized {
    /// Returns the value as this type. `None` if it has another type.
    fn of(value: &Value) -> Option<&Self>;
    /// Returns the value as this type, for changes in place. `None` if it has another type.
    fn of_mut(value: &mut Value) -> Option<&mut Self>;
    /// Returns an empty value, for commands that create the key they add to.
    fn empty() -> Value;
}

impl Value {
    /// Returns the type of the value.
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

    /// Returns the encoding's name in the reply of OBJECT ENCODING.
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

    /// Returns the wall-clock time in milliseconds after which the first field of a hash has
    /// expired; `None` if no field expires.
    pub fn first_field_ms(&self) -> Option<i64> {
        if let Value::Hash(hash) = self { hash.first_time_ms() } else { None }
    }

    /// Returns true if a collection has lost its last element; its key is then removed.
    pub fn is_empty_collection(&self) -> bool {
        match self {
            // An empty stream keeps its key, because of its groups and last id.
            Value::String(_) | Value::Stream(_) => false,
            Value::Hash(hash) => hash.is_empty(),
            Value::List(list) => list.is_empty(),
            Value::Set(set) => set.is_empty(),
            Value::SortedSet(set) => set.is_empty(),
        }
    }
}
