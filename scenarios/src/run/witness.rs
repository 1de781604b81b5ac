//! The effects of a node's commands on the lock's keys, derived from the keys themselves, whatever
//! algorithm wrote them.

use std::{cell::RefCell, collections::BTreeMap, net::IpAddr};

use bytes::Bytes;
use lockstorm_sim::{
    cluster::{self, key_slot},
    drive::DrivenNode,
    env::Observation,
    event::ConnId,
    node::clients::Role as SessionRole,
    server::Server,
    world::HostCtx,
};

use super::held::{Cause, Names, Watched};
use crate::{
    judge::{
        history::{
            CommandCount, EventKind, GainCause, Host, KeyLeft, Life, Lock, LockInfo, Owner, Party,
            Role as NodeRole, Serving,
        },
        object::{Keys, Role, Value, keyspace_of},
    },
    run::recorder::{Sender, Shared},
};

/// Watches one node.
#[derive(Debug)]
pub(super) struct Witness {
    pub(super) ctx: HostCtx,
    pub(super) shared: Shared,
    pub(super) host: Host,
    pub(super) node: DrivenNode,
    /// The hosts by name, to find the client of a connection.
    pub(super) hosts: BTreeMap<String, Host>,
    /// What the history says that the node is.
    role: NodeRole,
    locks: Vec<Watched>,
    /// What the node, if it is one of a cluster, is to the slot of each lock.
    serving: Vec<Serving>,
    /// Whose each connection is, since the node has come up: the client, and its port.
    peers: RefCell<BTreeMap<ConnId, Option<(Host, u16)>>>,
    /// The last command about a lock.
    command: Option<(ConnId, Vec<Bytes>)>,
    /// How often each client gave each command, as the client spells it.
    counts: BTreeMap<Host, BTreeMap<Bytes, u64>>,
}

impl Witness {
    pub(super) fn new(
        ctx: HostCtx,
        shared: Shared,
        host: Host,
        node: DrivenNode,
        locks: Vec<Watched>,
        hosts: BTreeMap<String, Host>,
    ) -> Witness {
        let (peers, command, counts) = Default::default();
        let serving = vec![Serving::Elsewhere; locks.len()];
        let role = NodeRole::Master;
        Witness { ctx, shared, host, node, hosts, role, locks, serving, peers, command, counts }
    }

    /// The node starts again, with what its disk has kept: what it had and has no more, the crash
    /// took, and what it has of before has come back. Told before the first command, which may be
    /// granted a lock anew. `follows` is whether it will be told to replicate another node at once.
    pub(super) fn restarted(&mut self, ctx: HostCtx, server: &Server, follows: bool) {
        self.ctx = ctx;
        self.peers.take();
        self.serving.fill(Serving::Elsewhere);
        // In a cluster the slots of a node are told by themselves.
        let in_cluster = server.node().cluster.is_some();
        let is_master = self.role == NodeRole::Master && !in_cluster;
        for at in 0..self.locks.len() {
            self.with_lock(at, |witness, watched| {
                let values = watched.keys.read(server.node(), |_| true);
                watched.restarted(&values, witness).into_iter().for_each(|lost| witness.tell(lost));
                if is_master {
                    let (host, now) = (witness.host, witness.ctx.wall());
                    let came_back =
                        watched.came_back(&witness.shared.get().history, host, now, GainCause::Restart);
                    came_back.into_iter().for_each(|what| witness.tell(what));
                }
                if let Some(what) = watched.queue(&values, witness) {
                    witness.tell(what);
                }
            });
        }
        // A master that was demoted, and starts again by what is written of it, is one at once,
        // without a change of roles.
        if self.role == NodeRole::Replica && !server.node().is_replica() && !follows {
            self.becomes(NodeRole::Master);
            if !in_cluster {
                (0..self.locks.len()).for_each(|at| {
                    self.with_lock(at, |witness, watched| {
                        witness.tell_inherited(watched, GainCause::Restart)
                    });
                });
            }
        }
    }

    /// Takes in one observation of the node.
    pub(super) fn saw(&mut self, observation: &Observation) {
        match observation {
            Observation::Command { conn, args } => {
                let Some((name, rest)) = args.split_first() else { return };
                if name.eq_ignore_ascii_case(b"FLUSHALL") || name.eq_ignore_ascii_case(b"FLUSHDB") {
                    (0..self.locks.len()).for_each(|at| self.compare(at, "flushed", Some(*conn)));
                }
                let about = rest.iter().any(|arg| self.lock_meant_by(arg).is_some());
                if about {
                    self.command = Some((*conn, args.clone()));
                }
                if let Some((client, _)) = self.peer(*conn).filter(|_| about) {
                    *self.counts.entry(client).or_default().entry(name.clone()).or_default() += 1;
                }
            }
            Observation::Key { key, event, by, .. } => {
                self.compare_passing(key, *by);
                for at in 0..self.locks.len() {
                    match self.locks[at].keys.role_of(key) {
                        Some(Role::Holders) => self.compare(at, event, *by),
                        Some(Role::Queue) => self.compare_queue(at, *by),
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
                if role == NodeRole::Master {
                    // The queue that it starts with may have come in one piece, without an event.
                    (0..self.locks.len()).for_each(|at| self.compare_queue(at, None));
                }
                self.becomes(role);
                if role == NodeRole::Master {
                    self.promoted();
                }
            }
            Observation::Cluster { event, about } => {
                self.tell(EventKind::Cluster { event: (*event).into(), about: about.as_str().into() });
                (0..self.locks.len()).for_each(|at| self.compare_slot(at));
            }
        }
    }

    fn becomes(&mut self, role: NodeRole) {
        self.role = role;
        self.tell(EventKind::Became { role });
    }

    fn compare(&mut self, at: usize, event: &str, by: Option<ConnId>) {
        self.with_lock(at, |witness, watched| {
            let values = witness.read(watched, |role| role != Role::Queue);
            // What a node repeats from its master was granted there, and so was what came with the
            // slot, or went with it.
            if witness.moves(by) || (by.is_none() && witness.is_elsewhere(watched)) {
                return watched.adopt(&values, witness);
            }
            let Some(by) = witness.sender(by) else { return watched.adopt(&values, witness) };
            let cause =
                Cause { event, by: by.as_ref(), node: witness.host, wall_ms: witness.ctx.wall().as_millis() };
            let changes = watched.change(&values, &cause, witness);
            changes.into_iter().for_each(|what| witness.tell(what));
        });
    }

    fn compare_queue(&mut self, at: usize, by: Option<ConnId>) {
        self.with_lock(at, |witness, watched| {
            let values = witness.read(watched, |role| role == Role::Queue);
            let changed = watched.queue(&values, witness);
            // A queue that has come with its slot is the same one.
            if let Some(what) = changed.filter(|_| !witness.moves(by)) {
                witness.tell(what);
            }
        });
    }

    /// Takes note of what the node is to the slot of a lock. One that has become its master has
    /// lost the holds that it never had.
    fn compare_slot(&mut self, at: usize) {
        let slot = key_slot(&self.locks[at].keys.lock);
        let Some(now) = serving(&self.node, slot) else { return };
        let before = std::mem::replace(&mut self.serving[at], now);
        if before == now {
            return;
        }
        let lock = self.locks[at].lock;
        // A node that starts again says anew what it is.
        let was_master = {
            let history = &self.shared.get().history;
            history.was_master(lock, self.host, history.events.len())
        };
        self.tell(EventKind::Serves { lock, how: now });
        if now.is_master() && !before.is_master() {
            self.took_over(at, if was_master { GainCause::Restart } else { GainCause::Failover });
        }
    }

    /// Whether the key of a lock went from node to node by this connection, as a part of its slot.
    fn moves(&self, by: Option<ConnId>) -> bool {
        let Some((_, words)) = self.command.as_ref().filter(|(conn, _)| Some(*conn) == by) else {
            return false;
        };
        let name = words.first().filter(|_| self.in_cluster());
        name.is_some_and(|name| {
            ["MIGRATE", "RESTORE-ASKING"].iter().any(|moving| name.eq_ignore_ascii_case(moving.as_bytes()))
        })
    }

    /// Whether another node of the cluster is the master of the lock's slot.
    fn is_elsewhere(&self, watched: &Watched) -> bool {
        let is_master = self.serving[usize::from(watched.lock.0)].is_master();
        self.in_cluster() && !is_master
    }

    fn in_cluster(&self) -> bool {
        self.node.look(|server| server.node().cluster.is_some()).unwrap_or(false)
    }

    /// Keeps in mind who has made a passing key of a lock.
    fn compare_passing(&self, key: &[u8], by: Option<ConnId>) {
        let Ok(key) = std::str::from_utf8(key) else { return };
        let passes = |lock: &LockInfo| lock.passing_keys.iter().any(|part| key.starts_with(&**part));
        if !self.shared.get().history.header.locks.iter().any(passes) {
            return;
        }
        if let Some(Some(sender)) = self.sender(by) {
            self.shared.get().made(key, &sender);
        }
    }

    /// The node has been a replica and is a master from now on.
    fn promoted(&mut self) {
        if self.in_cluster() {
            // Which slots it has by that is told by itself.
            return;
        }
        (0..self.locks.len()).for_each(|at| self.took_over(at, GainCause::Failover));
    }

    /// Other nodes of its group could grant a lock until now, and this one can from now on.
    fn took_over(&mut self, at: usize, how: GainCause) {
        self.with_lock(at, |witness, watched| {
            // Data that came in one piece came without an event.
            watched.adopt(&witness.read(watched, |role| role != Role::Queue), witness);
            witness.tell_inherited(watched, how);
        });
    }

    /// What a node that has just become a master does not have of a lock, and what it has of
    /// before.
    fn tell_inherited(&self, watched: &Watched, how: GainCause) {
        let told = watched.promoted(&self.shared.get().history, self.host, self.ctx.wall(), how);
        told.into_iter().for_each(|what| self.tell(what));
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

    /// Whose command did something: `None` when it was repeated from a master, `Some(None)` when no
    /// client did it.
    fn sender(&self, by: Option<ConnId>) -> Option<Option<Sender>> {
        let Some(conn) = by else { return Some(None) };
        let role = self
            .node
            .look(|server| server.node().clients.sessions.get(conn).map(|session| session.role))
            .flatten();
        if role == Some(SessionRole::Master) {
            return None;
        }
        let words = self.command.iter().filter(|(of, _)| *of == conn).flat_map(|(_, words)| words);
        let words = words.filter_map(|word| std::str::from_utf8(word).ok());
        Some(self.peer(conn).map(|(client, port)| self.shared.get().sender(client, Some(port), words)))
    }

    /// The host at the other end of a connection, and its port.
    fn peer(&self, conn: ConnId) -> Option<(Host, u16)> {
        if let Some(known) = self.peers.borrow().get(&conn) {
            return *known;
        }
        let peer = self
            .node
            .look(|server| server.node().clients.sessions.get(conn).map(|session| session.peer.clone()))
            .flatten()?;
        let (address, port) = peer.rsplit_once(':')?;
        let (address, port): (IpAddr, u16) = (address.parse().ok()?, port.parse().ok()?);
        let host = self.hosts.get(&*self.ctx.host_at(address)?).map(|host| (*host, port));
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
            let Some(db) = keyspace_of(server.node()) else { return Vec::new() };
            let mine =
                db.entries().iter().filter_map(|(key, entry)| Some((self.lock_meant_by(key)?, key, entry)));
            let rule = server.node().config.expiry_rule(now_ms);
            let alive = mine.filter(|(_, _, entry)| !entry.is_expired(rule));
            let mut left: Vec<KeyLeft> = alive
                .map(|(lock, key, entry)| KeyLeft {
                    node: self.host,
                    lock,
                    key: String::from_utf8_lossy(key).into(),
                    owner: None,
                    ttl_ms: entry.expires_ms().map(|at| u64::try_from(at - now_ms).unwrap_or(0)),
                })
                .collect();
            left.sort_by(|one, other| one.key.cmp(&other.key));
            left
        });
        let mut left = left.unwrap_or_default();
        for left in &mut left {
            left.owner = recorder.maker(&left.key);
        }
        recorder.history.keys_left.extend(left);
    }
}

/// What a node, if it is up and one of a cluster, is to a slot, as the history has it.
pub(super) fn serving(node: &DrivenNode, slot: u16) -> Option<Serving> {
    let how = node.look(|server| Some(server.node().cluster.as_ref()?.serving(slot))).flatten()?;
    Some(match how {
        cluster::Serving::Elsewhere => Serving::Elsewhere,
        cluster::Serving::Closed => Serving::Closed,
        cluster::Serving::Whole => Serving::Whole,
        cluster::Serving::Migrating => Serving::Migrating,
        cluster::Serving::Importing => Serving::Importing,
    })
}

impl Names for Witness {
    fn owner(&self, lock: Lock, name: &str, writer: Option<Host>) -> Owner {
        self.shared.get().owner_granted(lock, name, writer, self.host)
    }

    fn party(&self, lock: Lock, sender: &Sender, hold: (&str, Owner)) -> Party {
        self.shared.get().party(lock, sender, hold)
    }

    fn is_own(&self, owner: Owner, by: Party) -> bool {
        self.shared.get().history.is_own(owner, by)
    }

    fn name_of(&self, client: Host) -> Option<Box<str>> {
        self.shared.get().name_of(client)
    }
}
