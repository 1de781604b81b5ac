//! What will happen: a scenario with every range drawn, every group spelled out, every occurrence of a fault listed.
//!
//! Draw everything first, print it, then run: a plan is a pure function of scenario and seed, and can be read before anything
//! happens. Each host, script and fault draws from a stream of its own, so that a new draw in one does not move the others.

mod drawn;
mod host;
mod links;
mod occurrences;
mod phases;
mod script;
mod software;

use std::{any::Any, fmt, rc::Rc};

use lockstorm_sim::world::Entropy;

use crate::{
    history::Lock as LockNumber,
    peer::Peer,
    scenario::{Lock, Scenario},
};

pub use drawn::Drawn;
pub use host::{PlannedHost, Software};
pub use links::PlannedLink;
pub use occurrences::{Occurrence, Target, When};
pub use phases::Phases;
pub use script::{PlannedLine, PlannedStep};
pub use software::{PlannedClient, PlannedNode, PlannedPeer, PlannedResource, PlannedSentinel};

/// What will happen in one run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// What was written.
    pub scenario: Scenario,
    /// What everything was drawn from.
    pub seed: u64,
    /// The hosts: nodes, clients, the resource.
    pub hosts: Vec<PlannedHost>,
    /// Links that differ from the rest of the network.
    pub links: Vec<PlannedLink>,
    /// The locks on trial; a [`Lock`](LockNumber) of the history is a place in this list.
    pub locks: Vec<PlannedLock>,
    /// Every occurrence of every fault.
    pub faults: Vec<Occurrence>,
    /// When the storm ends and when the run does.
    pub phases: Phases,
}

/// A lock on trial.
#[derive(Debug, Clone)]
pub struct PlannedLock {
    /// What the file calls it.
    pub name: String,
    /// Its key in Redis.
    pub key: String,
    /// As written.
    pub written: Lock,
    /// The nodes it lives on, each group of replicas by the node it starts from.
    pub nodes: Vec<String>,
}

fn locks(scenario: &Scenario) -> Vec<PlannedLock> {
    let named = scenario.lock.iter().zip(scenario.lock.keys_in_redis());
    let planned = named.map(|((name, lock), key)| PlannedLock {
        name: name.clone(),
        key: key.to_owned(),
        written: lock.clone(),
        nodes: scenario.lock_nodes(lock),
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
            faults: occurrences::draw(scenario, &hosts, &entropy, &phases),
            scenario: scenario.clone(),
            seed,
            locks: locks(scenario),
            hosts,
            phases,
        }
    }

    /// The same with this library in the place of every client's software, and with the keys that it has for the locks.
    #[must_use]
    pub fn with_peer(mut self, peer: &Peer) -> Plan {
        let peer = Rc::new(peer.clone());
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

    /// The number of the lock that the file calls so.
    pub fn lock(&self, name: &str) -> Option<LockNumber> {
        let at = self.locks.iter().position(|lock| lock.name == name)?;
        u16::try_from(at).ok().map(LockNumber)
    }

    /// All nodes that a lock lives on, replicas included.
    pub fn nodes_of(&self, lock: LockNumber) -> Vec<String> {
        self.locks[usize::from(lock.0)].nodes.iter().flat_map(|node| self.group_of(node)).collect()
    }

    /// The nodes that pass the lock's key on to each other: the node and, however deep, its replicas.
    pub fn group_of(&self, node: &str) -> Vec<String> {
        let mut group = vec![node.to_owned()];
        let mut at = 0;
        while at < group.len() {
            let follows = |host: &&PlannedHost| host.software.replica_of() == Some(&group[at]);
            let more: Vec<String> = self.hosts.iter().filter(follows).map(|host| host.name.clone()).collect();
            // Two nodes that follow each other are a mistake, not a reason for an endless loop.
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
        for link in &self.links {
            writeln!(f, "  link {} -> {}: {}", link.from, link.to, link.latency)?;
        }
        for occurrence in &self.faults {
            writeln!(f, "  fault {occurrence}")?;
        }
        Ok(())
    }
}
