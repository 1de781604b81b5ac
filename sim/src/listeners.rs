//! Who is told what: subscriptions (SUBSCRIBE and its like), and keys that change (CLIENT TRACKING).

use bytes::Bytes;

use crate::{event::ConnId, glob::matches, node::Node, pubsub::Subscription, tracking::Tracking};

impl Node {
    /// Tells a connection of keys that change, from now on in this way.
    pub fn track(&mut self, conn: ConnId, tracking: Tracking) {
        let Some(session) = self.sessions.get_mut(conn) else { return };
        for prefix in tracking.prefixes.iter().flatten() {
            self.tracking.listen(conn, prefix.clone());
        }
        self.tracking.trackers += usize::from(session.tracking.replace(tracking).is_none());
    }

    /// Whether a connection wants to be told when keys change that it reads now.
    pub fn tracks_reads(&self, conn: ConnId) -> bool {
        let tracking = self.sessions.get(conn).and_then(|session| session.tracking.as_ref());
        tracking.is_some_and(Tracking::remembers)
    }

    /// Tells it no more. What it has read is forgotten when it changes.
    pub fn stop_tracking(&mut self, conn: ConnId) {
        let session = self.sessions.get_mut(conn);
        let Some(tracking) = session.and_then(|session| session.tracking.take()) else { return };
        self.tracking.trackers -= 1;
        for prefix in tracking.prefixes.iter().flatten() {
            self.tracking.leave(conn, prefix);
        }
    }

    /// Makes a connection listen.
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

    /// Ends all subscriptions of one kind.
    pub fn unsubscribe_all(&mut self, conn: ConnId, kind: Subscription) {
        let Some(session) = self.sessions.get_mut(conn) else { return };
        let names = std::mem::take(session.subscribed_mut(kind));
        for name in names.iter() {
            self.pubsub.unsubscribe(kind, name, conn);
        }
    }

    /// How many clients a message on `channel` reaches; a client is counted once per subscription that matches.
    pub fn receivers(&self, channel: &[u8]) -> usize {
        let of =
            self.pubsub.of(Subscription::Channel).get(channel).map_or(0, |subscribers| subscribers.len());
        let patterns = self.pubsub.of(Subscription::Pattern).iter();
        of + patterns.filter(|(pattern, _)| matches(pattern, channel)).map(|(_, to)| to.len()).sum::<usize>()
    }
}
