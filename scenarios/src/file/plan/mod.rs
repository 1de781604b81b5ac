//! The plan of a run: a scenario in which every range is drawn, every group is expanded, and every
//! occurrence of a fault is listed.
//!
//! A plan is a pure function of scenario and seed: it is complete and can be printed before
//! anything runs. Each host, script and fault draws from its own stream, so that a new draw in one
//! does not change the others.

mod drawn;
mod host;
mod links;
mod occurrences;
mod phases;
mod script;
mod software;

use std::{any::Any, fmt, rc::Rc, time::Duration};

use indexmap::{IndexMap, IndexSet};
use lockstorm_world::{Entropy, time::True};

use crate::{
    file::{
        fault::Fault,
        peer::Peer,
        scenario::{Lock, LockKind, Scenario},
        server::Servers,
    },
    judge::{
        history::{HostKind, Lock as LockNumber, Probe},
        object::{self, Object},
    },
};

pub use drawn::Drawn;
pub(crate) use host::PlannedHost;
pub(crate) use links::PlannedLink;
pub(crate) use occurrences::{Occurrence, Target, When};
pub(crate) use phases::Phases;
pub(crate) use script::{PlannedLine, PlannedStep};
pub(crate) use software::{
    PlannedClient, PlannedNode, PlannedPeer, PlannedProbe, PlannedResource, PlannedSentinel,
};

/// The plan of one run: a pure function of the scenario and the seed.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The scenario of this variant, with its ranges not yet drawn.
    pub scenario: Scenario,
    /// The seed from which all ranges were drawn.
    pub seed: u64,
    /// The hosts: nodes, clients, the resource, Sentinels and the probe.
    pub(crate) hosts: Vec<PlannedHost>,
    /// Links that differ from the rest of the network.
    pub(crate) links: Vec<PlannedLink>,
    /// The locks on trial, one for each table of the file; a [`LockEntry`] is an index into this
    /// list.
    pub(crate) locks: Vec<PlannedLock>,
    /// Every occurrence of every fault, in the order of the file and of their numbers.
    pub(crate) faults: Vec<Occurrence>,
    /// The end of the storm and the end of the run.
    pub(crate) phases: Phases,
}

/// The index in [`Plan::locks`] of a lock of the file. Several locks of different kinds under one
/// name are one lock of the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LockEntry(pub(crate) u16);

/// A lock on trial, for one table `[lock]` of the file.
#[derive(Debug, Clone)]
pub(crate) struct PlannedLock {
    /// The number of the lock in the history; tables with the same key share it.
    pub(crate) number: LockNumber,
    /// The name of its table in the file.
    pub(crate) name: String,
    /// Its main key in Redis, or the peer's key for it.
    pub(crate) key: String,
    /// Its table in the file, such as its kind and its subject.
    pub(crate) written: Lock,
    /// The nodes that it lives on: the first node of each replication group, without the replicas.
    pub(crate) nodes: Vec<String>,
}

fn locks(scenario: &Scenario) -> Vec<PlannedLock> {
    let named = scenario.lock.iter().zip(scenario.lock.keys_in_redis());
    let mut keys = IndexSet::new();
    let planned = named.map(|((name, lock), key)| {
        let (at, _) = keys.insert_full(key);
        let number = LockNumber(u16::try_from(at).expect("a scenario has fewer locks"));
        let (name, key, nodes) = (name.clone(), key.to_owned(), scenario.lock_nodes(lock));
        PlannedLock { number, name, key, written: lock.clone(), nodes }
    });
    planned.collect()
}

impl Plan {
    /// Draws everything that a valid scenario leaves to the seed.
    pub fn draw(scenario: &Scenario, seed: u64) -> Plan {
        let entropy = Entropy::new(seed);
        let phases = Phases::of(scenario);
        let hosts: Vec<PlannedHost> =
            software::LIST.iter().flat_map(|hosts| hosts(scenario, &entropy)).collect();
        Plan {
            links: links::links(scenario, &hosts),
            faults: occurrences::draw(scenario, &scenario.fault, &hosts, &entropy, &phases),
            scenario: scenario.clone(),
            seed,
            locks: locks(scenario),
            hosts,
            phases,
        }
    }

    /// Returns the simulated length of the run.
    pub fn length(&self) -> Duration {
        self.phases.ends.since(True::ZERO)
    }

    /// Returns the number of hosts.
    pub fn host_count(&self) -> usize {
        self.hosts.len()
    }

    /// Returns the names of the occurrences of a fault: `crash#1`, `crash#2`, or `crash` if it
    /// occurs once.
    pub fn occurrences_of<'a>(&'a self, fault: &'a str) -> impl Iterator<Item = &'a str> + 'a {
        self.faults.iter().filter(move |one| one.of() == fault).map(|one| one.name.as_str())
    }

    /// Removes occurrences of faults, by their names.
    pub fn retain_occurrences(&mut self, mut keep: impl FnMut(&str) -> bool) {
        self.faults.retain(|one| keep(&one.name));
    }

    /// Draws the occurrences of other faults than those of the scenario, as a plan with them would
    /// have them: each fault draws from its own stream.
    pub(crate) fn occurrences(&self, faults: &IndexMap<String, Fault>) -> Vec<Occurrence> {
        let entropy = Entropy::new(self.seed);
        occurrences::draw(&self.scenario, faults, &self.hosts, &entropy, &self.phases)
    }

    /// Returns the same plan with this library in the place of every client's software, and with
    /// the library's keys for the locks. It removes the probe: lockstorm's own client has no such
    /// locks, and a further process for it would make every trial slower.
    #[must_use]
    pub fn with_peer(mut self, peer: &Peer) -> Plan {
        let peer = Rc::new(peer.clone());
        self.hosts.retain(|host| host.software.kind() != HostKind::Probe);
        self.phases.probe = self.phases.probe.map(|_| Probe::NotOurs);
        for lock in &mut self.locks {
            lock.key = peer.key(&lock.key);
        }
        for host in &mut self.hosts {
            let software: &dyn Any = &*host.software;
            if let Some(client) = software.downcast_ref::<PlannedClient>() {
                host.software = Rc::new(PlannedPeer::of(client, &peer, &self.locks));
            }
        }
        self
    }

    /// Returns the same plan with a real server for each node and Sentinel.
    #[must_use]
    pub fn with_servers(mut self, servers: &Servers) -> Plan {
        for host in &mut self.hosts {
            let software: &dyn Any = &*host.software;
            if let Some(node) = software.downcast_ref::<PlannedNode>() {
                let server = Some(servers.of(node.node.server).cloned());
                host.software = Rc::new(PlannedNode { server, ..node.clone() });
            } else if let Some(sentinel) = software.downcast_ref::<PlannedSentinel>() {
                let server = Some(servers.of(sentinel.wanted).cloned());
                host.software = Rc::new(PlannedSentinel { server, ..sentinel.clone() });
            }
        }
        self
    }

    /// Returns the number of the lock with this name in the file.
    pub fn lock(&self, name: &str) -> Option<LockNumber> {
        self.locks.iter().find(|lock| lock.name == name).map(|lock| lock.number)
    }

    /// Returns the lock of the file at this index.
    pub(crate) fn entry(&self, entry: LockEntry) -> &PlannedLock {
        &self.locks[usize::from(entry.0)]
    }

    /// Iterates over the locks of the file, in order.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (LockEntry, &PlannedLock)> + Clone {
        (0..).map(LockEntry).zip(&self.locks)
    }

    /// Returns the locks of the file that are this lock of the history, in order: one entry, or
    /// several of different kinds.
    pub(crate) fn entries_of(&self, lock: LockNumber) -> impl Iterator<Item = &PlannedLock> {
        self.locks.iter().filter(move |entry| entry.number == lock)
    }

    /// Returns the locks of the history, each as its first entry in the file.
    pub(crate) fn judged(&self) -> impl Iterator<Item = &PlannedLock> {
        let is_first = |at: &usize, lock: &PlannedLock| {
            self.locks[..*at].iter().all(|before| before.number != lock.number)
        };
        self.locks.iter().enumerate().filter(move |(at, lock)| is_first(at, lock)).map(|(_, lock)| lock)
    }

    /// Returns the adapter of a lock of the history.
    pub(crate) fn object(&self, lock: LockNumber) -> Rc<dyn Object> {
        let entries: Vec<&PlannedLock> = self.entries_of(lock).collect();
        if let [only] = entries[..] {
            return only.written.object();
        }
        let kinds: Vec<LockKind> = entries.iter().map(|entry| entry.written.kind).collect();
        object::of_one_name(&kinds).expect("a scenario's kinds are checked before it runs")
    }

    /// Returns all nodes that a lock lives on, including replicas.
    pub fn nodes_of(&self, lock: LockNumber) -> Vec<String> {
        let first = self.entries_of(lock).next();
        first.into_iter().flat_map(|lock| &lock.nodes).flat_map(|node| self.group_of(node)).collect()
    }

    /// Returns the nodes that replicate the lock's key to each other: the node, its
    /// replicas, their replicas, and so on.
    pub fn group_of(&self, node: &str) -> Vec<String> {
        let mut group = vec![node.to_owned()];
        let mut at = 0;
        while at < group.len() {
            let follows = |host: &&PlannedHost| host.software.replica_of() == Some(&group[at]);
            let more: Vec<String> = self.hosts.iter().filter(follows).map(|host| host.name.clone()).collect();
            // Two nodes that follow each other are a mistake in the file, and must not cause an
            // endless loop.
            group.extend(more.into_iter().filter(|name| name != node));
            at += 1;
        }
        group
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "seed {}: storm until {}, calm until {}",
            self.seed, self.phases.storm_ends, self.phases.ends
        )?;
        for host in &self.hosts {
            writeln!(f, "  host {host}")?;
            host.software.words().iter().try_for_each(|words| writeln!(f, "    {words}"))?;
        }
        for (name, address) in &self.scenario.address {
            let to = address.points_to.as_ref().map_or("nowhere", |to| to.as_str());
            writeln!(f, "  address {name} -> {to}")?;
        }
        for link in &self.links {
            writeln!(f, "  link {} -> {}: {}", link.from, link.to, link.latency)?;
        }
        for occurrence in &self.faults {
            writeln!(f, "  fault {occurrence}")?;
        }
        Ok(())
    }
}
