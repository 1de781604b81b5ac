//! The connections of a node, with lookup in constant time.

use std::{cell::Cell, collections::BTreeMap};

use crate::{
    event::ConnId,
    node::clients::{Role, Session},
};

/// The connections, by id, in order of arrival.
///
/// A command looks its own connection up a dozen times. So the connection found last is found again
/// without a search, and no session is moved while it exists.
#[derive(Debug, Default)]
pub struct Sessions {
    /// The index of each connection in `slots`.
    places: BTreeMap<ConnId, usize>,
    slots: Vec<Option<Session>>,
    free: Vec<usize>,
    /// The connection that was last found, and its index.
    last: Cell<Option<(ConnId, usize)>>,
    /// The total memory of all connections, while it is kept up to date.
    memory: Option<usize>,
}

impl Sessions {
    /// Returns the number of connections.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Returns true if there are no connections.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    fn place(&self, conn: ConnId) -> Option<usize> {
        if let Some((last, place)) = self.last.get()
            && last == conn
        {
            return Some(place);
        }
        let place = *self.places.get(&conn)?;
        self.last.set(Some((conn, place)));
        Some(place)
    }

    /// Returns a connection, if it exists.
    pub fn get(&self, conn: ConnId) -> Option<&Session> {
        self.slots[self.place(conn)?].as_ref()
    }

    /// Returns a connection to change, if it exists.
    pub fn get_mut(&mut self, conn: ConnId) -> Option<&mut Session> {
        let place = self.place(conn)?;
        self.slots[place].as_mut()
    }

    /// Returns a connection that is known to exist.
    ///
    /// # Panics
    /// If it does not exist.
    pub fn live(&self, conn: ConnId) -> &Session {
        self.get(conn).expect("the connection is live")
    }

    /// Returns true if the connection exists.
    pub fn contains(&self, conn: ConnId) -> bool {
        self.place(conn).is_some()
    }

    /// Adds a connection, replacing one with the same id.
    pub fn insert(&mut self, session: Session) {
        let conn = session.id;
        self.remove(conn);
        let place = self.free.pop().unwrap_or(self.slots.len());
        if place == self.slots.len() {
            self.slots.push(Some(session));
        } else {
            self.slots[place] = Some(session);
        }
        self.places.insert(conn, place);
        self.account(conn);
    }

    /// Removes and returns a connection.
    pub fn remove(&mut self, conn: ConnId) -> Option<Session> {
        let place = self.places.remove(&conn)?;
        self.last.set(None);
        self.free.push(place);
        let session = self.slots[place].take();
        if let (Some(memory), Some(session)) = (&mut self.memory, &session) {
            *memory -= session.accounted;
        }
        session
    }

    /// Returns the total memory of all connections that counts against `maxmemory`. From now on
    /// [`Sessions::account`] keeps it up to date.
    pub fn memory(&mut self) -> usize {
        if let Some(memory) = self.memory {
            return memory;
        }
        let mut memory = 0;
        for session in self.slots.iter_mut().flatten() {
            session.accounted = evictable(session);
            memory += session.accounted;
        }
        self.memory = Some(memory);
        memory
    }

    /// Updates a connection's part of the total memory, while that is kept up to date.
    pub fn account(&mut self, conn: ConnId) {
        let Some(memory) = self.memory else { return };
        let Some(session) = self.get_mut(conn) else { return };
        let now = evictable(session);
        let before = std::mem::replace(&mut session.accounted, now);
        self.memory = Some(memory - before + now);
    }

    /// Stops keeping the total memory up to date.
    pub fn stop_accounting(&mut self) {
        self.memory = None;
    }

    /// Returns all connections, in order of arrival.
    pub fn iter(&self) -> impl Iterator<Item = &Session> {
        self.places.values().filter_map(|&place| self.slots[place].as_ref())
    }

    /// Returns all connections to change, in no particular order.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Session> {
        self.slots.iter_mut().flatten()
    }
}

/// Returns the memory of a connection that counts against `maxmemory`. The output of replicas is 0
/// here: the backlog contains it anyway.
fn evictable(session: &Session) -> usize {
    if session.role == Role::Replica { 0 } else { session.evictable_memory() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Monotonic;

    fn session(id: u64) -> Session {
        Session::new(ConnId(id), format!("c{id}:1"), String::new(), Monotonic::ZERO)
    }

    #[test]
    fn the_lookup_cache_survives_removal() {
        let mut sessions = Sessions::default();
        [7, 2, 5].into_iter().for_each(|id| sessions.insert(session(id)));
        let ids = |sessions: &Sessions| sessions.iter().map(|session| session.id.0).collect::<Vec<_>>();
        assert_eq!(ids(&sessions), [2, 5, 7]);
        for id in [2, 2, 5, 7, 5] {
            assert_eq!(sessions.get(ConnId(id)).map(|session| session.id), Some(ConnId(id)));
        }
        assert!(sessions.remove(ConnId(5)).is_some());
        assert!(!sessions.contains(ConnId(5)), "it was the last one looked for");
        // The slot of a removed connection is reused.
        sessions.insert(session(9));
        assert_eq!((ids(&sessions), sessions.len(), sessions.slots.len()), (vec![2, 7, 9], 3, 3));
        assert!(sessions.get(ConnId(5)).is_none() && sessions.remove(ConnId(5)).is_none());
        sessions.iter_mut().for_each(|session| session.db = 3);
        assert!(sessions.iter().all(|session| session.db == 3));
    }
}
