//! Client-side caching: records the keys that each connection has read, so that it gets an
//! invalidation when a key changes.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use crate::{effect::Tracking, event::ConnId, keyspace::Dict, node::clients::Clients};

/// The connections that track one prefix.
#[derive(Debug, Default)]
struct Audience {
    members: BTreeSet<ConnId>,
    /// The keys that have changed since the last invalidation, each with the client that changed it
    /// last.
    changed: BTreeMap<Bytes, Option<ConnId>>,
}

/// An invalidation for one connection, with the keys that have changed.
pub type Notice = (ConnId, Vec<Bytes>);

/// The tracking table of a node: the keys whose changes send invalidations.
#[derive(Debug, Default)]
pub struct TrackingTable {
    /// The readers of each key. Connections that are gone or no longer track are dropped when the
    /// key changes.
    keys: Dict<BTreeSet<ConnId>>,
    /// The number of readers over all keys.
    items: usize,
    /// The number of connections that track.
    pub trackers: usize,
    /// The tracking by which each connection gets the present invalidation: a transaction may have
    /// changed the session's tracking since.
    ways: BTreeMap<ConnId, Tracking>,
    audiences: BTreeMap<Bytes, Audience>,
}

impl TrackingTable {
    /// Returns true if no key or prefix is tracked.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.audiences.is_empty()
    }

    /// Returns the number of keys that tracking clients have read.
    pub fn keys_len(&self) -> usize {
        self.keys.len()
    }

    /// Returns the number of pairs of a key and a client that has read it.
    pub fn items_len(&self) -> usize {
        self.items
    }

    /// Returns the number of tracked prefixes.
    pub fn prefixes_len(&self) -> usize {
        self.audiences.len()
    }

    /// Records that a connection has read a key.
    pub fn remember(&mut self, conn: ConnId, key: &Bytes) {
        let added = match self.keys.get_mut(key) {
            Some(readers) => readers.insert(conn),
            None => self.keys.insert(key.clone(), BTreeSet::from([conn])).is_none(),
        };
        self.items += usize::from(added);
    }

    /// Removes and returns the readers of a key, in the order of their connections.
    pub fn forget(&mut self, key: &[u8]) -> BTreeSet<ConnId> {
        let readers = self.keys.remove(key).map(|(_, readers)| readers).unwrap_or_default();
        self.items -= readers.len();
        readers
    }

    /// Forgets all readers.
    pub fn clear(&mut self) {
        (self.keys, self.items) = (Dict::default(), 0);
    }

    /// Returns a random key that a tracking client has read; `draw` is passed to [`Dict::random`].
    pub fn any(&self, draw: impl FnMut(usize) -> usize) -> Option<Bytes> {
        self.keys.random(draw).map(|(key, _)| key.to_bytes())
    }

    /// Changes the tracking for later invalidations of a connection; `None` ends them.
    pub fn turn(&mut self, conn: ConnId, way: Option<Tracking>) {
        let Some(way) = way else { return self.leave(conn) };
        for prefix in way.prefixes.iter().flatten() {
            self.audiences.entry(prefix.clone()).or_default().members.insert(conn);
        }
        self.ways.insert(conn, way);
    }

    fn leave(&mut self, conn: ConnId) {
        let way = self.ways.remove(&conn);
        for prefix in way.iter().flat_map(|way| &way.prefixes).flatten() {
            if let Some(audience) = self.audiences.get_mut(prefix) {
                audience.members.remove(&conn);
                if audience.members.is_empty() {
                    self.audiences.remove(prefix);
                }
            }
        }
    }

    /// Returns the tracking of a connection; `None` if it is off.
    pub fn way(&self, conn: ConnId) -> Option<&Tracking> {
        self.ways.get(&conn)
    }

    /// Returns the tracking connections, in order.
    pub fn told(&self) -> impl Iterator<Item = ConnId> {
        self.ways.keys().copied()
    }

    /// Records a change for the clients that track a prefix of this key.
    pub fn note(&mut self, key: &Bytes, by: Option<ConnId>) {
        for (prefix, audience) in &mut self.audiences {
            if key.starts_with(prefix) {
                audience.changed.insert(key.clone(), by);
            }
        }
    }

    /// Takes the pending invalidations for clients that track prefixes.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        let ways = &self.ways;
        let spares = |conn: ConnId| ways.get(&conn).is_some_and(|way| way.no_loop);
        let mut notices = Vec::new();
        for audience in self.audiences.values_mut().filter(|audience| !audience.changed.is_empty()) {
            let changed = std::mem::take(&mut audience.changed);
            for &conn in &audience.members {
                let own = |by: &Option<ConnId>| *by == Some(conn) && spares(conn);
                let keys: Vec<Bytes> =
                    changed.iter().filter(|(_, by)| !own(by)).map(|(key, _)| key.clone()).collect();
                if !keys.is_empty() {
                    notices.push((conn, keys));
                }
            }
        }
        notices
    }
}

impl Clients {
    /// Changes the tracking and the REDIRECT target of a connection. The change applies to later
    /// invalidations, so the caller must also report it as an effect.
    pub fn track(&mut self, conn: ConnId, tracking: Tracking, redirect: Option<ConnId>) {
        let Some(session) = self.sessions.get_mut(conn) else { return };
        (session.redirect, session.redirect_broken) = (redirect, false);
        self.tracking.trackers += usize::from(session.tracking.replace(tracking).is_none());
    }

    /// Ends the tracking of a connection. The keys that it has read are forgotten when they change,
    /// and pending invalidations go to its last REDIRECT target.
    pub fn untrack(&mut self, conn: ConnId) {
        let Some(session) = self.sessions.get_mut(conn) else { return };
        if session.tracking.take().is_some() {
            session.redirect_broken = false;
            self.tracking.trackers -= 1;
        }
    }

    /// Returns true if the keys that a connection reads now are tracked.
    pub fn tracks_reads(&self, conn: ConnId) -> bool {
        let tracking = self.sessions.get(conn).and_then(|session| session.tracking.as_ref());
        tracking.is_some_and(Tracking::remembers)
    }

    /// Ends the tracking of a connection with immediate effect on its invalidations.
    pub fn stop_tracking(&mut self, conn: ConnId) {
        self.untrack(conn);
        self.tracking.turn(conn, None);
    }
}
