//! Records the history of a run while it happens, and notifies the director of events that trigger
//! a fault.
//!
//! `names` maps names in Redis to owners, `modes` keeps the modes that names do not show, `beliefs`
//! the beliefs of owners, `triggers` the events that faults wait for. A [`HistoryWriter`] records
//! the actions of one line of work of a client.

mod beliefs;
mod modes;
mod names;
mod observer;
mod triggers;
mod writer;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use lockstorm_world::time::True;
use tokio::sync::Notify;

use self::{beliefs::Beliefs, modes::Modes, names::Names, triggers::Triggers};
use crate::{
    file::fault::{Happening, Trigger},
    judge::history::{EventKind, History, Host, HostKind, Life, Lock, LockKind, Owner, Party},
};

pub(crate) use self::{names::Line, triggers::Scope, writer::HistoryWriter};

/// The client that sent a command, and the owners on whose behalf, as far as they are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sender {
    pub(crate) client: Host,
    /// The owner of the connection, or otherwise the owners that the command names.
    pub(crate) owners: Vec<Owner>,
}

/// A history under construction.
#[derive(Debug)]
pub(crate) struct Recorder {
    /// The events so far.
    pub history: History,
    ops: u32,
    triggers: Triggers,
    names: Names,
    beliefs: Beliefs,
    modes: Modes,
    /// The owner whose command created each passing key.
    makers: BTreeMap<Box<str>, Owner>,
}

/// A recorder that many hosts share. All hosts of a run live on one thread, so none of them ever
/// waits for the lock.
#[derive(Debug, Clone)]
pub(crate) struct Shared(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    recorder: Mutex<Recorder>,
    happened: Notify,
}

impl Shared {
    /// Creates a recorder at the beginning of a run.
    pub(crate) fn new(history: History) -> Shared {
        let (ops, triggers, names, beliefs, modes, makers) = Default::default();
        let recorder = Recorder { history, ops, triggers, names, beliefs, modes, makers };
        Shared(Arc::new(Inner { recorder: Mutex::new(recorder), happened: Notify::new() }))
    }

    /// Locks and returns the recorder.
    ///
    /// # Panics
    /// Panics if a thread panicked while it held the lock, because the run is lost then.
    pub(crate) fn get(&self) -> MutexGuard<'_, Recorder> {
        self.0.recorder.lock().expect("nothing panics while writing history")
    }

    /// Resolves when an event has triggered an occurrence.
    pub(crate) async fn happened(&self) {
        self.0.happened.notified().await;
    }

    /// Registers an occurrence that waits for its trigger.
    pub(crate) fn await_trigger(&self, occurrence: usize, trigger: &Trigger, delay: Duration, scope: Scope) {
        self.get().triggers.add(occurrence, trigger.clone(), delay, scope);
    }

    /// Records a host's change of state. A crashed client neither holds nor waits any more: the
    /// process that starts on the host later is another owner.
    pub(crate) fn life(&self, at: True, host: Host, life: Life) {
        let mut recorder = self.get();
        recorder.history.record(at, host, EventKind::Life { life });
        if life == Life::Crashed {
            let Recorder { history, beliefs, .. } = &mut *recorder;
            beliefs.crashed(host, |owner| history.client_of(owner) == host);
        }
    }

    fn record(&self, at: True, host: Host, what: EventKind, happening: Option<(Lock, Happening)>) {
        let mut recorder = self.get();
        recorder.history.record(at, host, what);
        // An event of the laboratory's probe triggers no fault.
        let happening =
            happening.filter(|_| recorder.history.header.hosts[usize::from(host.0)].kind != HostKind::Probe);
        if happening
            .is_some_and(|(lock, happening)| recorder.triggers.happened(at, host, Some(lock), happening))
        {
            self.0.happened.notify_one();
        }
    }

    /// Triggers the faults that wait for a promotion. The node has become a master.
    pub(crate) fn node_promoted(&self, at: True, node: Host) {
        if self.get().triggers.happened(at, node, None, Happening::Promoted) {
            self.0.happened.notify_one();
        }
    }
}

impl Recorder {
    /// Returns the next triggered occurrence, and the time at which it is due.
    pub(crate) fn take_due(&mut self) -> Option<(usize, True)> {
        self.triggers.take_due()
    }

    /// Returns the owner to whom a node has granted a lock under a name that `client` has written.
    /// If the writer is unknown, returns the owner that the name stands for, or else an owner of
    /// `node`.
    ///
    /// A name that two clients use stands for the owner that was granted a lock last.
    pub(crate) fn owner_granted(
        &mut self,
        lock: Lock,
        name: &str,
        client: Option<Host>,
        node: Host,
    ) -> Owner {
        let Some(client) = client else {
            return self.names.bound(name).unwrap_or_else(|| self.history.owner(name, node));
        };
        let owner = self.owner_named(lock, name, client);
        if !self.names_are_owners(lock) {
            self.names.bind(name, owner);
        }
        owner
    }

    /// Returns the owner for whom this client writes a name in Redis: the one of its earlier use,
    /// or else the current owner of the client's first line of work.
    ///
    /// A known name takes precedence: a request of a crashed process may arrive when its host
    /// already runs another process.
    ///
    /// With a quorum every name is an owner of its own: if nodes granted two attempts of one
    /// client, one of them given up long ago, they have not granted the lock together. Likewise
    /// every permit with its own lease is an owner of its own.
    pub(crate) fn owner_named(&mut self, lock: Lock, name: &str, client: Host) -> Owner {
        if self.names_are_owners(lock) {
            return self.history.owner(name, client);
        }
        if let Some(owner) = self.names.written(client, name) {
            return owner;
        }
        let owner = self.names.current(client, Line::FIRST);
        let owner = owner.unwrap_or_else(|| self.history.owner(name, client));
        self.names.write(client, name, owner);
        owner
    }

    /// Returns the sender of a command with these words, from the connection and its port on the
    /// client.
    ///
    /// The connection takes precedence: if several lines of work write the same name, it alone
    /// distinguishes them.
    pub(crate) fn sender<'a>(
        &self,
        client: Host,
        port: Option<u16>,
        words: impl IntoIterator<Item = &'a str>,
    ) -> Sender {
        let owner = port.and_then(|port| self.names.of_connection(client, port));
        let owners = match owner {
            Some(owner) => vec![owner],
            None => {
                let owner = |word| self.names.written(client, LockKind::owner_of_name(word));
                let named = |word| self.names.written(client, word).or_else(|| owner(word));
                words.into_iter().filter_map(named).collect()
            }
        };
        Sender { client, owners }
    }

    /// Returns the party whose command changed this hold. The owner of the hold acted if the
    /// command can have been on its behalf; otherwise the first owner of the sender did.
    pub(crate) fn party(&self, lock: Lock, sender: &Sender, (name, owner): (&str, Owner)) -> Party {
        let client = sender.client;
        // With a quorum each attempt is an owner of its own, and its name was written for a line of
        // work.
        let of_quorum = || self.names_are_owners(lock) && self.history.client_of(owner) == client;
        let of_line = of_quorum().then(|| self.names.written(client, name)).flatten();
        let is_own = |of: &&Owner| **of == owner || Some(**of) == of_line;
        let own = sender.owners.iter().find(is_own).map(|_| owner);
        Party { client, owner: own.or_else(|| sender.owners.first().copied()) }
    }

    /// Records the owner whose command created this key.
    pub(crate) fn made(&mut self, key: &str, sender: &Sender) {
        let owner = sender.owners.first().copied();
        if let Some(owner) = owner.or_else(|| self.names.current(sender.client, Line::FIRST)) {
            self.makers.insert(key.into(), owner);
        }
    }

    /// Returns the owner whose command created this key, on any node.
    pub(crate) fn maker(&self, key: &str) -> Option<Owner> {
        self.makers.get(key).copied()
    }

    fn names_are_owners(&self, lock: Lock) -> bool {
        self.history.lock(lock).names_its_holds()
    }

    /// Returns the name of the current owner of a client's first line of work.
    pub(crate) fn name_of(&self, client: Host) -> Option<Box<str>> {
        let owner = self.names.current(client, Line::FIRST)?;
        Some(self.history.owners[owner.0 as usize].name.clone())
    }

    /// Returns the client that has believed longest that it holds the lock, among those that still
    /// do. `None` stands for any lock.
    pub(crate) fn holder(&self, lock: Option<Lock>) -> Option<Host> {
        self.beliefs.holder(lock)
    }

    /// Returns the client that has waited longest for the lock. `None` stands for any lock.
    pub(crate) fn waiter(&self, lock: Option<Lock>) -> Option<Host> {
        self.beliefs.waiter(lock)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::history::story::Story;

    /// With a quorum each attempt is an owner of its own. It stands for its own client's line of
    /// work, and not for that of another client that writes the same name.
    #[test]
    fn a_client_that_writes_another_clients_name_acts_for_its_own_line_of_work() {
        let shared = Shared::new(Story::quorum().ends(1_000));
        let mut recorder = shared.get();
        let [c1, c2] =
            ["c1", "c2"].map(|name| recorder.history.header.host(name).expect("it is in the story"));
        let lines = [c1, c2].map(|client| {
            let name = format!("line of {}", client.0);
            let owner = recorder.history.owner(&name, client);
            recorder.names.begin(client, Line::FIRST, &name, owner);
            recorder.names.write(client, "token", owner);
            owner
        });
        let attempt = recorder.owner_granted(Lock(0), "token", Some(c1), Host(0));
        let party = |client| {
            let sender = recorder.sender(client, None, ["token"]);
            recorder.party(Lock(0), &sender, ("token", attempt))
        };
        assert_eq!(party(c1), Party { client: c1, owner: Some(attempt) });
        assert_eq!(party(c2), Party { client: c2, owner: Some(lines[1]) });
    }
}
