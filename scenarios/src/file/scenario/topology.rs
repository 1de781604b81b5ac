//! The hosts of an experiment, their clocks, and the links between them.

use std::time::Duration;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Steps, WorkloadEntry};
use crate::{
    file::code::Code,
    file::{name::Name, selector::Hosts, slots::Slots},
    units::{Draw, Rate, Span, Step},
};

/// A Redis node, or `count` of them: `[node.m]`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Node {
    /// How many nodes of this kind there are, called by the name and a number from 1; one, called
    /// by the name alone, if left out.
    pub count: Option<u32>,
    /// The node whose replica this one is from the start; none if left out. Replicas of several
    /// nodes of one kind follow one each, in turn. A replica has nothing of its master until it is
    /// synchronized, some five seconds after the start: as soon as it is up if the master has
    /// `config.repl-diskless-sync-delay = "0"`.
    pub replica_of: Option<Name>,
    /// Whether the node is one of a Redis Cluster; replicas of such a node are. All know each other
    /// from the start, and masters answer two seconds after it, as masters do that have been
    /// restarted.
    pub cluster: bool,
    /// The slots of a master of a cluster, such as `"0-99 200"`, which several of one kind share;
    /// an even share of those that no master names, if left out.
    pub slots: Option<Slots>,
    /// What a crash leaves. Nothing, unless said otherwise.
    pub durability: Durability,
    /// Options as in `redis.conf`, such as `maxmemory-policy = "allkeys-lru"`.
    pub config: IndexMap<String, String>,
    /// How its clocks differ from true time.
    pub clock: Clock,
    /// A control, not Redis: expiries count on the monotonic clock, which no operator can step.
    pub expire_by_monotonic: bool,
    /// A control, not Redis 7: replicas are sent the time to live instead of the time to die, as
    /// before Redis 7.
    pub replicate_relative_ttl: bool,
    /// A mistake on purpose, not Redis: a key is gone at the very millisecond it expires at,
    /// instead of after it.
    pub expire_at_the_millisecond: bool,
    /// A mistake on purpose, not Redis: of all that a script wrote, replicas are sent the first
    /// command only.
    pub replicate_in_part: bool,
    /// A mistake on purpose, not Redis: wherever a script has a certain text, the node runs another
    /// one; nowhere if left out.
    pub script_edit: Option<ScriptEdit>,
}

/// A mistake in the scripts that a node runs: `script_edit = { find = "..", replace = ".." }`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScriptEdit {
    /// The text as the client sends it.
    pub find: String,
    /// What the node runs in its place.
    pub replace: String,
}

impl Node {
    /// Whether it is to do what no Redis 7 does.
    pub fn is_no_redis(&self) -> bool {
        self.expire_by_monotonic
            || self.replicate_relative_ttl
            || self.expire_at_the_millisecond
            || self.replicate_in_part
            || self.script_edit.is_some()
    }
}

/// What a crash of a node leaves.
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
    /// What was synced with the last full second (`appendfsync everysec`).
    AofEverysec,
    /// Only what the operating system wrote by itself, which a crash is assumed to beat
    /// (`appendfsync no`).
    AofNo,
}

/// A client, or `count` of them: `[client.c1]`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Client {
    /// How many clients of this kind there are, called by the name and a number from 1; one, called
    /// by the name alone, if left out.
    pub count: Option<u32>,
    /// What it does, step by step.
    pub steps: Steps,
    /// What it does over and over, until the end of the storm, instead of steps; nothing if left
    /// out.
    pub workload: Option<WorkloadEntry>,
    /// Its lines of work by name, instead of steps or a workload, where it does several things at a
    /// time: each is an owner of its own, and all share the process, its connections and its
    /// clocks.
    pub line: IndexMap<String, Line>,
    /// How its clocks differ from true time.
    pub clock: Clock,
    /// The nodes it knows of, where it does not know all, or addresses (`[address.vip]`) that lead
    /// to one; those that the lock lives on if left out.
    pub nodes: Option<Vec<Name>>,
    /// The Sentinels that it asks for the lock's master, instead of knowing any nodes: `["s"]`, or
    /// some of them; none if left out. Only the production client asks them.
    pub sentinels: Option<Vec<Name>>,
    /// The user as whom it logs in at the nodes, one of `[user.some-name]`; `default`, who may do
    /// everything, if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<Name>,
    /// How many times its driver, below the lock, sends a command again over a new connection when
    /// no reply has come in time or the connection is broken; never if left out. Only models have
    /// such a driver: the production client ends a connection on the server before it sends a
    /// request again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries: Option<u32>,
    /// What it does instead of steps, where that is code; no file can say so.
    #[serde(skip)]
    pub code: Option<Code>,
}

/// A line of work of a client, or `count` of them: `[client.c1.line.audit]`. What it asks for,
/// holds and gives back is its own.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Line {
    /// How many lines of this kind there are, called by the name and a number from 1; one, called
    /// by the name alone, if left out.
    pub count: Option<u32>,
    /// What it does, step by step.
    pub steps: Steps,
    /// What it does over and over, until the end of the storm, instead of steps; nothing if left
    /// out.
    pub workload: Option<WorkloadEntry>,
}

impl Client {
    /// How many lines of work it has.
    pub fn lines(&self) -> usize {
        let counts = self.line.values().map(|line| line.count.map_or(1, |count| count as usize));
        counts.sum::<usize>().max(1)
    }
}

/// How the clocks of a host differ from true time from the start.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Clock {
    /// How far the wall clock is ahead; not at all if left out.
    pub offset: Option<Draw<Step>>,
    /// How much faster than true time all its clocks run; not at all if left out.
    pub rate: Option<Draw<Rate>>,
}

/// The network: `[network]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Network {
    /// How long a packet takes from one host to another: a fixed time, or a range that each packet
    /// draws from. Packets of one direction never overtake each other.
    pub latency: Draw<Span>,
}

impl Default for Network {
    /// Each packet draws its own time. With one time for all of them those who ask at once would be
    /// served in the same order again and again, which no network does.
    fn default() -> Network {
        let micros = |micros| Span(Duration::from_micros(micros));
        Network { latency: Draw::Range(micros(500), micros(1_500)) }
    }
}

/// The links from some hosts to others, where they differ from the rest of the network:
/// `[link.lag]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// The sending side.
    pub from: Hosts,
    /// The receiving side.
    pub to: Hosts,
    /// How long a packet takes in this direction.
    pub latency: Draw<Span>,
    /// Whether the same holds for the way back.
    #[serde(default)]
    pub both_ways: bool,
}
