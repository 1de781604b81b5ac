//! A stream: entries in order of their ids, and groups of consumers that read them together.
//!
//! Entries lie in nodes as large as Redis's, because the limits of nodes show: trimming by about, and XINFO. A deleted entry
//! stays in its node until the node goes.

mod group;
mod id;
mod log;
mod node;
mod radix;

use std::collections::BTreeMap;

use bytes::Bytes;

use super::{Typed, Value};

pub use group::{Consumer, Group, Pending};
pub use id::StreamId;
pub use log::{Keep, Log, Trim};
pub use node::{EntryRef, Node};

/// Entries and groups. Unlike other collections a stream stays when it is empty.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stream {
    /// The entries.
    pub log: Log,
    /// The groups, by name.
    pub groups: BTreeMap<Bytes, Group>,
}

impl Stream {
    /// How many entries a group has still to read, if that is known.
    pub fn lag(&self, group: &Group) -> Option<i64> {
        let log = &self.log;
        if log.entries_added == 0 {
            return Some(0);
        }
        let read = match group.entries_read {
            Some(read) if !log.has_gap_after(group.last_id) => read,
            _ => log.position(group.last_id)?,
        };
        Some((log.entries_added as i64).wrapping_sub(read))
    }

    /// Bytes of the whole, about.
    pub fn memory(&self) -> usize {
        const PER_NODE: usize = 64;
        const PER_GROUP: usize = 96;
        const PER_CONSUMER: usize = 96;
        const PER_PENDING: usize = 150;
        /// Groups that are looked at, so that the cost does not grow with them.
        const SAMPLES: usize = 5;
        let group = |(name, group): (&Bytes, &Group)| {
            PER_GROUP
                + name.len()
                + group.consumers().len() * PER_CONSUMER
                + group.pending().len() * PER_PENDING
        };
        let seen = self.groups.len().min(SAMPLES);
        let groups: usize = self.groups.iter().take(seen).map(group).sum();
        self.log.bytes() + self.log.nodes().len() * PER_NODE + groups / seen.max(1) * self.groups.len()
    }

    /// The name OBJECT ENCODING has for it.
    pub fn encoding(&self) -> &'static str {
        "stream"
    }
}

impl Typed for Stream {
    fn of(value: &Value) -> Option<&Stream> {
        if let Value::Stream(stream) = value { Some(stream) } else { None }
    }
    fn of_mut(value: &mut Value) -> Option<&mut Stream> {
        if let Value::Stream(stream) = value { Some(stream) } else { None }
    }
    fn empty() -> Value {
        Value::Stream(Box::default())
    }
}

#[cfg(test)]
mod tests;
