//! Blocked clients: by key, in order of arrival, and by timeout.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use crate::{event::ConnId, node::clients::Blocked, time::Monotonic};

/// An index of the clients that are blocked on keys, so that neither a write nor an alarm has to
/// ask every connection.
#[derive(Debug, Default)]
pub struct Waiting {
    /// Per database and key, by ticket: the longest waiting comes first.
    by_key: BTreeMap<(usize, Bytes), BTreeMap<u64, ConnId>>,
    deadlines: BTreeSet<(Monotonic, ConnId)>,
}

impl Waiting {
    /// Enters a client of database `db`.
    pub fn enter(&mut self, db: usize, conn: ConnId, blocked: &Blocked) {
        for key in &blocked.keys {
            self.by_key.entry((db, key.clone())).or_default().insert(blocked.ticket, conn);
        }
        self.deadlines.extend(blocked.deadline.map(|deadline| (deadline, conn)));
    }

    /// Takes a client out again.
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

    /// Whether no client is blocked on a key.
    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    /// The clients that wait for a key, the longest waiting first.
    pub fn queue(&self, db: usize, key: &Bytes) -> Vec<ConnId> {
        let queue = self.by_key.get(&(db, key.clone()));
        queue.map(|queue| queue.values().copied().collect()).unwrap_or_default()
    }

    /// The keys of a database on which clients are blocked.
    pub fn keys(&self, db: usize) -> impl Iterator<Item = &Bytes> {
        self.by_key.keys().filter(move |(of, _)| *of == db).map(|(_, key)| key)
    }

    /// When the first client gives up.
    pub fn first_deadline(&self) -> Option<Monotonic> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// The clients whose time is up, the earliest first.
    pub fn overdue(&self, now: Monotonic) -> Vec<ConnId> {
        self.deadlines.iter().take_while(|(deadline, _)| *deadline <= now).map(|(_, conn)| *conn).collect()
    }
}
