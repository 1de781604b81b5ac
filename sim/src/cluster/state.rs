//! The state of a node of a cluster as a whole.

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
    slot_set::SlotSet,
};
use crate::{
    config::Config,
    env::Env,
    event::ConnId,
    keyspace::Db,
    replication::{History, MasterLink},
    time::Monotonic,
};

/// What a node of a cluster sees of the rest of the server.
#[derive(Debug)]
pub struct Around<'a> {
    /// The options.
    pub config: &'a Config,
    /// The data.
    pub db: &'a mut Db,
    /// The replication stream, and how far this node is in it.
    pub history: &'a History,
    /// The link to the master of its replication.
    pub link: Option<&'a MasterLink>,
    /// Milliseconds of the wall clock.
    pub now: i64,
}

impl Around<'_> {
    pub(super) fn node_timeout(&self) -> i64 {
        self.config.cluster.node_timeout_ms
    }

    /// How far this node is in the stream. A replica that has nothing of its master yet is nowhere.
    pub(super) fn offset(&self) -> u64 {
        match self.link {
            Some(link) if link.resume.is_none() && !link.is_up() => 0,
            _ => self.history.offset,
        }
    }
}

/// How often the periodic work is done.
pub(super) const PERIOD: Duration = Duration::from_millis(100);

/// How long a node that was told to forget another one does not learn of it again from others.
const FORGOTTEN_MS: i64 = 60_000;

/// A node of a cluster.
#[derive(Debug)]
pub struct Cluster {
    /// The nodes, this one among them, in the order in which it has learned of them.
    pub(super) nodes: BTreeMap<Key, Known>,
    pub(super) by_id: BTreeMap<NodeId, Key>,
    pub(super) me: Key,
    next_key: NonZeroU32,
    /// The logical clock.
    pub(super) current_epoch: u64,
    /// The epoch of the last vote of this node.
    pub(super) last_vote_epoch: u64,
    /// The cluster answers for keys in the view of this node.
    pub(super) is_ok: bool,
    /// How many masters have slots, failed ones included.
    pub(super) size: usize,
    owners: Vec<Option<Key>>,
    pub(super) migrating: BTreeMap<u16, Key>,
    pub(super) importing: BTreeMap<u16, Key>,
    /// Slots whose owners say that they are not theirs any more.
    pub(super) unclaimed: SlotSet,
    pub(super) election: Election,
    pub(super) manual: ManualFailover,
    /// When the state was first evaluated.
    pub(super) first_evaluated: Option<i64>,
    /// When this node was last among a minority.
    pub(super) minority_at: i64,
    /// The state is to be evaluated at the end of the step.
    pub(super) state_outdated: bool,
    /// Options were set, of which other nodes are to be told.
    pub(super) options_set: bool,
    /// The election is to go on at the end of the step.
    pub(super) election_due: bool,
    /// How many nodes the last periodic work found down.
    pub(super) down_nodes: usize,
    pub(super) ticks: u64,
    pub(super) next_tick: Monotonic,
    /// What came by connections that others have dialed.
    pub(super) inbound: BTreeMap<ConnId, Inbound>,
    /// The connections that this node has dialed.
    pub(super) dialed: BTreeMap<ConnId, Key>,
    pub(super) dials: u64,
    forgotten: BTreeMap<NodeId, i64>,
    pub(super) sent: BTreeMap<Kind, u64>,
    pub(super) received: BTreeMap<Kind, u64>,
    /// DEBUG DROP-CLUSTER-PACKET-FILTER: messages of this kind are passed over.
    pub(super) dropped: Option<Kind>,
    /// Connections closed by `cluster-link-sendbuf-limit`.
    pub(super) limit_exceeded: u64,
    pub(super) out: Outbox,
    /// Writes of clients wait until then, or until a manual failover ends.
    pub(super) paused_until: Option<Monotonic>,
}

/// A connection that another node has dialed.
#[derive(Debug)]
pub(super) struct Inbound {
    /// Which node, as far as it is known.
    pub(super) node: Option<Key>,
    pub(super) created: i64,
    /// The IP address it comes from.
    pub(super) ip: String,
    /// This end's address.
    pub(super) local: String,
    pub(super) buffer: Vec<u8>,
    pub(super) unsent: usize,
}

impl Cluster {
    /// A node that knows only itself, by this name, and has no slots.
    fn alone(id: NodeId, now: i64, next_tick: Monotonic) -> Cluster {
        let me = Key(NonZeroU32::MIN);
        let myself = Known::new(id, Flags::MYSELF | Flags::MASTER, now);
        Cluster {
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

    /// A node that knows only itself, until it has read its file.
    pub fn new(env: &mut Env) -> Cluster {
        let id = env.random_id();
        let id = NodeId::parse(id.as_bytes()).expect("ids are 40 hex digits");
        Cluster::alone(id, env.wall.as_millis(), env.monotonic + PERIOD)
    }

    /// Where the master of this node is, if it is a replica and that is known.
    pub fn master_address(&self) -> Option<(String, u16)> {
        let master = self.known(self.myself().master.filter(|_| self.myself().is_replica())?);
        let is_known = !master.address.ip.is_empty() && master.address.port != 0;
        is_known.then(|| (master.address.ip.clone(), master.address.port))
    }

    /// When the periodic work is due.
    pub fn next_tick(&self) -> Monotonic {
        self.next_tick
    }

    /// When the pause of writes is over, if there is one.
    pub fn pause_ends(&self) -> Option<Monotonic> {
        self.paused_until
    }

    /// Takes out what it wants done.
    pub fn take_outbox(&mut self) -> Outbox {
        std::mem::take(&mut self.out)
    }

    /// Takes out what it wants of the rest of the server.
    pub fn take_wants(&mut self) -> Vec<Want> {
        std::mem::take(&mut self.out.wants)
    }

    /// Whether writes of clients wait for the end of a manual failover.
    pub fn pauses_writes(&self) -> bool {
        self.paused_until.is_some()
    }

    /// Until when writes of clients wait.
    pub fn set_pause(&mut self, until: Option<Monotonic>) {
        self.paused_until = until;
    }

    /// Ends the pause whose time is over.
    pub fn end_pause(&mut self, now: Monotonic) {
        self.paused_until = self.paused_until.filter(|until| now < *until);
    }

    /// The name of this node.
    pub fn my_id(&self) -> NodeId {
        self.myself().id
    }

    /// Whether the cluster answers for keys in the view of this node.
    pub fn is_ok(&self) -> bool {
        self.is_ok
    }

    /// How many connections of the bus there are.
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

    /// The node of a name.
    pub(super) fn find(&self, id: NodeId) -> Option<Key> {
        self.by_id.get(&id).copied()
    }

    /// This node if it is a master, else its master.
    pub(super) fn my_master(&self) -> Option<Key> {
        if self.myself().is_master() { Some(self.me) } else { self.myself().master }
    }

    /// The replicas of a master, in the order in which they became known.
    pub(super) fn replicas_of(&self, master: Key) -> impl Iterator<Item = Key> {
        let of = move |(_, node): &(&Key, &Known)| node.master == Some(master);
        self.nodes.iter().filter(of).map(|(key, _)| *key)
    }

    /// Adds a node, which has no address yet.
    pub(super) fn add(&mut self, id: NodeId, flags: Flags, address: Address, now: i64) -> Key {
        let key = Key(self.next_key);
        self.next_key = self.next_key.saturating_add(1);
        let node = Known { address, ..Known::new(id, flags, now) };
        self.nodes.insert(key, node);
        self.by_id.insert(id, key);
        key
    }

    /// Adds a node that has yet to tell its name.
    pub(super) fn add_stranger(&mut self, env: &mut Env, flags: Flags, address: Address, now: i64) {
        let id = env.random_id();
        let id = NodeId::parse(id.as_bytes()).expect("ids are 40 hex digits");
        self.add(id, flags | Flags::HANDSHAKE, address, now);
    }

    /// Gives a node another name.
    pub(super) fn rename(&mut self, key: Key, id: NodeId) {
        let old = std::mem::replace(&mut self.known_mut(key).id, id);
        self.by_id.remove(&old);
        self.by_id.insert(id, key);
    }

    /// Forgets a node, and all that refers to it.
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

    /// Does not learn of a node again for a minute.
    pub(super) fn blacklist(&mut self, id: NodeId, now: i64) {
        self.forgotten.retain(|_, until| *until > now);
        self.forgotten.insert(id, now + FORGOTTEN_MS);
    }

    pub(super) fn is_blacklisted(&self, id: NodeId, now: i64) -> bool {
        self.forgotten.get(&id).is_some_and(|until| *until > now)
    }

    /// Who has a slot.
    pub(super) fn owner(&self, slot: u16) -> Option<Key> {
        self.owners.get(usize::from(slot)).copied().flatten()
    }

    /// Takes a slot from its owner. Whether it had one.
    pub(super) fn unbind(&mut self, slot: u16) -> bool {
        let Some(owner) = self.owners[usize::from(slot)].take() else { return false };
        // Subscribers of its channels are told, unless its owner is of another shard.
        if owner == self.me || self.myself().master == Some(owner) {
            self.out.wants.push(Want::EndShardChannels(slot));
        }
        self.known_mut(owner).slots.remove(slot);
        self.unclaimed.remove(slot);
        true
    }

    /// Gives a slot without owner to a node.
    pub(super) fn bind(&mut self, slot: u16, key: Key) {
        if self.owners[usize::from(slot)].is_some() {
            return;
        }
        self.owners[usize::from(slot)] = Some(key);
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

    /// Takes all slots of a node.
    pub(super) fn unbind_all(&mut self, key: Key) {
        for slot in self.known(key).slots.iter().collect::<Vec<_>>() {
            self.unbind(slot);
        }
    }

    /// Whether a slot has no owner, or one that does not claim it any more.
    pub(super) fn is_free(&self, slot: u16) -> bool {
        self.owner(slot).is_none() || self.unclaimed.has(slot)
    }

    /// Makes a node a replica of another one, or of none, as far as the table goes.
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

    /// Notes that a node is a master.
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
        self.changed();
    }

    /// Makes this node a replica.
    pub(super) fn follow(&mut self, master: Key) {
        if self.myself().is_master() {
            let myself = self.myself_mut();
            myself.flags = (myself.flags - (Flags::MASTER | Flags::MIGRATE_TO)) | Flags::REPLICA;
            self.migrating.clear();
            self.importing.clear();
        }
        self.set_master(self.me, Some(master));
        self.tell_of("follows", master);
        self.replicate(master);
        self.reset_manual_failover();
        self.changed();
    }

    /// Has the rest of the server replicate a master.
    pub(super) fn replicate(&mut self, master: Key) {
        let Address { ip, port, .. } = self.known(master).address.clone();
        self.out.wants.push(Want::Follow { host: ip, port });
    }

    /// What is in `nodes.conf` has changed, and perhaps the state of the cluster.
    pub(super) fn changed(&mut self) {
        self.out.unsaved = true;
        self.state_outdated = true;
    }

    pub(super) fn log(&mut self, line: impl Into<String>) {
        self.out.log.push(line.into());
    }

    /// Tells observers.
    pub(super) fn tell(&mut self, event: &'static str, about: impl Into<String>) {
        self.out.news.push(News { event, about: about.into() });
    }

    /// Tells observers something of a node.
    pub(super) fn tell_of(&mut self, event: &'static str, key: Key) {
        self.tell(event, self.known(key).address.to_string());
    }

    /// The nodes of the shard of this node, but for itself.
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
