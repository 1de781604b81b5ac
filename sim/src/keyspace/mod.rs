//! The data of a node: databases of keys, each with a value of one type and an optional expiry.
//!
//! This module knows no clock, command or connection. Callers pass a rule ([`ExpiryRule`]) to learn
//! if a key has expired, and decide what to do with an expired key.

mod db;
mod dict;
mod encodings;
mod expiry_queue;
mod expiry_rule;
mod field_queue;
mod field_times;
mod footprint;
mod hash;
mod list;
mod listpack;
mod memory;
mod ranked;
mod segments;
mod set;
mod slot_keys;
mod sorted_set;
mod stream;
mod string;
mod usage;
mod value;

pub use db::{Db, Entry, Found, Place};
pub use dict::Dict;
pub use encodings::Encodings;
pub use expiry_rule::ExpiryRule;
pub use hash::Hash;
pub use list::{End, List};
pub use memory::{OBJECT, embedded_memory, table_memory, text_memory};
pub use ranked::{Extreme, Ranked, Walk};
pub use set::Set;
pub use slot_keys::SlotKeys;
pub use sorted_set::SortedSet;
pub use stream::{Consumer, EntryRef, Group, Keep, Log, Node, Pending, Stream, StreamId, Trim};
pub use string::{Str, integer};
pub use usage::{Draw, Lfu, Usage};
pub use value::{Kind, Typed, Value, WrongType};
