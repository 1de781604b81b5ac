//! The key of an object in Redis, with its slot, which decides the node.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use crate::wire::Slot;

/// A key. Its companions (channels, queues, latches) have names in the same slot.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    name: Arc<str>,
    slot: Slot,
}

impl Key {
    pub(crate) fn new(name: &str) -> Self {
        Self { name: name.into(), slot: Slot::of(name) }
    }

    pub(crate) fn slot(&self) -> Slot {
        self.slot
    }
}

impl Deref for Key {
    type Target = str;

    fn deref(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name.fmt(f)
    }
}
