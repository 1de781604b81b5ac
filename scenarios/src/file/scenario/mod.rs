//! A scenario as it is written: the hosts, their work, the faults, and the expected verdicts.
//!
//! A scenario draws nothing and runs nothing: a seed turns a [`Scenario`] into a
//! [`Plan`](crate::file::plan::Plan).

mod address;
mod boundary;
mod builder;
pub(crate) mod cluster;
#[cfg(feature = "miette")]
mod diagnostic;
mod driver;
mod error;
mod form;
mod formula;
mod hunt;
mod limits;
mod load;
mod lock;
mod measure;
mod merge;
mod one_name;
mod places;
mod replicas;
mod sentinel;
mod step;
mod step_kind;
mod subject;
mod sweep;
mod targets;
mod ticks;
mod topology;
pub(crate) mod trait_commands;
pub mod traits;
mod user;
mod validate;
mod workload;

use indexmap::{IndexMap, IndexSet};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    file::{fault::Fault, server::Generation},
    judge::verdict::Expectation,
    units::Span,
};

pub use crate::judge::history::{Claim, HuntedVariants};

pub use address::Address;
pub use boundary::Boundary;
pub use builder::ScenarioBuilder;
pub use cluster::ClusterNode;
pub use error::{ScenarioError, nearest};
pub use form::{fault as fault_form, json_schema, trait_values};
pub use formula::Formula;
pub use hunt::{Hunt, HuntedKind};
pub use limits::Wrong;
pub use load::{Source, Variant, load, parse};
pub use lock::{Fence, Lock, LockKind, Locks, Resource, Sync, Synced};
pub use measure::{Compared, Measures, Stated};
pub use sentinel::Sentinel;
pub use step::{
    Acquire, Asks, Block, Check, Extend, Poll, Release, Repeat, Sleep, Step, StepEntry, StepKind, Steps,
    TryAcquire, Work, Write,
};
pub use subject::{Algorithm, Subject, TABLE};
pub use sweep::{Coordinate, Setting};
pub use ticks::Ticks;
pub use topology::{Client, Clock, Durability, Line, Link, Network, Node, ScriptEdit};
pub use user::User;
pub use workload::{Contend, Count, Take, Workload, WorkloadEntry, WorkloadKind};

/// An experiment: the contents of a scenario file, with one variant laid over it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Scenario {
    /// The subject of the experiment, in a sentence or two.
    pub about: String,
    /// The published claim that it decides. Default: none.
    pub claim: Option<Claim>,
    /// The outcome that differs from what was expected, and the reason. Default: none.
    pub finding: Option<String>,
    /// The length of the experiment.
    pub run: Run,
    /// The Redis nodes, by name. At least one is required.
    pub node: IndexMap<String, Node>,
    /// The Sentinels, by name.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub sentinel: IndexMap<String, Sentinel>,
    /// Addresses that belong to no host, by name.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub address: address::Addresses,
    /// Users of the nodes with their own rights, by name.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub user: user::Users,
    /// The clients, by name. At least one is required.
    pub client: IndexMap<String, Client>,
    /// The network between all hosts.
    pub network: Network,
    /// Links that differ from the rest of the network, by any name.
    pub link: IndexMap<String, Link>,
    /// The lock on trial, or several.
    pub lock: Locks,
    /// The resource that the lock guards. Default: none.
    pub resource: Option<Resource>,
    /// The faults, by any name.
    pub fault: IndexMap<String, Fault>,
    /// The expected verdict of each checker that matters here (`lockstorm list checkers`).
    pub expect: IndexMap<String, Expectation>,
    /// The checkers that find something else on real servers than `expect` says of the simulated
    /// ones, and the reason: `real.l2 = { comes = "holds", because = ".." }`. Only `lockstorm
    /// claims --real` reads this.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub real: IndexMap<String, Otherwise>,
    /// The value of a key at which a verdict changes. Default: none.
    pub boundary: Option<Boundary>,
    /// The faults that `lockstorm hunt` may place. Default: one fault of any host.
    pub hunt: Option<Hunt>,
    /// The formulas that measures must equal, by checker and name: `progress.stalled = { formula =
    /// "lease - 1s" }`. A run in virtual time with another value is not as expected.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub measure: Measures,
    /// Keys that take several values, by their paths. The experiment is repeated at every point of
    /// their grid. The values are a list, or `{ from, to, step }`, or `{ from, to, points }`; a
    /// `name` for the axis is optional.
    #[schemars(with = "IndexMap<String, serde_json::Value>")]
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub sweep: IndexMap<String, serde_json::Value>,
    /// The checker whose violations a picture of the sweep counts. Default: the first that was
    /// violated.
    pub plot: Option<String>,
    /// Conditions under which the experiment is repeated. Each variant is laid over the rest, key
    /// by key. Its `expect` replaces the common one, and with it `real`; its `without =
    /// ["fault.pause"]` removes the keys that it names. A scenario with variants runs each of them.
    #[schemars(with = "IndexMap<String, serde_json::Map<String, serde_json::Value>>")]
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub variant: IndexMap<String, serde_json::Value>,
}

impl Scenario {
    /// Returns the nodes that a lock lives on, without their replicas: the nodes that the file
    /// names, or all masters.
    pub fn lock_nodes(&self, lock: &Lock) -> Vec<String> {
        let masters = self.node.iter().filter(|(_, node)| node.replica_of.is_none());
        match &lock.nodes {
            None => masters.flat_map(|(name, node)| group(name, node.count)).collect(),
            Some(names) => names.iter().flat_map(|name| self.members(name.as_str())).collect(),
        }
    }

    /// Returns the masters of the nodes that the lock lives on.
    fn lock_masters(&self, lock: &Lock) -> IndexSet<String> {
        self.lock_nodes(lock).iter().map(|node| self.first_master_of(node)).collect()
    }

    /// Returns the hosts, and groups of hosts, whose clocks differ from true time.
    pub fn clocks(&self) -> impl Iterator<Item = &String> {
        let nodes = self.node.iter().map(|(name, node)| (name, &node.clock));
        let sentinels = self.sentinel.iter().map(|(name, sentinel)| (name, &sentinel.clock));
        let clients = self.client.iter().map(|(name, client)| (name, &client.clock));
        let all = nodes.chain(sentinels).chain(clients);
        all.filter(|(_, clock)| **clock != Clock::default()).map(|(name, _)| name)
    }

    /// Returns the clocks of a host or group, or `None` if no host has this name.
    pub fn clock_mut(&mut self, name: &str) -> Option<&mut Clock> {
        let node = self.node.get_mut(name).map(|node| &mut node.clock);
        let sentinel = self.sentinel.get_mut(name).map(|sentinel| &mut sentinel.clock);
        let client = self.client.get_mut(name).map(|client| &mut client.clock);
        node.or(sentinel).or(client)
    }

    /// Returns the hosts behind a name: the host itself, or the members of the group.
    pub fn members(&self, name: &str) -> Vec<String> {
        let count = self.node.get(name).map(|node| node.count);
        let count = count.or_else(|| self.client.get(name).map(|client| client.count));
        let count = count.or_else(|| self.sentinel.get(name).map(|sentinel| sentinel.count));
        group(name, count.flatten())
    }
}

/// A verdict of a checker on real servers that differs from its verdict on simulated ones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Otherwise {
    /// The verdict on real servers. Default: either verdict, by chance, because it depends on times
    /// that no real process keeps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comes: Option<Expectation>,
    /// The reason for the difference.
    pub because: String,
}

/// The length of an experiment: `[run]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Run {
    /// The length of the storm, in which workloads run and repeated faults begin; at most a day. A
    /// fault with `for` ends with the storm at the latest, or at once if it begins later. The
    /// end of the storm does not end a fault without `for`.
    pub storm: Span,
    /// The length of the calm after the storm, in which clients can show that the locks can still
    /// be acquired; at most a day. Default: none; if `[expect]` has `progress`, the longest lease
    /// and then `run.progress`, so that the verdict is decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calm: Option<Span>,
    /// The number of seeds, from 0, that a plain `run` tries. Default: one, because most
    /// experiments draw nothing.
    pub seeds: u64,
    /// The longest time after the storm that waiters may wait for a lock that no owner believes it
    /// holds. Default: 60 s. Beyond it `progress` is violated. `latch`, `rate` and `together` have
    /// the same bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<Span>,
    /// Lets lockstorm's own client ask for a lock if in the calm no other owner was granted it,
    /// holds it or waits for it. Default: `true`. In this way `progress` is decided even if all
    /// work ends earlier. The client asks once the longest lease of the file has passed since the
    /// end of the storm.
    #[serde(skip_serializing_if = "is_true")]
    pub probe: bool,
    /// The generation of the servers of all nodes and Sentinels that name none, such as
    /// `"valkey-9.1"`. Default: Redis 8.2; with `--real` the server of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<Generation>,
}

fn is_true(value: &bool) -> bool {
    *value
}

impl Default for Run {
    fn default() -> Run {
        Run { storm: Span::secs(60), calm: None, seeds: 1, progress: None, probe: true, server: None }
    }
}

/// The most seeds that one command tries. All results are kept in memory until the end.
pub(crate) const SEEDS_MAX: u64 = 1_000_000;

/// The longest storm, and the longest calm: a longer run would not end while a person waits.
pub(crate) const PHASE_MAX: Span = Span::secs(24 * 3600);

/// The names that lockstorm reserves for itself: the guarded resource.
pub(crate) const RESERVED: &[&str] = &["resource"];

/// Returns the spelling of a value in scenario files, such as `read-write`.
pub fn word(name: impl Serialize) -> String {
    serde_json::to_value(name).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

/// Returns the hosts of a group: `n` itself, or `n1`, `n2`, .. if there is a count.
pub fn group(name: &str, count: Option<u32>) -> Vec<String> {
    match count {
        None => vec![name.to_owned()],
        Some(count) => (1..=count).map(|number| format!("{name}{number}")).collect(),
    }
}
