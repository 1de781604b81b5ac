//! The Sentinels of an experiment.

use std::num::NonZeroU32;

use indexmap::IndexMap;
use lockstorm_sim::{
    config::{Config, file::quoted, options},
    generation::{self, Feature},
    sentinel::{OPTIONS, Scope, check_option},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Algorithm, Client, Clock, Scenario, error::Mistake, group, places::Places};
use crate::{
    file::{
        fault::{Failover, FaultKind, How},
        name::Name,
        selector::{Hosts, Selector},
        server::Generation,
    },
    units::Span,
};

/// A Sentinel, or `count` of them, with their common settings: `[sentinel.s]`. A Sentinel keeps its
/// state over a crash, in its configuration file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Sentinel {
    /// The number of Sentinels of this kind. They get the name of the table and a number from 1.
    /// Default: one Sentinel, with the name of the table alone.
    pub count: Option<u32>,
    /// The masters that they watch, by the names of their nodes. Default: every master. A master
    /// keeps this name even after another node has taken its place.
    pub watches: Option<Vec<Name>>,
    /// The number of Sentinels that must see a master down. Default: the majority of `count`.
    pub quorum: Option<u32>,
    /// The time for which a node may be silent until it counts as down (`down-after-milliseconds`).
    /// Default: 30 s.
    pub down_after: Option<Span>,
    /// The longest time of a failover, and half of the time until the next attempt
    /// (`failover-timeout`). Default: 3 min.
    pub failover_timeout: Option<Span>,
    /// The number of replicas that are reconfigured at a time to follow the new master. Default:
    /// one.
    pub parallel_syncs: Option<NonZeroU32>,
    /// The generation of the Sentinel, such as `"valkey-9.1"`. Default: Redis 8.2.
    pub server: Option<Generation>,
    /// Other options as in `sentinel.conf`, with their values there: of the Sentinel
    /// (`sentinel-pass = "secret"`), of each master that it watches (`auth-pass = "secret"`,
    /// `rename-command = "SLAVEOF FOLLOW"`), or of the server that every Sentinel is
    /// (`requirepass`, `maxclients`, `timeout`).
    pub config: IndexMap<String, String>,
    /// The difference of its clocks from true time.
    pub clock: Clock,
}

impl Sentinel {
    /// Returns the initial configuration file of the Sentinel on this host.
    pub fn file(&self, scenario: &Scenario, host: &str) -> String {
        let mut file = format!("sentinel resolve-hostnames yes\nsentinel announce-ip {host}\n");
        let scope =
            |option: &str| OPTIONS.iter().find(|(name, ..)| *name == option).map(|(_, scope, _)| *scope);
        for (option, value) in &self.config {
            match scope(option) {
                Some(Scope::Sentinel) => file += &format!("sentinel {option} {value}\n"),
                Some(Scope::Master) => {}
                None => file += &format!("{option} {}\n", quoted(value)),
            }
        }
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
            for (name, value) in self.config.iter().filter(|(name, _)| scope(name) == Some(Scope::Master)) {
                option(name, Some(value.clone()));
            }
        }
        file
    }

    /// Returns those of its options that every server has.
    pub fn options_of_servers(&self) -> impl Iterator<Item = (&str, &str)> {
        let all = self.config.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        all.filter(|(name, _)| OF_SERVERS.contains(name))
    }

    /// Returns the generation of Sentinels that the simulator imitates.
    pub fn generation(&self) -> generation::Generation {
        self.server.map_or_else(Default::default, Generation::simulated)
    }

    /// Returns the nodes that are its masters at the start.
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

/// The options of any server that matter for a Sentinel, which has neither data nor replicas.
const OF_SERVERS: [&str; 3] = ["maxclients", "requirepass", "timeout"];

/// The options that must not be written in `config`, with the reason.
const ELSEWHERE: [(&str, &str); 6] = [
    ("announce-hostnames", BY_NAME),
    ("announce-ip", BY_NAME),
    ("resolve-hostnames", BY_NAME),
    ("down-after-milliseconds", "write `down_after` of the Sentinel instead"),
    ("failover-timeout", "write `failover_timeout` of the Sentinel instead"),
    ("parallel-syncs", "write `parallel_syncs` of the Sentinel instead"),
];

const BY_NAME: &str = "hosts of a scenario know each other by their names, and a Sentinel is told so";

/// Checks that the other options of a Sentinel exist, and that their values are valid.
pub(super) fn check_config(name: &str, sentinel: &Sentinel, places: &Places<'_, '_>) -> Result<(), Mistake> {
    for (option, value) in &sentinel.config {
        let path = ["sentinel", name, "config", option];
        if let Some((_, why)) = ELSEWHERE.iter().find(|(elsewhere, _)| elsewhere == option) {
            let message = format!("sentinel {name}: `{option}` is no key of `config`: {why}");
            return Err(Mistake::at(places.of_key(&path), message));
        }
        let checked = match options::find(option).filter(|_| OF_SERVERS.contains(&option.as_str())) {
            Some(known) => known.check(&Config::default(), value).map(|_| ()),
            None if OPTIONS.iter().any(|(known, ..)| known == option) => check_option(option, value),
            None => {
                let of_sentinels = OPTIONS.iter().map(|(known, ..)| *known);
                let known = of_sentinels.filter(|known| !ELSEWHERE.iter().any(|(other, _)| other == known));
                let what = "option of a Sentinel";
                return Err(Mistake::unknown(places.of_key(&path), what, option, known.chain(OF_SERVERS)));
            }
        };
        checked.map_err(|why| {
            let message = format!("sentinel {name}: {option} = {value:?}: {why}");
            Mistake::at(places.of_value(&path), message)
        })?;
    }
    Ok(())
}

/// Checks a failover by Sentinels: they watch the master, and can coordinate the failover if they
/// are to.
pub(super) fn check_fault(
    scenario: &Scenario,
    places: &Places<'_, '_>,
    name: &str,
    kind: &FaultKind,
) -> Result<(), Mistake> {
    let FaultKind::Failover(failover) = kind else { return Ok(()) };
    let of_key = |key: &str| places.of_key(&["fault", name, "failover", key]);
    let Failover { replica, how, sentinel, master, coordinated } = failover;
    let Some(sentinels) = sentinel else {
        if let Some(master) = master {
            let message = "a Sentinel replaces a master: say which one does, `sentinel = ..`";
            return Err(Mistake::at(master.span(), message));
        }
        if *coordinated {
            let message = "only Sentinels have coordinated failovers: add `sentinel = ..`";
            return Err(Mistake::at(of_key("coordinated"), message));
        }
        if replica.is_none() {
            let message = format!(
                "fault `{name}` needs the `replica` of a cluster, or a `sentinel` and the `master` that it replaces"
            );
            return Err(Mistake::at(places.of_key(&["fault", name, "failover"]), message));
        }
        return Ok(());
    };
    if replica.is_some() {
        let message = format!("fault `{name}` has both `replica` and `sentinel`: give one");
        return Err(Mistake::at(of_key("replica"), message));
    }
    if *how != How::default() {
        return Err(Mistake::at(of_key("how"), "`how` is about clusters: a Sentinel has `coordinated`"));
    }
    let Some(master) = master else {
        let message = format!("fault `{name}` does not say what the Sentinel replaces: add `master = ..`");
        return Err(Mistake::at(of_key("sentinel"), message));
    };
    for (group, one) in selected(scenario, sentinels)? {
        if !one.masters(scenario).iter().any(|watched| watched == master.as_str()) {
            let message = format!("Sentinel {group} watches no master `{}`", master.as_str());
            return Err(Mistake::at(master.span(), message));
        }
        if *coordinated && !one.generation().has(Feature::CoordinatedFailover) {
            let message = format!(
                "SENTINEL FAILOVER has no COORDINATED on Sentinel {group}: give it server = \"valkey-9.1\""
            );
            return Err(Mistake::at(of_key("coordinated"), message));
        }
    }
    Ok(())
}

/// Returns the groups of Sentinels from which a fault selects. The names are already known to
/// exist.
fn selected<'a>(scenario: &'a Scenario, hosts: &Hosts) -> Result<Vec<(&'a String, &'a Sentinel)>, Mistake> {
    let mut all = Vec::new();
    for name in hosts.names() {
        let selector = name.as_str().parse::<Selector>();
        let is_meant = |group: &str| match &selector {
            Ok(Selector::Named(host)) => group == host || scenario.members(group).contains(host),
            Ok(
                Selector::Sentinels | Selector::AnySentinel | Selector::Leader | Selector::SentinelMinority,
            ) => true,
            _ => false,
        };
        let before = all.len();
        all.extend(scenario.sentinel.iter().filter(|(group, _)| is_meant(group.as_str())));
        if all.len() == before {
            let message = format!("this failover is by a Sentinel, and `{}` is none", name.as_str());
            return Err(Mistake::at(name.span(), message));
        }
    }
    Ok(all)
}

impl Client {
    /// Returns the hosts of the Sentinels that it asks for masters.
    pub fn asked_sentinels(&self, scenario: &Scenario) -> Vec<String> {
        let names = self.sentinels.iter().flatten();
        names.flat_map(|name| scenario.members(name.as_str())).collect()
    }
}

/// Checks that the Sentinels of a client exist, and that a client with Sentinels is one that can
/// ask them.
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
