//! The effects of a node's commands on the lock's keys, derived from the keys themselves, whatever algorithm wrote them.

use std::{cell::RefCell, collections::BTreeMap, net::IpAddr};

use bytes::Bytes;
use lockstorm_sim::{
    drive::Node, env::Observation, event::ConnId, node::clients::Role as SessionRole, world::HostCtx,
};

use super::held::{Cause, Names, Watched};
use crate::{
    history::{
        CommandCount, EventKind, Host, KeyLeft, Life, Lock, LossCause, Owner, Party, Role as NodeRole,
    },
    object::{Keys, Role, Value},
    recorder::Shared,
};

/// Watches one node.
#[derive(Debug)]
pub(super) struct Witness {
    pub(super) ctx: HostCtx,
    pub(super) shared: Shared,
    pub(super) host: Host,
    pub(super) node: Node,
    /// The hosts by name, to find the client of a connection.
    pub(super) hosts: BTreeMap<String, Host>,
    locks: Vec<Watched>,
    /// The node has crashed and not been looked at since: what it had and has no more, the crash took.
    fresh: u64,
    /// Whose each connection is, since the node has come up.
    peers: RefCell<BTreeMap<ConnId, Option<Host>>>,
    /// How often each client gave each command, as the client spells it.
    counts: BTreeMap<Host, BTreeMap<Bytes, u64>>,
}

impl Witness {
    pub(super) fn new(
        ctx: HostCtx,
        shared: Shared,
        host: Host,
        node: Node,
        locks: Vec<Watched>,
        hosts: BTreeMap<String, Host>,
    ) -> Witness {
        let (fresh, peers, counts) = Default::default();
        Witness { ctx, shared, host, node, hosts, locks, fresh, peers, counts }
    }

    /// Takes in one observation of the node.
    pub(super) fn saw(&mut self, observation: &Observation) {
        if self.fresh != self.ctx.incarnation() {
            self.fresh = self.ctx.incarnation();
            self.peers.take();
            self.look_again(LossCause::Crash);
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
                    match self.locks[at].keys.role_of(key) {
                        Some(Role::Holders) => self.compare(at, event, *by),
                        Some(Role::Queue) => self.compare_queue(at),
                        Some(Role::Token) | None => {}
                    }
                }
            }
            Observation::Published { channel, receivers, .. } => {
                if let Some(lock) = self.lock_meant_by(channel) {
                    let receivers = u32::try_from(*receivers).unwrap_or(u32::MAX);
                    self.tell(EventKind::Published { lock, receivers });
                }
            }
            Observation::Role { role } => {
                let role = if *role == "master" { NodeRole::Master } else { NodeRole::Replica };
                self.tell(EventKind::Became { role });
                if role == NodeRole::Master {
                    self.promoted();
                }
            }
        }
    }

    /// Compares what the node has with what it had: after a restart, or when its data was replaced by a master's.
    fn look_again(&mut self, how: LossCause) {
        for at in 0..self.locks.len() {
            self.with_lock(at, |witness, watched| {
                let before = watched.state.clone();
                watched.adopt(&witness.read(watched, |role| role != Role::Queue), witness);
                let now = &watched.state.holders;
                let gone = before.holders.iter().filter(|(name, _)| !now.contains_key(*name));
                for (_, hold) in gone {
                    witness.tell(EventKind::Vanished { lock: watched.lock, owner: hold.owner, how });
                }
            });
            self.compare_queue(at);
        }
    }

    fn compare(&mut self, at: usize, event: &str, by: Option<ConnId>) {
        self.with_lock(at, |witness, watched| {
            let values = witness.read(watched, |role| role != Role::Queue);
            // What a node repeats from its master was granted there.
            let Some(by) = witness.party(by) else { return watched.adopt(&values, witness) };
            let cause = Cause { event, by, node: witness.host, wall_ms: witness.ctx.wall().as_millis() };
            let changes = watched.change(&values, &cause, witness);
            changes.into_iter().for_each(|what| witness.tell(what));
        });
    }

    fn compare_queue(&mut self, at: usize) {
        self.with_lock(at, |witness, watched| {
            let values = witness.read(watched, |role| role == Role::Queue);
            if let Some(what) = watched.queue(&values, witness) {
                witness.tell(what);
            }
        });
    }

    /// The node has been a replica and is a master from now on.
    fn promoted(&mut self) {
        for at in 0..self.locks.len() {
            self.with_lock(at, |witness, watched| {
                // Data that came in one piece came without an event.
                watched.adopt(&witness.read(watched, |role| role != Role::Queue), witness);
                let lost = watched.promoted(&witness.shared.get().history, witness.host, witness.ctx.wall());
                lost.into_iter().for_each(|what| witness.tell(what));
            });
        }
    }

    /// Has something happen to a lock, for which the witness is asked.
    fn with_lock(&mut self, at: usize, happens: impl FnOnce(&Witness, &mut Watched)) {
        let mut locks = std::mem::take(&mut self.locks);
        happens(self, &mut locks[at]);
        self.locks = locks;
    }

    /// What the node has in the keys of a lock that are for something wanted.
    fn read(&self, watched: &Watched, wanted: impl Fn(Role) -> bool) -> Vec<Value> {
        self.node.look(|server| watched.keys.read(server.node(), wanted)).unwrap_or_default()
    }

    /// The lock that a word of a command, a key or a channel belongs to.
    fn lock_meant_by(&self, word: &[u8]) -> Option<Lock> {
        Keys::of_word(self.locks.iter().map(|watched| &watched.keys), word).map(|at| self.locks[at].lock)
    }

    /// Who did something: `None` when it was repeated from a master, `Some(None)` when no client did it.
    fn party(&self, by: Option<ConnId>) -> Option<Option<Party>> {
        let Some(conn) = by else { return Some(None) };
        let role = self
            .node
            .look(|server| server.node().clients.sessions.get(conn).map(|session| session.role))
            .flatten();
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
            .look(|server| server.node().clients.sessions.get(conn).map(|session| session.peer.clone()))
            .flatten()?;
        let address: IpAddr = peer.rsplit_once(':')?.0.parse().ok()?;
        let host = self.hosts.get(&*self.ctx.host_at(address)?).copied();
        self.peers.borrow_mut().insert(conn, host);
        host
    }

    fn tell(&self, what: EventKind) {
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
            .filter_map(|event| if let EventKind::Life { life } = event.kind { Some(life) } else { None })
            .next();
        if last == Some(Life::Crashed) {
            return;
        }
        let now_ms = self.ctx.wall().as_millis();
        let left = self.node.look(|server| {
            let Some(db) = server.node().dbs.first() else { return Vec::new() };
            let mine =
                db.entries().iter().filter_map(|(key, entry)| Some((self.lock_meant_by(key)?, key, entry)));
            let rule = server.node().config.expiry_rule(now_ms);
            let alive = mine.filter(|(_, _, entry)| !entry.is_expired(rule));
            let mut left: Vec<KeyLeft> = alive
                .map(|(lock, key, entry)| KeyLeft {
                    node: self.host,
                    lock,
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
