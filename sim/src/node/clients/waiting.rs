//! Blocked clients: by key, in order of arrival, and by timeout.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use crate::{event::ConnId, node::clients::Blocked, time::Monotonic};

/// An index of the clients blocked on keys, so that a write or an alarm need not check every
/// connection.
#[derive(Debug, Default)]
pub struct Waiting {
    /// The clients per database and key, by ticket: the client that has waited longest comes first.
    by_key: BTreeMap<(usize, Bytes), BTreeMap<u64, ConnId>>,
    deadlines: BTreeSet<(Monotonic, ConnId)>,
}

impl Waiting {
    /// Adds a client of database `db`.
    pub fn enter(&mut self, db: usize, conn: ConnId, blocked: &Blocked) {
        for key in &blocked.keys {
            self.by_key.entry((db, key.clone())).or_default().insert(blocked.ticket, conn);
        }
        self.deadlines.extend(blocked.deadline.map(|deadline| (deadline, conn)));
    }

    /// Removes a client of database `db`.
    pub fn leave(&mut self, db: usize, conn: ConnId, blocked: &Blocked) {
        for key in &blocked.keys {
            let at = (db, key.clone());
            if let Some(queue) = self.by_key.get_mut(&at) {
                queue.remove(&blocked.ticket);
                if queue.is_empty() {
                    self.by_key.remove(&at);
                }
            }
        }
        if let Some(deadline) = blocked.deadline {
            self.deadlines.remove(&(deadline, conn));
        }
    }

    /// Returns true if no client is blocked on a key.
    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    /// Returns the clients that wait for a key, the longest waiting first.
    pub fn queue(&self, db: usize, key: &Bytes) -> Vec<ConnId> {
        let queue = self.by_key.get(&(db, key.clone()));
        queue.map(|queue| queue.values().copied().collect()).unwrap_or_default()
    }

    /// Returns the keys of a database on which clients are blocked.
    pub fn keys(&self, db: usize) -> impl Iterator<Item = &Bytes> {
        self.by_key.keys().filter(move |(of, _)| *of == db).map(|(_, key)| key)
    }

    /// Returns the earliest deadline of a client.
    pub fn first_deadline(&self) -> Option<Monotonic> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// Returns the clients whose deadlines have passed, the earliest first.
    pub fn overdue(&self, now: Monotonic) -> Vec<ConnId> {
        self.deadlines.iter().take_while(|(deadline, _)| *deadline <= now).map(|(_, conn)| *conn).collect()
    }
}
