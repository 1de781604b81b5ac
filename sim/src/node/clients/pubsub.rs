//! The subscribers of the channels, patterns and shard channels of a node.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use crate::{effect::Subscription, event::ConnId, glob::matches, node::clients::Clients};

/// The names of one kind that a client subscribes to, in the order of its subscriptions.
///
/// `unsubscribe` of all patterns follows that order; for channels a server uses an order of its
/// own.
#[derive(Debug, Default)]
pub struct Names {
    ages: BTreeMap<Bytes, u64>,
    by_age: BTreeMap<u64, Bytes>,
}

impl Names {
    /// Adds a name as the youngest; a known name keeps its place.
    pub fn insert(&mut self, name: Bytes) {
        if self.ages.contains_key(&name) {
            return;
        }
        let age = self.by_age.last_key_value().map_or(0, |(age, _)| age + 1);
        self.ages.insert(name.clone(), age);
        self.by_age.insert(age, name);
    }

    /// Removes a name; does nothing if it is unknown.
    pub fn remove(&mut self, name: &Bytes) {
        if let Some(age) = self.ages.remove(name) {
            self.by_age.remove(&age);
        }
    }

    /// Returns true if the name is subscribed to.
    pub fn contains(&self, name: &Bytes) -> bool {
        self.ages.contains_key(name)
    }

    /// Returns the number of names, each counted once.
    pub fn len(&self) -> usize {
        self.ages.len()
    }

    /// Returns true if there are no names.
    pub fn is_empty(&self) -> bool {
        self.ages.is_empty()
    }

    /// Returns the names, the oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Bytes> {
        self.by_age.values()
    }
}

/// The subscriptions of a node. Subscribers get messages in the order of their connections.
#[derive(Debug, Default)]
pub struct PubSub {
    channels: BTreeMap<Bytes, BTreeSet<ConnId>>,
    patterns: BTreeMap<Bytes, BTreeSet<ConnId>>,
    shards: BTreeMap<Bytes, BTreeSet<ConnId>>,
}

impl PubSub {
    /// Returns the names of one kind, each with its subscribers.
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

    /// Adds a subscription.
    pub fn subscribe(&mut self, kind: Subscription, name: Bytes, conn: ConnId) {
        self.of_mut(kind).entry(name).or_default().insert(conn);
    }

    /// Removes a subscription, if it exists.
    pub fn unsubscribe(&mut self, kind: Subscription, name: &Bytes, conn: ConnId) {
        let subscriptions = self.of_mut(kind);
        let Some(subscribers) = subscriptions.get_mut(name) else { return };
        subscribers.remove(&conn);
        if subscribers.is_empty() {
            subscriptions.remove(name);
        }
    }
}

impl Clients {
    /// Subscribes a connection to a name.
    pub fn subscribe(&mut self, conn: ConnId, kind: Subscription, name: Bytes) {
        if let Some(session) = self.sessions.get_mut(conn) {
            session.subscribed_mut(kind).insert(name.clone());
            self.pubsub.subscribe(kind, name, conn);
        }
    }

    /// Ends one subscription of a connection.
    pub fn unsubscribe(&mut self, conn: ConnId, kind: Subscription, name: &Bytes) {
        if let Some(session) = self.sessions.get_mut(conn) {
            session.subscribed_mut(kind).remove(name);
            self.pubsub.unsubscribe(kind, name, conn);
        }
    }

    /// Ends all subscriptions of a connection of one kind.
    pub fn unsubscribe_all(&mut self, conn: ConnId, kind: Subscription) {
        let Some(session) = self.sessions.get_mut(conn) else { return };
        let names = std::mem::take(session.subscribed_mut(kind));
        for name in names.iter() {
            self.pubsub.unsubscribe(kind, name, conn);
        }
    }

    /// Returns the number of clients that a message on `channel` reaches; a client counts once per
    /// matching subscription.
    pub fn receivers(&self, channel: &[u8]) -> usize {
        let of =
            self.pubsub.of(Subscription::Channel).get(channel).map_or(0, |subscribers| subscribers.len());
        let patterns = self.pubsub.of(Subscription::Pattern).iter();
        of + patterns.filter(|(pattern, _)| matches(pattern, channel)).map(|(_, to)| to.len()).sum::<usize>()
    }
}
