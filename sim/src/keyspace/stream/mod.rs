//! A stream: entries in order of their ids, and groups of consumers that read them together.
//!
//! Entries are in stream nodes as large as Redis's, because node boundaries are visible: in
//! approximate trimming, and in XINFO. A deleted entry stays in its node until the node is removed.

mod group;
mod id;
mod log;
mod node;
mod radix;

use std::collections::BTreeMap;

use bytes::Bytes;

use super::{
    Typed, Value,
    memory::{allocated, extrapolated},
};

use radix::Tree;

pub use group::{Consumer, Group, Pending};
pub use id::StreamId;
pub use log::{Keep, Log, Trim};
pub use node::{EntryRef, Node};

/// Stream nodes and groups that are sampled to estimate the size of all.
const SAMPLES: usize = 5;

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

    /// Bytes of the whole except the header of the value, as `redis-server` computes them.
    pub fn memory(&self) -> usize {
        const STREAM: usize = 80;
        /// The minimum size of the last node, so that it can grow.
        const NODE_MIN: usize = 4096;
        let nodes = self.log.nodes().len();
        let tree = Tree::of(nodes, self.log.nodes().map(Node::base));
        let last = self.log.nodes().next_back().map_or(0, |node| allocated(node.bytes().max(NODE_MIN)));
        let older =
            self.log.nodes().take(nodes.saturating_sub(1)).take(SAMPLES).map(|node| allocated(node.bytes()));
        let older = extrapolated(nodes.saturating_sub(1), older);
        let groups = extrapolated(self.groups.len(), self.groups.values().take(SAMPLES).map(Group::memory));
        [STREAM, tree.bytes(), last, older, groups].into_iter().fold(0, usize::saturating_add)
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
