//! The databases, the encodings of their values and the events about their keys.

use super::Notify;
use crate::keyspace::Encodings;

/// The databases and the encodings of values (`ADVANCED CONFIG` in `redis.conf`).
#[derive(Debug, Clone)]
pub struct KeyspaceOptions {
    /// `databases`: the number of databases that SELECT accepts. Default 16.
    pub databases: usize,
    /// `hash-max-listpack-entries` and its siblings: the sizes up to which values have compact
    /// encodings.
    pub encodings: Encodings,
    /// `list-max-listpack-size`: the elements in a node of a list, or its size from -1 (4
    /// kilobytes) to -5 (64). Snapshots split lists into such nodes.
    pub list_node_size: i32,
    /// `notify-keyspace-events`: the classes of published events. Default: none.
    pub notify_keyspace_events: Notify,
}

impl Default for KeyspaceOptions {
    fn default() -> KeyspaceOptions {
        KeyspaceOptions {
            databases: 16,
            encodings: Encodings::default(),
            list_node_size: -2,
            notify_keyspace_events: Notify::default(),
        }
    }
}
