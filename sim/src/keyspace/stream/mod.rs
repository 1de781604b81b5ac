//! A stream: entries ordered by id, and consumer groups.
//!
//! Stream nodes hold as much as Redis's, because clients can see node boundaries: in approximate
//! trimming, and in XINFO. A deleted entry stays in its node until the node is removed.

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

/// Number of stream nodes and groups sampled to estimate the size of all.
const SAMPLES: usize = 5;

/// Entries and consumer groups. Unlike other collections, an empty stream keeps its key.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stream {
    /// The entries.
    pub log: Log,
    /// The consumer groups, by name.
    pub groups: BTreeMap<Bytes, Group>,
}

impl Stream {
    /// Returns the number of entries that a group has not read yet. `None` if unknown.
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

    /// Returns the bytes of the stream without the value's header, as `redis-server` computes them.
    pub fn memory(&self) -> usize {
        const STREAM: usize = 80;
        /// Minimum size of the last node, which leaves room for it to grow.
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

    /// Returns the encoding's name in the reply of OBJECT ENCODING.
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
