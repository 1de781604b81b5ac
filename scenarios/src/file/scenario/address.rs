//! Addresses that belong to no host: of a proxy, a virtual IP or a name in the DNS.

use std::collections::BTreeSet;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Client, RESERVED, Scenario, error::Mistake, places::Places};
use crate::file::{
    fault::FaultKind,
    name::Name,
    selector::{Hosts, Selector},
};

/// An address that belongs to no host, such as that of a proxy, a virtual IP or a name in the DNS:
/// `[address.vip]`. Clients can have it among their `nodes`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Address {
    /// The node that it leads to at the start; the fault `move_address` changes it. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub points_to: Option<Name>,
}

/// The addresses of a scenario, by name.
pub(super) type Addresses = IndexMap<String, Address>;

/// Checks that the names of addresses differ from those of hosts, and that each leads to one node.
pub(super) fn check(scenario: &Scenario, places: &Places<'_, '_>) -> Result<(), Mistake> {
    let groups = scenario.node.keys().chain(scenario.sentinel.keys()).chain(scenario.client.keys());
    let groups: Vec<&String> = groups.collect();
    for (name, address) in &scenario.address {
        let is_host = |group: &&String| *group == name || scenario.members(group).contains(name);
        if groups.iter().any(is_host) || RESERVED.contains(&name.as_str()) {
            let message = format!("a host is called `{name}`: give the address another name");
            return Err(Mistake::at(places.of_key(&["address", name]), message));
        }
        let nodes = scenario.hosts_of_nodes();
        let is_unknown = |name: &&Name| !nodes.iter().any(|node| node == name.as_str());
        if let Some(name) = address.points_to.as_ref().filter(is_unknown) {
            let known = nodes.iter().map(String::as_str);
            return Err(Mistake::unknown(name.span(), "node", name.as_str(), known));
        }
        let lives = |to: &Name| check_lock_lives(scenario, to, &scenario.members(to.as_str()));
        address.points_to.iter().try_for_each(lives)?;
    }
    Ok(())
}

/// Checks that a lock lives on these nodes, to which a client or an address leads: grants of
/// another node would be judged by no checker. `name` is written for them in the file.
pub(super) fn check_lock_lives(scenario: &Scenario, name: &Name, nodes: &[String]) -> Result<(), Mistake> {
    let masters: BTreeSet<String> =
        scenario.lock.values().flat_map(|lock| scenario.lock_masters(lock)).collect();
    let is_other = |node: &&String| !masters.contains(&scenario.first_master_of(node));
    let Some(other) = nodes.iter().find(is_other) else { return Ok(()) };
    let message = format!("no lock lives on {other}: name a node of a lock, or one of its replicas");
    Err(Mistake::at(name.span(), message))
}

impl Scenario {
    /// Returns the hosts of all nodes.
    fn hosts_of_nodes(&self) -> Vec<String> {
        self.node.keys().flat_map(|name| self.members(name)).collect()
    }
}

/// Checks that a fault moves an existing address, and moves it to one node.
pub(super) fn check_fault(scenario: &Scenario, kind: &FaultKind) -> Result<(), Mistake> {
    let FaultKind::MoveAddress(moved) = kind else { return Ok(()) };
    if !scenario.address.contains_key(moved.address.as_str()) {
        let known = scenario.address.keys().map(String::as_str);
        return Err(Mistake::unknown(moved.address.span(), "address", moved.address.as_str(), known));
    }
    let one = |name: &Name| match name.as_str().parse() {
        Ok(Selector::Named(name)) => scenario.members(&name).len() == 1,
        Ok(Selector::Master(_) | Selector::Replica(_) | Selector::AnyNode) => true,
        _ => false,
    };
    match moved.to.as_ref().map_or(&[][..], Hosts::names) {
        [name] if one(name) => match name.as_str().parse() {
            Ok(Selector::Named(host)) if scenario.node_of(&host).is_some() => {
                check_lock_lives(scenario, name, &scenario.members(&host))
            }
            Ok(Selector::AnyNode) => check_lock_lives(scenario, name, &scenario.hosts_of_nodes()),
            _ => Ok(()),
        },
        [name, ..] => {
            let message = "an address leads to one node at a time: name one, or say `@master`, `@replica` or `@any-node`";
            Err(Mistake::at(name.span(), message))
        }
        [] => Ok(()),
    }
}

impl Client {
    /// Returns true if the client connects to this address.
    pub fn dials(&self, address: &str) -> bool {
        self.nodes.iter().flatten().any(|name| name.as_str() == address)
    }
}
