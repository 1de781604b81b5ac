//! A scenario as it is written: what hosts there are, what they do, what goes wrong, and what is
//! expected of it.
//!
//! Nothing is drawn yet and nothing runs: the seed turns a [`Scenario`] into a
//! [`Plan`](crate::file::plan::Plan).

mod address;
mod boundary;
mod builder;
pub(crate) mod cluster;
mod driver;
mod error;
mod form;
mod formula;
mod limits;
mod load;
mod lock;
mod measure;
mod merge;
mod one_name;
mod places;
mod sentinel;
mod step;
mod subject;
mod sweep;
mod targets;
mod ticks;
mod topology;
pub mod traits;
mod user;
mod validate;
mod workload;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{file::fault::Fault, judge::verdict::Expectation, units::Span};

pub use crate::judge::history::Claim;

pub use address::Address;
pub use boundary::Boundary;
pub use builder::ScenarioBuilder;
pub use cluster::ClusterNode;
pub use error::{ScenarioError, nearest};
pub use form::{fault as fault_form, json_schema, trait_values};
pub use formula::Formula;
pub use limits::Wrong;
pub use load::{Source, Variant, load, parse};
pub use lock::{Fence, Lock, LockKind, Locks, Resource, Sync};
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

/// An experiment: everything that a scenario file says, with one variant laid over it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Scenario {
    /// What the experiment is about, in a sentence or two.
    pub about: String,
    /// The published claim that it decides; none if left out.
    pub claim: Option<Claim>,
    /// What came out otherwise than expected, and why; nothing if left out.
    pub finding: Option<String>,
    /// How long it lasts.
    pub run: Run,
    /// The Redis nodes, by name. One at least must be given.
    pub node: IndexMap<String, Node>,
    /// The Sentinels, by name.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub sentinel: IndexMap<String, Sentinel>,
    /// Addresses that are no host's own, by name.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub address: address::Addresses,
    /// Users of the nodes with rights of their own, by name.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub user: user::Users,
    /// The clients, by name. One at least must be given.
    pub client: IndexMap<String, Client>,
    /// The network between all hosts.
    pub network: Network,
    /// Links that differ from the rest of the network, by any name.
    pub link: IndexMap<String, Link>,
    /// The lock on trial, or several.
    pub lock: Locks,
    /// The resource it guards; none if left out.
    pub resource: Option<Resource>,
    /// What goes wrong, by any name.
    pub fault: IndexMap<String, Fault>,
    /// The expected verdict of each checker that matters here (`lockstorm list checkers`).
    pub expect: IndexMap<String, Expectation>,
    /// What real servers do otherwise than `expect` says of the simulated ones, by checker, and
    /// why: `real.l2 = { comes = "holds", because = ".." }`. Only `lockstorm claims --real` looks
    /// at it.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub real: IndexMap<String, Otherwise>,
    /// Where a verdict changes, if the experiment is about that; nowhere if left out.
    pub boundary: Option<Boundary>,
    /// What measures should come to, by checker and name: `progress.stalled = { formula = "lease -
    /// 1s" }`. A run in virtual time in which one is another is not as expected.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub measure: Measures,
    /// Keys that take several values, by their paths: the experiment is repeated at every point of
    /// their grid. A list of values, or `{ from, to, step }`, or `{ from, to, points }`; perhaps
    /// with a `name` for the axis.
    #[schemars(with = "IndexMap<String, serde_json::Value>")]
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub sweep: IndexMap<String, serde_json::Value>,
    /// The checker whose violations a picture of the sweep counts; the first that was violated, if
    /// left out.
    pub plot: Option<String>,
    /// Conditions under which the experiment is repeated: each is laid over the rest, key by key;
    /// its `expect` replaces the common one, and with it `real`; its `without = ["fault.pause"]`
    /// names keys that it leaves out. A scenario with variants runs each of them.
    #[schemars(with = "IndexMap<String, serde_json::Map<String, serde_json::Value>>")]
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub variant: IndexMap<String, serde_json::Value>,
}

impl Scenario {
    /// The nodes that a lock lives on, each without its replicas: those that the file names, or
    /// every master.
    pub fn lock_nodes(&self, lock: &Lock) -> Vec<String> {
        let masters = self.node.iter().filter(|(_, node)| node.replica_of.is_none());
        match &lock.nodes {
            None => masters.flat_map(|(name, node)| group(name, node.count)).collect(),
            Some(names) => names.iter().flat_map(|name| self.members(name.as_str())).collect(),
        }
    }

    /// The hosts, and groups of them, whose clocks differ from true time.
    pub fn clocks(&self) -> impl Iterator<Item = &String> {
        let nodes = self.node.iter().map(|(name, node)| (name, &node.clock));
        let sentinels = self.sentinel.iter().map(|(name, sentinel)| (name, &sentinel.clock));
        let clients = self.client.iter().map(|(name, client)| (name, &client.clock));
        let all = nodes.chain(sentinels).chain(clients);
        all.filter(|(_, clock)| **clock != Clock::default()).map(|(name, _)| name)
    }

    /// The clocks of a host, or of a group of them.
    pub fn clock_mut(&mut self, name: &str) -> Option<&mut Clock> {
        let node = self.node.get_mut(name).map(|node| &mut node.clock);
        let sentinel = self.sentinel.get_mut(name).map(|sentinel| &mut sentinel.clock);
        let client = self.client.get_mut(name).map(|client| &mut client.clock);
        node.or(sentinel).or(client)
    }

    /// The hosts that a name stands for: itself, or the members of the group it names.
    pub fn members(&self, name: &str) -> Vec<String> {
        let count = self.node.get(name).map(|node| node.count);
        let count = count.or_else(|| self.client.get(name).map(|client| client.count));
        let count = count.or_else(|| self.sentinel.get(name).map(|sentinel| sentinel.count));
        group(name, count.flatten())
    }
}

/// What a checker finds of real servers, where that is not what it finds of simulated ones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Otherwise {
    /// The verdict there; one or the other by chance if left out, because it depends on times that
    /// no real process keeps to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comes: Option<Expectation>,
    /// Why it is another one.
    pub because: String,
}

/// How long an experiment lasts: `[run]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Run {
    /// How long faults rage and workloads work, a day at most. When it ends, what can be undone of
    /// the faults is undone.
    pub storm: Span,
    /// How long it goes on afterwards, a day at most, for the locks to show that they still can be
    /// had.
    pub calm: Span,
    /// How many seeds a plain `run` tries, from 0; one if left out, because most experiments draw
    /// nothing.
    pub seeds: u64,
    /// How long, once the storm is over, a lock that no owner believes it holds may keep its
    /// waiters waiting; 60 s if left out. Beyond it `progress` is violated. `latch`, `rate` and
    /// `together` have the same bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<Span>,
    /// Lets lockstorm ask for a lock with a client of its own if in the calm no other owner was
    /// granted it, has it or waits for it; `true` if left out. So `progress` is decided also where
    /// all work is over before. It asks when the longest lease of the file has passed since the
    /// storm.
    #[serde(skip_serializing_if = "is_true")]
    pub probe: bool,
}

fn is_true(value: &bool) -> bool {
    *value
}

impl Default for Run {
    fn default() -> Run {
        Run { storm: Span::secs(60), calm: Span::secs(0), seeds: 1, progress: None, probe: true }
    }
}

/// The most seeds that can be tried at once: every result is kept until the end.
pub const SEEDS_MAX: u64 = 1_000_000;

/// Names that the laboratory uses itself: the guarded resource.
pub const RESERVED: &[&str] = &["resource"];

/// A name of the format as files write it.
pub fn word(name: impl Serialize) -> String {
    serde_json::to_value(name).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

/// The hosts of a group: `n` itself, or `n1`, `n2`, .. where a count is given.
pub fn group(name: &str, count: Option<u32>) -> Vec<String> {
    match count {
        None => vec![name.to_owned()],
        Some(count) => (1..=count).map(|number| format!("{name}{number}")).collect(),
    }
}
