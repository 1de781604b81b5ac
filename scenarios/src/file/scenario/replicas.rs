//! The replicas of a scenario: each follows a chain of nodes that ends at a master.

use std::collections::BTreeMap;

use super::{Lock, Node, Scenario, error::Mistake, group, places::Places, word};

impl Scenario {
    /// Returns the node, or the group of nodes, that has this name or a host of this name.
    pub(super) fn node_of(&self, name: &str) -> Option<&Node> {
        let is_member =
            |(key, node): &(&String, &Node)| group(key, node.count).iter().any(|host| host == name);
        self.node.get(name).or_else(|| self.node.iter().find(is_member).map(|(_, node)| node))
    }

    /// Returns the replicas that an operator can promote by hand: those outside a cluster.
    pub(crate) fn replicas_to_promote(&self) -> Vec<String> {
        let replicas = self.node.iter().filter(|(_, node)| node.replica_of.is_some() && !self.is_cluster());
        replicas.flat_map(|(name, node)| group(name, node.count)).collect()
    }

    /// Returns the node at the start of the chain of masters that the host follows.
    pub(super) fn first_master_of(&self, host: &str) -> String {
        let masters = masters(self);
        let mut first = host;
        // Nodes that follow each other are a mistake of their own, and must not cause an endless
        // loop.
        for _ in 0..masters.len() {
            let Some(master) = masters.get(first) else { break };
            first = master;
        }
        first.to_owned()
    }
}

/// Returns the master of each replica.
fn masters(scenario: &Scenario) -> BTreeMap<String, String> {
    let hosts_of = |(name, node): (&String, &Node)| {
        let hosts = group(name, node.count).into_iter().enumerate();
        let name = name.clone();
        hosts
            .filter_map(move |(number, host)| Some((host, scenario.master_of(&name, number)?)))
            .collect::<Vec<_>>()
    };
    scenario.node.iter().flat_map(hosts_of).collect()
}

/// Checks that no node follows itself, neither directly nor through other nodes.
pub(super) fn check(scenario: &Scenario) -> Result<(), Mistake> {
    let masters = masters(scenario);
    for (name, node) in &scenario.node {
        let Some(written) = &node.replica_of else { continue };
        for host in group(name, node.count) {
            let Some(circle) = circle(&masters, &host) else { continue };
            let message = match circle.split_last() {
                Some((last, most)) if !most.is_empty() => {
                    format!("{} and {last} follow each other: one of them must be a master", most.join(", "))
                }
                _ => format!("{host} cannot be a replica of itself: name another node"),
            };
            return Err(Mistake::at(written.span(), message));
        }
    }
    Ok(())
}

/// Checks that each lock that needs no quorum lives on one master. Two masters that know nothing of
/// each other grant two locks, and the checkers would take them for one.
pub(super) fn check_masters(scenario: &Scenario, places: &Places<'_, '_>) -> Result<(), Mistake> {
    let one = |(_, lock): &(&String, &Lock)| !lock.kind.needs_quorum() && !scenario.is_cluster();
    for (name, lock) in scenario.lock.iter().filter(one) {
        let masters: Vec<String> = scenario.lock_masters(lock).into_iter().collect();
        if masters.len() > 1 {
            let message = format!(
                "a lock of the kind \"{}\" lives on one master, and this one on {} ({}): name one in its `nodes`",
                word(lock.kind),
                masters.len(),
                masters.join(", ")
            );
            return Err(Mistake::at(places.of_value(&["lock", name, "nodes"]), message));
        }
    }
    Ok(())
}

/// Returns the hosts of the circle in which a host follows itself, in the order of the chain.
/// Returns `None` if its chain ends, or leads to a circle of other hosts.
fn circle<'a>(masters: &'a BTreeMap<String, String>, host: &'a str) -> Option<Vec<&'a str>> {
    let (mut circle, mut last) = (vec![host], host);
    while circle.len() <= masters.len() {
        last = masters.get(last)?.as_str();
        if last == host {
            return Some(circle);
        }
        circle.push(last);
    }
    None
}
