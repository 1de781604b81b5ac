//! Who listens to which channel, pattern and shard channel of a node.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use crate::event::ConnId;

/// The three kinds of subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subscription {
    /// SUBSCRIBE: one channel.
    Channel,
    /// PSUBSCRIBE: every channel that matches a pattern.
    Pattern,
    /// SSUBSCRIBE: one shard channel.
    Shard,
}

/// The subscriptions of a node. Subscribers are told in the order of their connections.
#[derive(Debug, Default)]
pub struct PubSub {
    channels: BTreeMap<Bytes, BTreeSet<ConnId>>,
    patterns: BTreeMap<Bytes, BTreeSet<ConnId>>,
    shards: BTreeMap<Bytes, BTreeSet<ConnId>>,
}

impl PubSub {
    /// The names subscribed to of one kind, each with its subscribers.
    pub fn of(&self, kind: Subscription) -> &BTreeMap<Bytes, BTreeSet<ConnId>> {
        match kind {
            Subscription::Channel => &self.channels,
            Subscription::Pattern => &self.patterns,
            Subscription::Shard => &self.shards,
        }
    }

    fn of_mut(&mut self, kind: Subscription) -> &mut BTreeMap<Bytes, BTreeSet<ConnId>> {
        match kind {
            Subscription::Channel => &mut self.channels,
            Subscription::Pattern => &mut self.patterns,
            Subscription::Shard => &mut self.shards,
        }
    }

    /// Adds a subscription; false when it was there already.
    pub fn subscribe(&mut self, kind: Subscription, name: Bytes, conn: ConnId) -> bool {
        self.of_mut(kind).entry(name).or_default().insert(conn)
    }

    /// Removes a subscription; false when there was none.
    pub fn unsubscribe(&mut self, kind: Subscription, name: &Bytes, conn: ConnId) -> bool {
        let subscriptions = self.of_mut(kind);
        let Some(subscribers) = subscriptions.get_mut(name) else { return false };
        let removed = subscribers.remove(&conn);
        if subscribers.is_empty() {
            subscriptions.remove(name);
        }
        removed
    }
}
