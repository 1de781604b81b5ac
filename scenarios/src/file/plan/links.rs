//! Links that differ from the rest of the network, and selectors resolved as far as a plan can.

use super::PlannedHost;
use crate::{
    file::{
        scenario::Scenario,
        selector::{Hosts, Selector},
    },
    judge::history::HostKind,
    units::{Draw, Span},
};

/// A link whose latency is not the network's.
#[derive(Debug, Clone)]
pub(crate) struct PlannedLink {
    /// The sending host.
    pub(crate) from: String,
    /// The receiving host.
    pub(crate) to: String,
    /// The time that a packet takes.
    pub(crate) latency: Draw<Span>,
}

pub(super) fn links(scenario: &Scenario, hosts: &[PlannedHost]) -> Vec<PlannedLink> {
    let mut links = Vec::new();
    for link in scenario.link.values() {
        let (from, to) = (fixed(scenario, hosts, &link.from), fixed(scenario, hosts, &link.to));
        let pairs = from.iter().flat_map(|from| to.iter().map(move |to| (from, to)));
        for (from, to) in pairs.filter(|(from, to)| from != to) {
            let latency = link.latency;
            links.push(PlannedLink { from: from.clone(), to: to.clone(), latency });
            if link.both_ways {
                links.push(PlannedLink { from: to.clone(), to: from.clone(), latency });
            }
        }
    }
    links
}

/// Resolves selectors that depend neither on the seed nor on the run.
fn fixed(scenario: &Scenario, hosts: &[PlannedHost], written: &Hosts) -> Vec<String> {
    let selectors = written.names().iter().filter_map(|name| name.as_str().parse::<Selector>().ok());
    selectors.flat_map(|selector| all(scenario, hosts, &selector)).collect()
}

/// Returns the candidates for a selector, as far as they are known before the run.
pub(super) fn all(scenario: &Scenario, hosts: &[PlannedHost], selector: &Selector) -> Vec<String> {
    let of = |kind: HostKind| {
        let hosts = hosts.iter().filter(|host| host.software.kind() == kind);
        hosts.map(|host| host.name.clone()).collect::<Vec<_>>()
    };
    match selector {
        Selector::Named(name) => scenario.members(name),
        // In a cluster the masters vote, so the minority is one of masters.
        Selector::Minority if scenario.is_cluster() => {
            let masters = scenario.cluster_nodes().into_iter().filter(|node| !node.slots.0.is_empty());
            masters.map(|node| node.host).collect()
        }
        Selector::Nodes
        | Selector::AnyNode
        | Selector::Minority
        | Selector::Master(_)
        | Selector::Replica(_) => of(HostKind::Node),
        Selector::Sentinels | Selector::AnySentinel | Selector::SentinelMinority | Selector::Leader => {
            of(HostKind::Sentinel)
        }
        Selector::Clients | Selector::AnyClient | Selector::Holder(_) | Selector::Waiter(_) => {
            of(HostKind::Client)
        }
    }
}
