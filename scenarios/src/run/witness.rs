//! Derives the effects of a node's commands from the lock's keys alone, so it works with any lock
//! algorithm.

use std::{cell::RefCell, collections::BTreeMap, net::IpAddr};

use bytes::Bytes;
use lockstorm_sim::{
    cluster::{self, key_slot},
    drive::DrivenNode,
    env::Observation,
    event::ConnId,
    node::clients::Role as SessionRole,
    server::Server,
};
use lockstorm_world::HostCtx;

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

#[derive(Debug)]
pub(super) struct Witness {
    pub(super) ctx: HostCtx,
    pub(super) shared: Shared,
    pub(super) host: Host,
    pub(super) node: DrivenNode,
    /// The hosts by name, to find the client of a connection.
    pub(super) hosts: BTreeMap<String, Host>,
    /// The last role that was recorded in the history.
    role: NodeRole,
    locks: Vec<Watched>,
    /// For each lock, how this node of a cluster serves its slot.
    serving: Vec<Serving>,
    /// The client and port of each connection since the node started.
    peers: RefCell<BTreeMap<ConnId, Option<(Host, u16)>>>,
    /// The last command that named a lock.
    command: Option<(ConnId, Vec<Bytes>)>,
    /// The number of calls per client and command, with the name as the client spelled it.
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

    /// Handles a restart of the node with the data from its disk. Records the holds that the crash
    /// lost, and the older holds that the disk brought back.
    ///
    /// Must run before the node's first command, because that may grant a lock again. `follows` is
    /// true if the node becomes a replica of another node right after the start.
    pub(super) fn restarted(&mut self, ctx: HostCtx, server: &Server, follows: bool) {
        self.ctx = ctx;
        self.peers.take();
        self.serving.fill(Serving::Elsewhere);
        // In a cluster the node's slots are recorded separately.
        let in_cluster = server.node().cluster.is_some();
        let is_master = self.role == NodeRole::Master && !in_cluster;
        for at in 0..self.locks.len() {
            self.with_lock(at, |witness, watched| {
                let values = watched.keys.read(server.node(), |_| true);
                let (host, now) = (witness.host, witness.ctx.wall());
                watched.restarted(&values, now, witness).into_iter().for_each(|lost| witness.tell(lost));
                if is_master {
                    let came_back =
                        watched.came_back(&witness.shared.get().history, host, now, GainCause::Restart);
                    came_back.into_iter().for_each(|what| witness.tell(what));
                }
                if let Some(what) = watched.queue(&values, witness) {
                    witness.tell(what);
                }
            });
        }
        // A demoted master whose configuration on disk still says master starts as a master,
        // without an event for the change of role.
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

    /// Processes one observation of the node.
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
                    // The queue may have come with a full synchronization, which emits no events.
                    (0..self.locks.len()).for_each(|at| self.compare_queue(at, None));
                }
                self.becomes(role);
                if role == NodeRole::Master {
                    self.promoted();
                    self.shared.node_promoted(self.ctx.moment().0, self.host);
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
            let now = witness.ctx.wall();
            // A command that this replica repeats from its master was granted there. So was a key
            // that moved with its slot.
            if witness.moves(by) || (by.is_none() && witness.is_elsewhere(watched)) {
                return watched.adopt(&values, now, witness);
            }
            let Some(by) = witness.sender(by) else { return watched.adopt(&values, now, witness) };
            let cause = Cause { event, by: by.as_ref(), node: witness.host, wall_ms: now.as_millis() };
            let changes = watched.change(&values, &cause, witness);
            changes.into_iter().for_each(|what| witness.tell(what));
        });
    }

    fn compare_queue(&mut self, at: usize, by: Option<ConnId>) {
        self.with_lock(at, |witness, watched| {
            let values = witness.read(watched, |role| role == Role::Queue);
            let changed = watched.queue(&values, witness);
            // A queue that moved with its slot is unchanged.
            let moved = witness.moves(by) || (by.is_none() && witness.is_elsewhere(watched));
            if let Some(what) = changed.filter(|_| !moved) {
                witness.tell(what);
            }
        });
    }

    /// Records how the node serves the slot of a lock, if that changed. A node that becomes the
    /// slot's master lost the holds that it never received.
    fn compare_slot(&mut self, at: usize) {
        let slot = key_slot(&self.locks[at].keys.lock);
        let Some(now) = serving(&self.node, slot) else { return };
        let before = std::mem::replace(&mut self.serving[at], now);
        if before == now {
            return;
        }
        let lock = self.locks[at].lock;
        // A restarted node announces again how it serves its slots.
        let was_master = {
            let history = &self.shared.get().history;
            history.was_master(lock, self.host, history.events.len())
        };
        self.tell(EventKind::Serves { lock, how: now });
        if now.is_master() && !before.is_master() {
            self.took_over(at, if was_master { GainCause::Restart } else { GainCause::Failover });
        }
    }

    /// Returns true if this connection moved the key of a lock between nodes, as a part of its
    /// slot.
    fn moves(&self, by: Option<ConnId>) -> bool {
        let Some((_, words)) = self.command.as_ref().filter(|(conn, _)| Some(*conn) == by) else {
            return false;
        };
        let name = words.first().filter(|_| self.in_cluster());
        name.is_some_and(|name| {
            ["MIGRATE", "RESTORE-ASKING"].iter().any(|moving| name.eq_ignore_ascii_case(moving.as_bytes()))
        })
    }

    /// Returns true if another node of the cluster is the master of the lock's slot.
    fn is_elsewhere(&self, watched: &Watched) -> bool {
        let is_master = self.serving[usize::from(watched.lock.0)].is_master();
        self.in_cluster() && !is_master
    }

    fn in_cluster(&self) -> bool {
        self.node.look(|server| server.node().cluster.is_some()).unwrap_or(false)
    }

    /// Records the client that created a passing key of a lock.
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

    /// Handles the promotion of the node from replica to master.
    fn promoted(&mut self) {
        if self.in_cluster() {
            // In a cluster a separate event reports the slots that it serves.
            return;
        }
        (0..self.locks.len()).for_each(|at| self.took_over(at, GainCause::Failover));
    }

    /// Handles a takeover: until now other nodes of the group could grant the lock, from now on
    /// this one.
    fn took_over(&mut self, at: usize, how: GainCause) {
        self.with_lock(at, |witness, watched| {
            // A full synchronization emits no events.
            let values = witness.read(watched, |role| role != Role::Queue);
            watched.adopt(&values, witness.ctx.wall(), witness);
            witness.tell_inherited(watched, how);
        });
    }

    /// Records the holds of a lock that the new master does not have, and those that it has in an
    /// older state.
    fn tell_inherited(&self, watched: &Watched, how: GainCause) {
        let told = watched.promoted(&self.shared.get().history, self.host, self.ctx.wall(), how);
        told.into_iter().for_each(|what| self.tell(what));
    }

    /// Calls `happens` with one lock taken out of `self.locks`, so that it can borrow the witness
    /// as well.
    fn with_lock(&mut self, at: usize, happens: impl FnOnce(&Witness, &mut Watched)) {
        let mut locks = std::mem::take(&mut self.locks);
        happens(self, &mut locks[at]);
        self.locks = locks;
    }

    /// Reads the keys of a lock that have a `wanted` role.
    fn read(&self, watched: &Watched, wanted: impl Fn(Role) -> bool) -> Vec<Value> {
        self.node.look(|server| watched.keys.read(server.node(), wanted)).unwrap_or_default()
    }

    /// Returns the lock that a word of a command, a key or a channel belongs to.
    fn lock_meant_by(&self, word: &[u8]) -> Option<Lock> {
        Keys::of_word(self.locks.iter().map(|watched| &watched.keys), word).map(|at| self.locks[at].lock)
    }

    /// Returns the sender of the command that made a change: `None` if the node repeated it from
    /// its master, `Some(None)` if no client caused the change.
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

    /// Returns the host at the other end of a connection, and its port.
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

    /// Adds the command counts to the history, and the remaining keys if the node is up.
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

/// Returns how a node of a cluster serves a slot. `None` if the node is down or not in a cluster.
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
