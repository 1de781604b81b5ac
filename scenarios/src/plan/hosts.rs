//! Groups spelled out, clocks drawn, selectors of links resolved.

use std::fmt;

use lockstorm_sim::world::Entropy;

use super::{PlannedLine, script};
use crate::{
    history::HostKind,
    scenario::{Client, Clock, Node, Scenario, group, word},
    selector::{Hosts, Selector},
    units::{Draw, Rate, Span, Step},
};

/// A host of the run.
#[derive(Debug, Clone)]
pub struct PlannedHost {
    /// Its name.
    pub name: String,
    /// How far its wall clock is ahead.
    pub offset: Step,
    /// How much faster than true time its clocks run.
    pub rate: Rate,
    /// What runs on it.
    pub software: Software,
}

/// What runs on a host.
#[derive(Debug, Clone)]
pub enum Software {
    /// A Redis node.
    Node(Node),
    /// A client with its script or its workload.
    Client {
        /// As written.
        client: Client,
        /// What it does, drawn: its lines of work, of which there is at least one.
        lines: Vec<PlannedLine>,
    },
    /// The resource that the lock guards.
    Resource,
}

impl Software {
    /// What the history calls a host with it.
    pub fn kind(&self) -> HostKind {
        match self {
            Software::Node(_) => HostKind::Node,
            Software::Client { .. } => HostKind::Client,
            Software::Resource => HostKind::Resource,
        }
    }
}

/// A link whose latency is not the network's.
#[derive(Debug, Clone)]
pub struct PlannedLink {
    /// The sending host.
    pub from: String,
    /// The receiving host.
    pub to: String,
    /// How long a packet takes.
    pub latency: Draw<Span>,
}

pub(super) fn draw(scenario: &Scenario, entropy: &Entropy) -> Vec<PlannedHost> {
    let mut hosts = Vec::new();
    for (name, node) in &scenario.node {
        for name in group(name, node.count) {
            hosts.push(host(entropy, name, &node.clock, Software::Node(node.clone())));
        }
    }
    for (name, client) in &scenario.client {
        for name in group(name, client.count) {
            let lines = script::lines(scenario, client, &name, entropy);
            let software = Software::Client { client: client.clone(), lines };
            hosts.push(host(entropy, name, &client.clock, software));
        }
    }
    if scenario.resource.is_some() {
        hosts.push(host(entropy, "resource".to_owned(), &Clock::default(), Software::Resource));
    }
    hosts
}

fn host(entropy: &Entropy, name: String, clock: &Clock, software: Software) -> PlannedHost {
    let mut stream = entropy.stream(&format!("plan/clock/{name}"));
    let offset = clock.offset.unwrap_or_default().at(stream.unit());
    let rate = clock.rate.unwrap_or_default().at(stream.unit());
    PlannedHost { name, offset, rate, software }
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

/// The hosts of selectors that neither the seed nor the run decides.
fn fixed(scenario: &Scenario, hosts: &[PlannedHost], written: &Hosts) -> Vec<String> {
    let selectors = written.names().iter().filter_map(|name| name.as_str().parse::<Selector>().ok());
    selectors.flat_map(|selector| all(scenario, hosts, &selector)).collect()
}

/// The hosts of a selector, as far as they are known before the run.
pub(super) fn all(scenario: &Scenario, hosts: &[PlannedHost], selector: &Selector) -> Vec<String> {
    let of = |kind: HostKind| {
        let hosts = hosts.iter().filter(|host| host.software.kind() == kind);
        hosts.map(|host| host.name.clone()).collect::<Vec<_>>()
    };
    match selector {
        Selector::Named(name) => scenario.members(name),
        Selector::Nodes
        | Selector::AnyNode
        | Selector::Minority
        | Selector::Master(_)
        | Selector::Replica(_) => of(HostKind::Node),
        Selector::Clients | Selector::AnyClient | Selector::Holder(_) | Selector::Waiter(_) => {
            of(HostKind::Client)
        }
    }
}

impl fmt::Display for PlannedHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, word(self.software.kind()))?;
        if self.offset != Step::default() {
            write!(f, ", wall clock {} ahead", self.offset)?;
        }
        if self.rate != Rate::default() {
            write!(f, ", clocks {} fast", self.rate)?;
        }
        Ok(())
    }
}
