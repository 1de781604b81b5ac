//! Who is told what: subscriptions (SUBSCRIBE and its like), and keys that change (CLIENT TRACKING).

use bytes::Bytes;

use crate::{event::ConnId, glob::matches, node::Node, pubsub::Subscription, tracking::Tracking};

impl Node {
    /// A connection chooses how it is to be told of keys that change, and who is told instead. That counts for what comes, so
    /// whoever calls this reports it as an effect, too.
    pub fn track(&mut self, conn: ConnId, tracking: Tracking, redirect: Option<ConnId>) {
        let Some(session) = self.sessions.get_mut(conn) else { return };
        (session.redirect, session.redirect_broken) = (redirect, false);
        self.tracking.trackers += usize::from(session.tracking.replace(tracking).is_none());
    }

    /// It does not want to be told any more. What it has read is forgotten when it changes, and what it is still to be told goes
    /// where it last chose.
    pub fn untrack(&mut self, conn: ConnId) {
        let Some(session) = self.sessions.get_mut(conn) else { return };
        if session.tracking.take().is_some() {
            session.redirect_broken = false;
            self.tracking.trackers -= 1;
        }
    }

    /// Whether a connection wants to be told when keys change that it reads now.
    pub fn tracks_reads(&self, conn: ConnId) -> bool {
        let tracking = self.sessions.get(conn).and_then(|session| session.tracking.as_ref());
        tracking.is_some_and(Tracking::remembers)
    }

    /// Tells a connection no more, from now on.
    pub fn stop_tracking(&mut self, conn: ConnId) {
        self.untrack(conn);
        self.tracking.turn(conn, None);
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
