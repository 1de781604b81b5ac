//! The whole state of a node of a cluster.

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroU32,
    time::Duration,
};

use super::{
    election::Election,
    id::NodeId,
    manual::ManualFailover,
    message::Kind,
    node::{Address, Flags, Key, Known},
    outbox::{News, Outbox, Want},
    slot::SLOTS,
    slot_job::Jobs,
    slot_set::SlotSet,
};
use crate::{
    config::Config,
    env::Env,
    event::ConnId,
    generation::{Feature, Generation},
    keyspace::Db,
    replication::{History, MasterLink},
    time::Monotonic,
};

/// The parts of the server that a node of a cluster reads or changes.
#[derive(Debug)]
pub struct Around<'a> {
    /// The options of the node, such as `cluster-node-timeout`.
    pub config: &'a Config,
    /// The keyspace: a node of a cluster has one database, number 0.
    pub db: &'a mut Db,
    /// The replication stream, and this node's offset in it.
    pub history: &'a History,
    /// The replication link to this node's master.
    pub link: Option<&'a MasterLink>,
    /// The time of the wall clock in milliseconds.
    pub now: i64,
    /// True while a script runs whose effects are not in the stream yet.
    pub busy: bool,
}

impl Around<'_> {
    pub(super) fn node_timeout(&self) -> i64 {
        self.config.cluster.node_timeout_ms
    }

    /// Returns the milliseconds after which a manual failover is given up.
    pub(super) fn manual_failover_timeout(&self) -> i64 {
        self.config.cluster.manual_failover_timeout_ms
    }

    /// Returns the milliseconds for which a hand-over of slots holds writes back at most.
    pub(super) fn hand_over_pause_ms(&self) -> u64 {
        2 * self.manual_failover_timeout().unsigned_abs()
    }

    pub(super) fn now_secs(&self) -> i64 {
        self.now.div_euclid(1000)
    }

    /// Returns the seconds of silence after which the other side of a migration counts as gone.
    pub(super) fn repl_timeout(&self) -> i64 {
        i64::try_from(self.config.replication.timeout).unwrap_or(i64::MAX)
    }

    /// Returns this node's offset in the stream; 0 for a replica that has no data of its master
    /// yet.
    pub(super) fn offset(&self) -> u64 {
        match self.link {
            Some(link) if link.resume.is_none() && !link.is_up() => 0,
            _ => self.history.offset,
        }
    }
}

/// The interval of the periodic work.
pub(super) const PERIOD: Duration = Duration::from_millis(100);

/// Seconds for which a forgotten node is not learned again from other nodes.
pub(super) const FORGOTTEN_SECS: i64 = 60;

/// The state of a node of a cluster.
#[derive(Debug)]
pub struct Cluster {
    /// The generation of servers that this node imitates.
    pub(super) generation: Generation,
    /// The secret that this node sends to others, as Redis 8.2 does. It has no effect.
    pub(super) secret: Option<NodeId>,
    /// The known nodes, this one included, in the order in which it learned of them.
    pub(super) nodes: BTreeMap<Key, Known>,
    pub(super) by_id: BTreeMap<NodeId, Key>,
    pub(super) me: Key,
    next_key: NonZeroU32,
    /// The logical clock of the cluster.
    pub(super) current_epoch: u64,
    /// The epoch of this node's last vote.
    pub(super) last_vote_epoch: u64,
    /// True while the cluster answers for keys in the view of this node.
    pub(super) is_ok: bool,
    /// Number of masters with slots, failed ones included.
    pub(super) size: usize,
    owners: Vec<Option<Key>>,
    pub(super) migrating: BTreeMap<u16, Key>,
    pub(super) importing: BTreeMap<u16, Key>,
    /// The atomic migrations of slots, from here and to here.
    pub(super) jobs: Jobs,
    /// Slots that their owner no longer claims.
    pub(super) unclaimed: SlotSet,
    pub(super) election: Election,
    pub(super) manual: ManualFailover,
    /// The time of the first evaluation of the cluster's state.
    pub(super) first_evaluated: Option<i64>,
    /// The time at which this node was last in a minority.
    pub(super) minority_at: i64,
    /// True if the state must be evaluated at the end of the step.
    pub(super) state_outdated: bool,
    /// True if options were set: this node's own entry must be updated from them.
    pub(super) options_set: bool,
    /// True if the election must be advanced at the end of the step.
    pub(super) election_due: bool,
    /// Number of nodes that the last periodic work found PFAIL.
    pub(super) down_nodes: usize,
    pub(super) ticks: u64,
    pub(super) next_tick: Monotonic,
    /// The connections that other nodes dialed.
    pub(super) inbound: BTreeMap<ConnId, Inbound>,
    /// The connections that this node dialed.
    pub(super) dialed: BTreeMap<ConnId, Key>,
    pub(super) dials: u64,
    forgotten: BTreeMap<NodeId, i64>,
    pub(super) sent: BTreeMap<Kind, u64>,
    pub(super) received: BTreeMap<Kind, u64>,
    /// DEBUG DROP-CLUSTER-PACKET-FILTER: messages of this kind are ignored.
    pub(super) dropped: Option<Kind>,
    /// Number of connections closed by `cluster-link-sendbuf-limit`.
    pub(super) limit_exceeded: u64,
    pub(super) out: Outbox,
    /// Client writes wait until then, or until a manual failover ends.
    pub(super) paused_until: Option<Monotonic>,
}

/// Draws an id.
pub(super) fn random_id(env: &mut Env) -> NodeId {
    NodeId::parse(env.random_id().as_bytes()).expect("ids are 40 hex digits")
}

/// A connection that another node dialed.
#[derive(Debug)]
pub(super) struct Inbound {
    /// The other node, once it is identified.
    pub(super) node: Option<Key>,
    pub(super) created: i64,
    /// The IP address of the other end.
    pub(super) ip: String,
    /// The address of this end.
    pub(super) local: String,
    pub(super) buffer: Vec<u8>,
    pub(super) unsent: usize,
}

impl Cluster {
    /// Creates a node with this name that knows only itself and owns no slots.
    fn alone(id: NodeId, now: i64, next_tick: Monotonic) -> Cluster {
        let me = Key(NonZeroU32::MIN);
        let myself = Known::new(id, Flags::MYSELF | Flags::MASTER, now);
        Cluster {
            generation: Generation::default(),
            secret: None,
            nodes: BTreeMap::from([(me, myself)]),
            by_id: BTreeMap::from([(id, me)]),
            me,
            next_key: NonZeroU32::MIN.saturating_add(1),
            current_epoch: 0,
            last_vote_epoch: 0,
            is_ok: false,
            size: 1,
            owners: vec![None; usize::from(SLOTS)],
            migrating: BTreeMap::new(),
            importing: BTreeMap::new(),
            jobs: Jobs::default(),
            unclaimed: SlotSet::default(),
            election: Election::default(),
            manual: ManualFailover::default(),
            first_evaluated: None,
            minority_at: 0,
            state_outdated: true,
            options_set: false,
            election_due: false,
            down_nodes: 0,
            ticks: 0,
            next_tick,
            inbound: BTreeMap::new(),
            dialed: BTreeMap::new(),
            dials: 0,
            forgotten: BTreeMap::new(),
            sent: BTreeMap::new(),
            received: BTreeMap::new(),
            dropped: None,
            limit_exceeded: 0,
            out: Outbox::default(),
            paused_until: None,
        }
    }

    /// Creates a node with a random name that knows only itself.
    pub fn new(env: &mut Env) -> Cluster {
        Cluster::alone(random_id(env), env.wall.as_millis(), env.monotonic + PERIOD)
    }

    /// Imitates a generation, and draws the ids that nodes of it have besides their names.
    pub(super) fn imitate(&mut self, generation: Generation, env: &mut Env) {
        self.generation = generation;
        if generation.has(Feature::ShardIds) {
            self.myself_mut().shard = Some(random_id(env));
        }
        self.secret = generation.has(Feature::BusSecret).then(|| random_id(env));
    }

    /// Returns the id of a node's shard. A node that has not said it is alone in one.
    pub(super) fn shard_id(&self, key: Key) -> NodeId {
        let node = self.known(key);
        node.shard.unwrap_or_else(|| node.id.reversed())
    }

    /// Returns the id of this node's shard.
    pub fn my_shard_id(&self) -> NodeId {
        self.shard_id(self.me)
    }

    /// Returns the host and client port of this node's master; `None` unless this node is a replica
    /// and both are known.
    pub fn master_address(&self) -> Option<(String, u16)> {
        let master = self.known(self.myself().master.filter(|_| self.myself().is_replica())?);
        let is_known = !master.address.ip.is_empty() && master.address.port != 0;
        is_known.then(|| (master.address.ip.clone(), master.address.port))
    }

    /// The time at which the periodic work is due.
    pub fn next_tick(&self) -> Monotonic {
        self.next_tick
    }

    /// The end of the first pause of client writes; `None` while they are not paused.
    pub fn pause_ends(&self) -> Option<Monotonic> {
        [self.paused_until, self.jobs.pause_ends()].into_iter().flatten().min()
    }

    /// Takes all effects out of the outbox.
    pub fn take_outbox(&mut self) -> Outbox {
        std::mem::take(&mut self.out)
    }

    /// Takes the effects on the rest of the server out of the outbox.
    pub fn take_wants(&mut self) -> Vec<Want> {
        std::mem::take(&mut self.out.wants)
    }

    /// Returns true while client writes wait for the end of a manual failover or of a migration.
    pub fn pauses_writes(&self) -> bool {
        self.pause_ends().is_some()
    }

    /// Makes client writes wait until `until`; `None` ends the pause.
    pub fn set_pause(&mut self, until: Option<Monotonic>) {
        self.paused_until = until;
    }

    /// Ends the pause of client writes if its time is over.
    pub fn end_pause(&mut self, now: Monotonic) {
        self.paused_until = self.paused_until.filter(|until| now < *until);
    }

    /// The name of this node.
    pub fn my_id(&self) -> NodeId {
        self.myself().id
    }

    /// Returns true if the cluster answers for keys in the view of this node.
    pub fn is_ok(&self) -> bool {
        self.is_ok
    }

    /// Number of bus connections, in both directions.
    pub fn connections(&self) -> usize {
        self.inbound.len() + self.dialed.len()
    }

    pub(super) fn known(&self, key: Key) -> &Known {
        self.nodes.get(&key).expect("what refers to a node goes with it")
    }

    pub(super) fn known_mut(&mut self, key: Key) -> &mut Known {
        self.nodes.get_mut(&key).expect("what refers to a node goes with it")
    }

    pub(super) fn myself(&self) -> &Known {
        self.known(self.me)
    }

    pub(super) fn myself_mut(&mut self) -> &mut Known {
        self.known_mut(self.me)
    }

    pub(super) fn find(&self, id: NodeId) -> Option<Key> {
        self.by_id.get(&id).copied()
    }

    /// Returns this node if it is a master, else its master.
    pub(super) fn my_master(&self) -> Option<Key> {
        if self.myself().is_master() { Some(self.me) } else { self.myself().master }
    }

    /// Returns the replicas of a master, in the order in which they became known.
    pub(super) fn replicas_of(&self, master: Key) -> impl Iterator<Item = Key> {
        let of = move |(_, node): &(&Key, &Known)| node.master == Some(master);
        self.nodes.iter().filter(of).map(|(key, _)| *key)
    }

    pub(super) fn add(&mut self, id: NodeId, flags: Flags, address: Address, now: i64) -> Key {
        let key = Key(self.next_key);
        self.next_key = self.next_key.saturating_add(1);
        let node = Known { address, ..Known::new(id, flags, now) };
        self.nodes.insert(key, node);
        self.by_id.insert(id, key);
        key
    }

    /// Adds a node whose name is unknown, under a random name.
    pub(super) fn add_stranger(&mut self, env: &mut Env, flags: Flags, address: Address, now: i64) {
        self.add(random_id(env), flags | Flags::HANDSHAKE, address, now);
    }

    pub(super) fn rename(&mut self, key: Key, id: NodeId) {
        let old = std::mem::replace(&mut self.known_mut(key).id, id);
        self.by_id.remove(&old);
        self.by_id.insert(id, key);
    }

    /// Removes a node and every reference to it.
    pub(super) fn remove(&mut self, key: Key) {
        debug_assert_ne!(key, self.me, "a node cannot forget itself");
        for slot in self.known(key).slots.iter().collect::<Vec<_>>() {
            self.unbind(slot);
        }
        self.migrating.retain(|_, target| *target != key);
        self.importing.retain(|_, source| *source != key);
        self.set_master(key, None);
        for replica in self.replicas_of(key).collect::<Vec<_>>() {
            self.known_mut(replica).master = None;
        }
        self.drop_link(key);
        self.drop_inbound(key);
        if self.manual.replica == Some(key) {
            self.manual.replica = None;
        }
        let Some(gone) = self.nodes.remove(&key) else { return };
        self.by_id.remove(&gone.id);
        for node in self.nodes.values_mut() {
            node.reports.remove(&key);
        }
    }

    /// Keeps a node from being learned again for some seconds, a minute at most.
    pub(super) fn blacklist(&mut self, id: NodeId, now: i64, seconds: i64) {
        self.forgotten.retain(|_, until| *until > now);
        self.forgotten.insert(id, now + seconds.clamp(0, FORGOTTEN_SECS) * 1000);
    }

    /// Returns the forgotten nodes, each with the seconds for which it still is.
    pub(super) fn blacklisted(&self, now: i64) -> Vec<(NodeId, u64)> {
        let left = |until: i64| u64::try_from((until - now) / 1000).unwrap_or(0);
        let forgotten = self.forgotten.iter().filter(|(_, until)| **until > now);
        forgotten.map(|(id, until)| (*id, left(*until))).collect()
    }

    pub(super) fn is_blacklisted(&self, id: NodeId, now: i64) -> bool {
        self.forgotten.get(&id).is_some_and(|until| *until > now)
    }

    pub(super) fn owner(&self, slot: u16) -> Option<Key> {
        self.owners.get(usize::from(slot)).copied().flatten()
    }

    /// Returns the owner of each slot.
    pub(super) fn owners(&self) -> &[Option<Key>] {
        &self.owners
    }

    /// Removes the owner of a slot; returns true if it had one.
    pub(super) fn unbind(&mut self, slot: u16) -> bool {
        let Some(owner) = self.owners[usize::from(slot)].take() else { return false };
        // Subscriptions to the slot's channels end, unless the owner is of another shard.
        if owner == self.me || self.myself().master == Some(owner) {
            self.out.wants.push(Want::EndShardChannels(slot));
        }
        self.known_mut(owner).slots.remove(slot);
        self.unclaimed.remove(slot);
        self.jobs.outdated = true;
        true
    }

    /// Gives a slot to a node, unless the slot has an owner.
    pub(super) fn bind(&mut self, slot: u16, key: Key) {
        if self.owners[usize::from(slot)].is_some() {
            return;
        }
        self.owners[usize::from(slot)] = Some(key);
        self.jobs.outdated = true;
        self.unclaimed.remove(slot);
        let shared = self.nodes.values().any(|node| {
            node.is_replica() && node.master.is_some_and(|master| self.known(master).is_master())
        });
        let node = self.known_mut(key);
        // A master with its first slot may have replicas if others have some.
        if node.slots.add(slot) && node.slots.len() == 1 && shared {
            node.flags |= Flags::MIGRATE_TO;
        }
    }

    /// Takes all slots of a node away.
    pub(super) fn unbind_all(&mut self, key: Key) {
        for slot in self.known(key).slots.iter().collect::<Vec<_>>() {
            self.unbind(slot);
        }
    }

    /// Returns true if a slot has no owner, or an owner that no longer claims it.
    pub(super) fn is_free(&self, slot: u16) -> bool {
        self.owner(slot).is_none() || self.unclaimed.has(slot)
    }

    /// Records the master of a node, or that it has none, and updates `MIGRATE_TO` of the masters.
    pub(super) fn set_master(&mut self, key: Key, master: Option<Key>) {
        let old = std::mem::replace(&mut self.known_mut(key).master, master);
        if let Some(old) = old.filter(|old| Some(*old) != master)
            && self.replicas_of(old).next().is_none()
        {
            self.known_mut(old).flags -= Flags::MIGRATE_TO;
        }
        if let Some(master) = master {
            self.known_mut(master).flags |= Flags::MIGRATE_TO;
        }
    }

    /// Records that a node is a master.
    pub(super) fn make_master(&mut self, key: Key) {
        if self.known(key).is_master() {
            return;
        }
        if self.known(key).master.is_some() {
            self.set_master(key, None);
            if key != self.me {
                self.known_mut(key).flags |= Flags::MIGRATE_TO;
            }
        }
        let node = self.known_mut(key);
        node.flags = (node.flags - Flags::REPLICA) | Flags::MASTER;
        self.jobs.outdated = true;
        self.changed();
    }

    /// Makes this node a replica of `master`.
    pub(super) fn follow(&mut self, master: Key) {
        if self.myself().is_master() {
            let myself = self.myself_mut();
            myself.flags = (myself.flags - (Flags::MASTER | Flags::MIGRATE_TO)) | Flags::REPLICA;
            // A node that its own replica has replaced goes on with the moves of slots.
            if !self.has_succeeded(master, self.me) {
                self.migrating.clear();
                self.importing.clear();
            }
            self.jobs.outdated = true;
        }
        self.set_master(self.me, Some(master));
        if self.generation.has(Feature::ShardIds) {
            self.myself_mut().shard = Some(self.shard_id(master));
        }
        self.tell_of("follows", master);
        self.replicate(master);
        self.reset_manual_failover();
        self.changed();
    }

    /// Makes the rest of the server replicate a master.
    pub(super) fn replicate(&mut self, master: Key) {
        let Address { ip, port, .. } = self.known(master).address.clone();
        self.out.wants.push(Want::Follow { host: ip, port });
    }

    /// Marks `nodes.conf` as unsaved and the state of the cluster as outdated.
    pub(super) fn changed(&mut self) {
        self.out.unsaved = true;
        self.state_outdated = true;
    }

    pub(super) fn log(&mut self, line: impl Into<String>) {
        self.out.log.push(line.into());
    }

    /// Reports an event to observers.
    pub(super) fn tell(&mut self, event: &'static str, about: impl Into<String>) {
        self.out.news.push(News { event, about: about.into() });
    }

    /// Reports an event about a node to observers.
    pub(super) fn tell_of(&mut self, event: &'static str, key: Key) {
        self.tell(event, self.known(key).address.to_string());
    }

    /// Returns the other nodes of this node's shard.
    pub(super) fn shard(&self) -> Vec<Key> {
        let Some(master) = self.my_master() else { return Vec::new() };
        let of = |(key, node): &(&Key, &Known)| {
            **key != self.me && (**key == master || node.master == Some(master))
        };
        self.nodes.iter().filter(of).map(|(key, _)| *key).collect()
    }

    pub(super) fn keys(&self) -> BTreeSet<Key> {
        self.nodes.keys().copied().collect()
    }
}
