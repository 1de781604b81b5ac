//! Sentinels of an experiment.

use std::num::NonZeroU32;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Algorithm, Client, Clock, Scenario, error::Mistake, group};
use crate::{name::Name, units::Span};

/// A Sentinel, or `count` of them, with their common settings: `[sentinel.s]`. Each keeps its state over a crash, in the file that
/// it has.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Sentinel {
    /// How many Sentinels of this kind there are; they are called by the name and a number from 1 then.
    pub count: Option<u32>,
    /// The masters that they watch, by the names of their nodes; every master if left out. A master is known by this name, also when
    /// another node has taken its place.
    pub watches: Option<Vec<Name>>,
    /// How many must see a master down; the majority of `count` if left out.
    pub quorum: Option<u32>,
    /// How long a node may be silent until it counts as down (`down-after-milliseconds`); 30 s if left out.
    pub down_after: Option<Span>,
    /// How long a failover may take, and half of the time until the next attempt (`failover-timeout`); 3 min if left out.
    pub failover_timeout: Option<Span>,
    /// How many replicas are told at a time to follow the new master; one if left out.
    pub parallel_syncs: Option<NonZeroU32>,
    /// How its clocks differ from true time.
    pub clock: Clock,
}

impl Sentinel {
    /// The configuration file of the one on this host.
    pub fn file(&self, scenario: &Scenario, host: &str) -> String {
        let mut file = format!("sentinel resolve-hostnames yes\nsentinel announce-ip {host}\n");
        let quorum = self.quorum.unwrap_or(self.count.unwrap_or(1) / 2 + 1);
        for master in self.masters(scenario) {
            file += &format!("sentinel monitor {master} {master} 6379 {quorum}\n");
            let mut option = |name: &str, value: Option<String>| {
                file.extend(value.map(|value| format!("sentinel {name} {master} {value}\n")));
            };
            let ms = |span: Span| span.0.as_millis().to_string();
            option("down-after-milliseconds", self.down_after.map(ms));
            option("failover-timeout", self.failover_timeout.map(ms));
            option("parallel-syncs", self.parallel_syncs.map(|count| count.to_string()));
        }
        file
    }

    /// The nodes that are the masters at first.
    fn masters(&self, scenario: &Scenario) -> Vec<String> {
        let all = || {
            let masters = scenario.node.iter().filter(|(_, node)| node.replica_of.is_none());
            masters.flat_map(|(name, node)| group(name, node.count)).collect()
        };
        let named =
            |names: &Vec<Name>| names.iter().flat_map(|name| scenario.members(name.as_str())).collect();
        self.watches.as_ref().map_or_else(all, named)
    }
}

impl Client {
    /// The Sentinels that it asks for the masters, by their hosts.
    pub fn asked_sentinels(&self, scenario: &Scenario) -> Vec<String> {
        let names = self.sentinels.iter().flatten();
        names.flat_map(|name| scenario.members(name.as_str())).collect()
    }
}

/// That the Sentinels which a client asks exist, and that it is a client which asks.
pub(super) fn check_client(scenario: &Scenario, name: &str, client: &Client) -> Result<(), Mistake> {
    let known = || scenario.sentinel.iter().flat_map(|(name, one)| group(name, one.count));
    for asked in client.sentinels.iter().flatten() {
        let is_group = scenario.sentinel.contains_key(asked.as_str());
        if !is_group && !known().any(|host| host == asked.as_str()) {
            let names: Vec<String> = known().collect();
            let names = names.iter().map(String::as_str);
            return Err(Mistake::unknown(asked.span(), "Sentinel", asked.as_str(), names));
        }
        if client.nodes.is_some() {
            let message = format!("client {name} finds the nodes by Sentinels: it has no `nodes` of its own");
            return Err(Mistake::at(asked.span(), message));
        }
        let asks =
            |lock: &super::Lock| lock.subject.algorithm == Algorithm::Client && !lock.kind.needs_quorum();
        if !scenario.lock.values().all(asks) {
            let message = "the production client asks Sentinels for the one master of a lock; no model does";
            return Err(Mistake::at(asked.span(), message));
        }
    }
    Ok(())
}
