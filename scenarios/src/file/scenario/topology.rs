//! The hosts of an experiment, their clocks, and the links between them.

use std::time::Duration;

use indexmap::IndexMap;
use lockstorm_sim::generation;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Scenario, Steps, WorkloadEntry};
use crate::{
    file::code::Code,
    file::{name::Name, selector::Hosts, server::Generation, slots::Slots},
    units::{Draw, Rate, Span, Step},
};

/// A Redis node, or `count` of them: `[node.m]`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Node {
    /// The number of nodes of this kind. They get the name of the table and a number from 1.
    /// Default: one node, with the name of the table alone.
    pub count: Option<u32>,
    /// The node whose replica this one is from the start. Default: none. Several replicas of
    /// several nodes of one kind follow one each, in turn. A replica has no data of its master
    /// until it is synchronized, some five seconds after the start; with
    /// `config.repl-diskless-sync-delay = "0"` at the master, as soon as it is up.
    pub replica_of: Option<Name>,
    /// True if the node belongs to a Redis Cluster; a replica of such a node does in any case. All
    /// nodes know each other from the start. Masters answer two seconds after it, as restarted
    /// masters do.
    pub cluster: bool,
    /// The slots of a master of a cluster, such as `"0-99 200"`; several masters of one kind share
    /// them. Default: an even share of the slots that no master names.
    pub slots: Option<Slots>,
    /// The generation of the node's server, such as `"valkey-9.1"`. With `--real`, one of the given
    /// `--server`s must be of it. Default: `run.server`.
    pub server: Option<Generation>,
    /// The data that a crash leaves on the node. Default: none.
    pub durability: Durability,
    /// Options as in `redis.conf`, such as `maxmemory-policy = "allkeys-lru"`.
    pub config: IndexMap<String, String>,
    /// The difference of its clocks from true time.
    pub clock: Clock,
    /// A control, not Redis: expiries follow the monotonic clock, which no operator can step.
    pub expire_by_monotonic: bool,
    /// A control, not Redis 7: the master sends replicas the time to live instead of the time of
    /// expiry, as before Redis 7.
    pub replicate_relative_ttl: bool,
    /// A mistake on purpose, not Redis: a key is gone at the very millisecond of its expiry,
    /// instead of after it.
    pub expire_at_the_millisecond: bool,
    /// A mistake on purpose, not Redis: of all writes of a script, the master sends replicas only
    /// the first command.
    pub replicate_in_part: bool,
    /// A mistake on purpose, not Redis: the node replaces a text in each script that contains it.
    /// Default: no replacement.
    pub script_edit: Option<ScriptEdit>,
}

/// A mistake in the scripts that a node runs: `script_edit = { find = "..", replace = ".." }`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScriptEdit {
    /// The text as the client sends it.
    pub find: String,
    /// The text that the node runs in its place.
    pub replace: String,
}

impl Node {
    /// Returns the generation of servers that the simulator imitates.
    pub fn generation(&self) -> generation::Generation {
        self.server.map_or_else(Default::default, Generation::simulated)
    }

    /// Returns true if the node has an option that no real server has.
    pub fn is_no_redis(&self) -> bool {
        self.expire_by_monotonic
            || self.replicate_relative_ttl
            || self.expire_at_the_millisecond
            || self.replicate_in_part
            || self.script_edit.is_some()
    }
}

/// The data that a crash leaves on a node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Durability {
    /// Nothing: the node comes up empty.
    #[default]
    None,
    /// The last snapshot.
    Rdb,
    /// Every acknowledged write (`appendfsync always`).
    AofAlways,
    /// The writes up to the sync in the last full second (`appendfsync everysec`).
    AofEverysec,
    /// Only the writes that the operating system flushed by itself; none, because the crash is
    /// assumed to come first (`appendfsync no`).
    AofNo,
}

/// A client, or `count` of them: `[client.c1]`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Client {
    /// The number of clients of this kind. They get the name of the table and a number from 1.
    /// Default: one client, with the name of the table alone.
    pub count: Option<u32>,
    /// The steps of its script, in order. Empty if it has a workload, lines or code.
    pub steps: Steps,
    /// Work that it repeats until the end of the storm, instead of steps. Default: none.
    pub workload: Option<WorkloadEntry>,
    /// Its lines of work by name, instead of steps or a workload, for a client that does several
    /// things at a time. Each line is a separate owner. All share the process, its connections
    /// and its clocks.
    pub line: IndexMap<String, Line>,
    /// The difference of its clocks from true time.
    pub clock: Clock,
    /// The nodes that it knows, or addresses (`[address.vip]`) that lead to a node. Default: the
    /// nodes that the lock lives on.
    pub nodes: Option<Vec<Name>>,
    /// The Sentinels that it asks for the lock's master, instead of knowing any nodes: `["s"]`, or
    /// some of them. Default: none. Only the production client asks Sentinels.
    pub sentinels: Option<Vec<Name>>,
    /// The user of its connections to the nodes, one of `[user.some-name]`. Default: `default`, who
    /// may do everything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<Name>,
    /// The number of times that its driver, below the lock, sends a command again over a new
    /// connection when no reply has come in time or the connection is broken. Default: never. Only
    /// models have such a driver: the production client ends a connection on the server before it
    /// sends a request again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries: Option<u32>,
    /// Code that the client runs instead of steps. No file can contain it.
    #[serde(skip)]
    pub code: Option<Code>,
}

/// A line of work of a client, or `count` of them: `[client.c1.line.audit]`. It asks for its own
/// locks, and holds and releases them independently of other lines.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Line {
    /// The number of lines of this kind. They get the name of the table and a number from 1.
    /// Default: one line, with the name of the table alone.
    pub count: Option<u32>,
    /// The steps of its script, in order. Empty if it has a workload.
    pub steps: Steps,
    /// Work that it repeats until the end of the storm, instead of steps. Default: none.
    pub workload: Option<WorkloadEntry>,
}

impl Client {
    /// Returns the number of its lines of work, at least one.
    pub fn lines(&self) -> usize {
        let counts = self.line.values().map(|line| line.count.map_or(1, |count| count as usize));
        counts.sum::<usize>().max(1)
    }
}

/// The difference of a host's clocks from true time, from the start.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Clock {
    /// The time by which the wall clock is ahead. Default: none.
    pub offset: Option<Draw<Step>>,
    /// The rate by which all its clocks run faster than true time. Default: none.
    pub rate: Option<Draw<Rate>>,
}

/// The network between all hosts: `[network]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Network {
    /// The time that a packet takes from one host to another: a fixed time, or a range from which
    /// each packet draws its own. Packets of one direction never overtake each other.
    pub latency: Draw<Span>,
}

impl Default for Network {
    /// Each packet draws its own time. With one time for all packets, clients that ask at the same
    /// time would always be served in the same order, which no network does.
    fn default() -> Network {
        let micros = |micros| Span(Duration::from_micros(micros));
        Network { latency: Draw::Range(micros(500), micros(1_500)) }
    }
}

/// The links from some hosts to others, if they differ from the rest of the network: `[link.lag]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// The sending side.
    pub from: Hosts,
    /// The receiving side.
    pub to: Hosts,
    /// The time that a packet takes in this direction.
    pub latency: Draw<Span>,
    /// True if the same holds for the other direction.
    #[serde(default)]
    pub both_ways: bool,
}

impl Scenario {
    /// Gives the server of `[run]` to the nodes that name none.
    pub(super) fn name_servers(&mut self) {
        for node in self.node.values_mut() {
            node.server = node.server.or(self.run.server);
        }
    }
}
