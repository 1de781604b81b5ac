//! What a node does to the lock's keys, told from the keys themselves: whatever algorithm wrote them.

use std::{cell::RefCell, collections::BTreeMap, net::IpAddr};

use bytes::Bytes;
use lockstorm_sim::{
    drive::Node, env::Observation, event::ConnId, session::Role as SessionRole, world::HostCtx,
};

use super::held::{Cause, Keys, Names, Reading, State, queue_of};
use crate::{
    history::{CommandCount, Host, How, KeyLeft, Life, Lock, LockKind, Owner, Party, Role, What},
    recorder::Shared,
};

/// Watches one node.
#[derive(Debug)]
pub(super) struct Witness {
    pub(super) ctx: HostCtx,
    pub(super) shared: Shared,
    pub(super) host: Host,
    pub(super) node: Node,
    /// The hosts by name, to find who a connection belongs to.
    pub(super) hosts: BTreeMap<String, Host>,
    locks: Vec<Watched>,
    /// The node has crashed and not been looked at since: what it had and has no more, the crash took.
    fresh: u64,
    /// Whose each connection is, since the node has come up.
    peers: RefCell<BTreeMap<ConnId, Option<Host>>>,
    /// How often each client gave each command, as the client spells it.
    counts: BTreeMap<Host, BTreeMap<Bytes, u64>>,
}

/// One lock as the node has it.
#[derive(Debug)]
struct Watched {
    lock: Lock,
    keys: Keys,
    state: State,
    queue: Vec<String>,
}

impl Witness {
    pub(super) fn new(
        ctx: HostCtx,
        shared: Shared,
        host: Host,
        node: Node,
        keys: impl IntoIterator<Item = (Lock, Keys)>,
        hosts: BTreeMap<String, Host>,
    ) -> Witness {
        let watched = |(lock, keys)| Watched { lock, keys, state: State::default(), queue: Vec::new() };
        let locks = keys.into_iter().map(watched).collect();
        let (fresh, peers, counts) = Default::default();
        Witness { ctx, shared, host, node, hosts, locks, fresh, peers, counts }
    }

    /// Takes in one observation of the node.
    pub(super) fn saw(&mut self, observation: &Observation) {
        if self.fresh != self.ctx.incarnation() {
            self.fresh = self.ctx.incarnation();
            self.peers.take();
            self.look_again(How::Crash);
        }
        match observation {
            Observation::Command { conn, args, .. } => {
                let Some((name, rest)) = args.split_first() else { return };
                if name.eq_ignore_ascii_case(b"FLUSHALL") || name.eq_ignore_ascii_case(b"FLUSHDB") {
                    (0..self.locks.len()).for_each(|at| self.compare(at, "flushed", Some(*conn)));
                }
                let about = rest.iter().any(|arg| self.lock_meant_by(arg).is_some());
                if let Some(client) = self.client(*conn).filter(|_| about) {
                    *self.counts.entry(client).or_default().entry(name.clone()).or_default() += 1;
                }
            }
            Observation::Key { key, event, by, .. } => {
                for at in 0..self.locks.len() {
                    if *key == self.locks[at].keys.lock {
                        self.compare(at, event, *by);
                    } else if *key == self.locks[at].keys.queue {
                        self.compare_queue(at);
                    }
                }
            }
            Observation::Published { channel, receivers, .. } => {
                if let Some(lock) = self.lock_meant_by(channel) {
                    let receivers = u32::try_from(*receivers).unwrap_or(u32::MAX);
                    self.tell(What::Published { lock, receivers });
                }
            }
            Observation::Role { role } => {
                let role = if *role == "master" { Role::Master } else { Role::Replica };
                self.tell(What::Became { role });
            }
        }
    }

    /// Compares what the node has with what it had: after a restart, or when its data was replaced by a master's.
    fn look_again(&mut self, how: How) {
        for at in 0..self.locks.len() {
            let before = self.change(at, |state, kind, reading, names| {
                let before = state.clone();
                state.adopt(kind, reading, names);
                before
            });
            let Watched { lock, state, .. } = &self.locks[at];
            let gone = before.holders.iter().filter(|(name, _)| !state.holders.contains_key(*name));
            for (_, hold) in gone {
                self.tell(What::Vanished { lock: *lock, owner: hold.owner, how });
            }
            self.compare_queue(at);
        }
    }

    fn compare(&mut self, at: usize, event: &str, by: Option<ConnId>) {
        // What a node repeats from its master was granted there.
        let Some(by) = self.party(by) else {
            return self.change(at, State::adopt);
        };
        let cause = Cause { event, by, node: self.host, wall_ms: self.ctx.wall().as_millis() };
        let changes =
            self.change(at, |state, kind, reading, names| state.change(kind, reading, &cause, names));
        changes.into_iter().for_each(|what| self.tell(what));
    }

    /// Has the state of a lock changed by what the node has now.
    fn change<T>(
        &mut self,
        at: usize,
        change: impl FnOnce(&mut State, (Lock, LockKind), &Reading, &dyn Names) -> T,
    ) -> T {
        let Watched { lock, keys, .. } = &self.locks[at];
        let kind = (*lock, self.shared.get().history.lock(*lock).kind);
        let reading = self.node.look(|server| Reading::of(server.node(), keys)).unwrap_or_default();
        let mut state = std::mem::take(&mut self.locks[at].state);
        let told = change(&mut state, kind, &reading, self);
        self.locks[at].state = state;
        told
    }

    fn compare_queue(&mut self, at: usize) {
        let Watched { lock, keys, queue: before, .. } = &self.locks[at];
        let queue = self.node.look(|server| queue_of(server.node(), keys)).unwrap_or_default();
        if queue != *before {
            let waiters = queue.iter().map(|name| self.owner(*lock, name, None)).collect();
            self.tell(What::Queue { lock: *lock, waiters });
            self.locks[at].queue = queue;
        }
    }

    /// The lock that a word of a command, a key or a channel belongs to.
    fn lock_meant_by(&self, word: &[u8]) -> Option<Lock> {
        self.locks.iter().find(|watched| watched.keys.are_meant_by(word)).map(|watched| watched.lock)
    }

    /// Who did something: `None` when it was repeated from a master, `Some(None)` when no client did it.
    fn party(&self, by: Option<ConnId>) -> Option<Option<Party>> {
        let Some(conn) = by else { return Some(None) };
        let role =
            self.node.look(|server| server.node().sessions.get(conn).map(|session| session.role)).flatten();
        if role == Some(SessionRole::Master) {
            return None;
        }
        Some(self.client(conn).map(|client| Party { client, owner: None }))
    }

    /// The host at the other end of a connection.
    fn client(&self, conn: ConnId) -> Option<Host> {
        if let Some(known) = self.peers.borrow().get(&conn) {
            return *known;
        }
        let peer = self
            .node
            .look(|server| server.node().sessions.get(conn).map(|session| session.peer.clone()))
            .flatten()?;
        let address: IpAddr = peer.rsplit_once(':')?.0.parse().ok()?;
        let host = self.hosts.get(&*self.ctx.host_at(address)?).copied();
        self.peers.borrow_mut().insert(conn, host);
        host
    }

    fn tell(&self, what: What) {
        self.ctx.observe("lock", format!("{what:?}"));
        self.shared.get().history.record(self.ctx.moment().0, self.host, what);
    }

    /// What the node counted, and what it has left if it is up, for the end of the history.
    pub(super) fn close(&self) {
        let mut recorder = self.shared.get();
        let history = &mut recorder.history;
        for (&client, counts) in &self.counts {
            let mut by_name: BTreeMap<String, u64> = BTreeMap::new();
            for (name, count) in counts {
                *by_name.entry(String::from_utf8_lossy(name).to_ascii_uppercase()).or_default() += count;
            }
            for (name, count) in by_name {
                let name = name.into();
                history.commands.push(CommandCount { node: self.host, client, name, count });
            }
        }
        let lives = history.events.iter().rev().filter(|event| event.host == self.host);
        let last = lives
            .filter_map(|event| if let What::Life { life } = event.what { Some(life) } else { None })
            .next();
        if last == Some(Life::Crashed) {
            return;
        }
        let now_ms = self.ctx.wall().as_millis();
        let left = self.node.look(|server| {
            let Some(db) = server.node().dbs.first() else { return Vec::new() };
            let mine = db.entries().iter().filter(|(key, _)| self.lock_meant_by(key).is_some());
            let alive = mine.filter(|(_, entry)| !entry.is_expired(now_ms));
            let mut left: Vec<KeyLeft> = alive
                .map(|(key, entry)| KeyLeft {
                    node: self.host,
                    key: String::from_utf8_lossy(key).into(),
                    ttl_ms: entry.expires_ms().map(|at| u64::try_from(at - now_ms).unwrap_or(0)),
                })
                .collect();
            left.sort_by(|one, other| one.key.cmp(&other.key));
            left
        });
        history.keys_left.extend(left.unwrap_or_default());
    }
}

impl Names for Witness {
    fn owner(&self, lock: Lock, name: &str, writer: Option<Party>) -> Owner {
        self.shared.get().owner_granted(lock, name, writer.map(|writer| writer.client), self.host)
    }

    fn client_of(&self, owner: Owner) -> Host {
        self.shared.get().history.client_of(owner)
    }

    fn name_of(&self, client: Host) -> Option<Box<str>> {
        self.shared.get().name_of(client)
    }
}
