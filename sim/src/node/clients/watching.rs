//! Watched keys (WATCH), and the clients that watch them.

use bytes::Bytes;

use crate::{
    event::ConnId,
    node::{
        Node,
        clients::{Clients, Watched},
    },
};

impl Clients {
    /// Forgets the keys that a connection watches, and that any of them has changed.
    pub fn unwatch_all(&mut self, conn: ConnId) {
        let Some(session) = self.sessions.get_mut(conn) else { return };
        session.watch_broken = false;
        for Watched { db, key, .. } in std::mem::take(&mut session.watched) {
            let at = (db, key);
            if let Some(watchers) = self.watchers.get_mut(&at) {
                watchers.remove(&conn);
                if watchers.is_empty() {
                    self.watchers.remove(&at);
                }
            }
        }
    }
}

impl Node {
    /// Signals a change of a key to its watchers.
    pub fn break_watches(&mut self, db: usize, key: &Bytes) {
        if self.clients.watchers.is_empty() {
            return;
        }
        let Some(watchers) = self.clients.watchers.get(&(db, key.clone())) else { return };
        for conn in watchers {
            let Some(session) = self.clients.sessions.get_mut(*conn) else { continue };
            let gone = self.dbs[db].get(key).is_none();
            let at = |was_expired| Watched { db, key: key.clone(), was_expired };
            // The removal of a key that had expired before it was watched is no change; later
            // changes are.
            if gone && session.watched.remove(&at(true)) {
                session.watched.insert(at(false));
            } else {
                session.watch_broken = true;
            }
        }
    }

    /// Signals to the watchers of a key that its value is now an expired one, after databases were
    /// swapped. That is a change only if a key existed before (`was_there`) and had not expired
    /// when it was watched.
    pub fn expire_watches(&mut self, db: usize, key: &Bytes, was_there: bool) {
        let Some(watchers) = self.clients.watchers.get(&(db, key.clone())) else { return };
        for conn in watchers {
            let Some(session) = self.clients.sessions.get_mut(*conn) else { continue };
            let at = |was_expired| Watched { db, key: key.clone(), was_expired };
            if was_there {
                session.watch_broken |= session.watched.contains(&at(false));
            } else if session.watched.remove(&at(false)) {
                session.watched.insert(at(true));
            }
        }
    }
}
