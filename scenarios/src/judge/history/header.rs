//! The setting of a run: its hosts, the locks on trial, the nodes that may grant them, the guarded
//! resource and the duration.

use std::time::Duration;

use lockstorm_client::wire;
use lockstorm_world::time::True;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};

use super::{
    event::{Accepted, Mode},
    id::{Host, Lock, nanos, nanos_option},
};

/// The setting of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// The scenario's name.
    pub scenario: Box<str>,
    /// The experiment's description in a sentence or two; empty if the file has none.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub about: Box<str>,
    /// The claim on trial, if the scenario tries one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<Claim>,
    /// The seed from which everything was drawn.
    pub seed: u64,
    /// The values that the seed drew, if the scenario leaves any to the seed and a trial wrote the
    /// file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drawn: Vec<Drawn>,
    /// The engine that advances time: `event`, `turmoil` or `real`.
    pub engine: Box<str>,
    /// SHA-256 of the trace in hexadecimal; empty if the run has no fingerprint.
    #[serde(default)]
    pub fingerprint: Box<str>,
    /// The command line that repeats this run; empty if it cannot be repeated.
    #[serde(default)]
    pub replay: Box<str>,
    /// All hosts; [`Host`] is an index into this list.
    pub hosts: Vec<HostInfo>,
    /// The locks on trial; [`Lock`] is an index into this list.
    pub locks: Vec<LockInfo>,
    /// The resource that the locks guard, if any.
    pub resource: Option<Resource>,
    /// The instant at which the last fault ended and the calm began; `None` if the storm never
    /// ended.
    #[serde(with = "nanos_option", default, skip_serializing_if = "Option::is_none")]
    pub calm: Option<True>,
    /// The instant at which the run ended.
    #[serde(with = "nanos")]
    pub end: True,
    /// The way in which the run ended.
    #[serde(default)]
    pub ended: Ended,
    /// The limits beyond which something counts as late.
    #[serde(default)]
    pub bounds: Bounds,
    /// The plan for lockstorm's own client to ask for the locks after the storm; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<Probe>,
    /// The scenario's expectation of each checker, by the checker's name, in the syntax of a
    /// scenario file.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub expect: Map<String, Value>,
}

/// A value that the seed drew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drawn {
    /// The path of the key, which also names a column of the results: `fault.jump.clock_step.by`.
    pub key: Box<str>,
    /// The value in the syntax of a scenario file; for hosts, their names.
    pub value: Box<str>,
    /// The value as a number, if it is numeric: a time in seconds, a rate in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<Number>,
}

/// A claim about Redis locks: `[claim]` in a scenario.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The claim's number in the catalogue, such as `S4`.
    pub id: String,
    /// The claim itself, in a sentence.
    pub says: String,
    /// The author of the claim: a person, a document or a project.
    pub by: String,
    /// The source of the claim: an address, a document, a source file.
    #[serde(rename = "where")]
    pub at: String,
    /// The reason why the claim has no number with a formula, neither a boundary nor a measure: no
    /// key has a value at which the verdict changes, or another claim covers it. Default: no
    /// reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_boundary: Option<String>,
    /// The generations of servers on which the claim comes out as stated, such as `"redis-6.2"`.
    /// Default: all on which it was tried, or those that its nodes name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub generations: Vec<String>,
    /// The results of a hunt in each variant, which `lockstorm claims --hunt` repeats. Default: no
    /// hunt is stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hunted: Option<HuntedVariants>,
}

/// The results of a hunt in each variant of a claim: `[claim.hunted]`. Each variant is in one of
/// the lists. The variant of a file without variants is called `"as described"`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HuntedVariants {
    /// The most runs of each hunt, which has seed 0 and the bound of the variant's `[hunt]`.
    pub runs: u64,
    /// The variants in which the hunt finds faults that violate one of its checkers. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub violated: Vec<String>,
    /// The variants in which no faults within the bound violate a checker of the hunt. Default:
    /// none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holds: Vec<String>,
    /// The variants that need more runs, or in which no run puts a checker to the test. Default:
    /// none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undecided: Vec<String>,
}

impl HuntedVariants {
    /// Returns the lists, each with the verdict that it states.
    pub fn lists(&self) -> [(&'static str, &[String]); 3] {
        [("violated", &self.violated), ("holds", &self.holds), ("undecided", &self.undecided)]
    }

    /// Returns the verdict that is stated for a variant.
    pub fn verdict(&self, variant: &str) -> Option<&'static str> {
        let has = |names: &[String]| names.iter().any(|name| name == variant);
        self.lists().into_iter().find(|(_, names)| has(names)).map(|(verdict, _)| verdict)
    }
}

impl Claim {
    /// Returns true if the claim is stated for servers of the generation of this name.
    pub fn is_stated_for(&self, generation: &str) -> bool {
        self.generations.is_empty() || self.generations.iter().any(|one| one == generation)
    }
}

/// The way in which a run ended. The absence of an event in a run that was given up proves nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// The run did everything planned.
    #[default]
    Complete,
    /// The run was given up, for this reason.
    Early(Box<str>),
}

/// The plan for lockstorm's own client ([`HostKind::Probe`]). It asks for each lock that no owner
/// was granted since the storm. So `progress` can be decided even if the clients have no work left
/// after the storm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Probe {
    /// The client asks from this time on, when every hold that is not renewed is over.
    From {
        /// The instant from which the client asks, in true time.
        #[serde(with = "nanos")]
        at: True,
    },
    /// The client does not ask: the calm is shorter than the bound of `progress` after the last
    /// lease.
    TooShort {
        /// The length of calm that would give the lock the whole bound of `progress`.
        needs: Duration,
    },
    /// The scenario file turns it off.
    Off,
    /// It cannot ask, because lockstorm's client has no such lock: the clients use a library on
    /// trial or a user's own code.
    NotOurs,
}

/// The limits beyond which something counts as late. Checkers of progress compare with these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Bounds {
    /// The longest time after the storm for which waiters may wait for a lock that no owner
    /// believes it holds.
    pub progress: Duration,
    /// The longest time after a release until the first waiter tries again.
    pub wake: Duration,
    /// The number of requests for a lock in one second by one waiter above which it counts as a
    /// busy loop.
    pub attempts_per_second: u32,
    /// The number of times that a waiter may be overtaken, per owner that asks for the lock, before
    /// it counts as starved.
    pub overtaken: u32,
}

impl Default for Bounds {
    /// Sixty seconds are twice the watchdog's default lease of thirty. One second covers every link
    /// but a broken one. A hundred overtakes per owner do not happen by chance.
    fn default() -> Self {
        Self {
            progress: Duration::from_secs(60),
            wake: Duration::from_secs(1),
            attempts_per_second: 100,
            overtaken: 100,
        }
    }
}

/// A host of the run: an entry of [`Header::hosts`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostInfo {
    /// The name in the scenario, with a number for a member of a group; `(probe)` for the probe.
    pub name: Box<str>,
    /// The role: a node, a client, the resource, a Sentinel or the probe.
    pub kind: HostKind,
    /// The real server on a node, such as `Valkey 9.1.2`; `None` for other hosts and for the
    /// simulator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<Box<str>>,
}

impl HostInfo {
    /// Describes a host without a real server.
    pub fn new(name: impl Into<Box<str>>, kind: HostKind) -> HostInfo {
        HostInfo { name: name.into(), kind, server: None }
    }
}

/// The role of a host, by the software that runs on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostKind {
    /// A Redis node, standalone or of a cluster, master or replica.
    Node,
    /// A client of the locks.
    Client,
    /// The resource that the locks guard.
    Resource,
    /// A Sentinel, which monitors masters and holds no keys of locks.
    Sentinel,
    /// lockstorm's own client, which asks for locks that no owner was granted since the storm. Only
    /// `progress` counts it.
    Probe,
}

/// A lock on trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockInfo {
    /// The lock's main key in Redis, as the client forms it from the name in the scenario.
    pub name: Box<str>,
    /// The guarantee that it gives.
    pub kind: LockKind,
    /// The lock's key in Redis and its companions that exist only while it is used (queues, hold
    /// keys).
    pub keys: Vec<Box<str>>,
    /// Keys that may remain without a holder, such as a token counter.
    #[serde(default)]
    pub lasting_keys: Vec<Box<str>>,
    /// Prefixes of the names of keys that expire soon after a release, such as the key that
    /// remembers a release in case the client repeats it.
    #[serde(default)]
    pub passing_keys: Vec<Box<str>>,
    /// The nodes whose grants count.
    pub authority: Authority,
}

/// The guarantee that a lock gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LockKind {
    /// One owner at a time, in no order.
    Exclusive,
    /// One owner at a time, in the order of the queue.
    Fair,
    /// Many readers or one writer.
    ReadWrite,
    /// At most this many permits at a time.
    Semaphore {
        /// The number of permits.
        permits: u32,
    },
    /// At most this many permits at a time, each a hold with a lease of its own.
    Permits {
        /// The number of permits.
        permits: u32,
    },
    /// Closed until counted down this many times.
    Latch {
        /// The number of count-downs.
        count: u32,
    },
    /// At most this many permits in any window.
    Rate {
        /// The number of permits.
        permits: u32,
        /// The length of the window in milliseconds.
        window_ms: u64,
        /// True if each client has this many permits of its own, regardless of grants to others.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        per_client: bool,
    },
}

impl LockKind {
    /// Returns true if a node's keys identify the holders; a semaphore's key only counts permits.
    pub(crate) fn says_who_holds(self) -> bool {
        !matches!(self, LockKind::Semaphore { .. })
    }

    /// Returns true if the lock has one owner at a time, or several that all read.
    pub fn is_exclusive(self) -> bool {
        matches!(self, Self::Exclusive | Self::Fair | Self::ReadWrite)
    }

    /// Returns the number of permits of a semaphore; `None` for other kinds.
    pub fn permits(self) -> Option<u32> {
        match self {
            Self::Semaphore { permits } | Self::Permits { permits } => Some(permits),
            _ => None,
        }
    }

    /// Splits a name in Redis into the owner and the mode in which this name holds the lock: an
    /// owner of a read-write lock has a second name, with the suffix `:write`, for writing.
    pub fn named(self, name: &str) -> (&str, Mode) {
        match (self, name.strip_suffix(":write")) {
            (Self::ReadWrite, Some(owner)) => (owner, Mode::Exclusive),
            (Self::ReadWrite, None) => (name, Mode::Shared),
            _ => (name, Mode::Exclusive),
        }
    }

    /// Returns the owner of a name in a command if the lock is unknown: the name without the suffix
    /// `:write`, if it has one.
    pub fn owner_of_name(name: &str) -> &str {
        Self::ReadWrite.named(name).0
    }
}

/// The nodes whose grants make an owner a holder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Authority {
    /// Replication groups. The nodes of one group replicate one key, so a grant by any of them
    /// counts, and counts once.
    pub groups: Vec<Vec<Host>>,
    /// The number of groups that must have granted at the same time.
    pub quorum: usize,
    /// The amount by which a promise is shorter than the lease.
    #[serde(default)]
    pub drift: Drift,
}

/// The allowance for clock drift: a part of each lease plus a constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Drift {
    /// The part, in thousandths of the lease.
    pub per_mille: u64,
    /// The constant in milliseconds.
    pub plus_ms: u64,
}

impl Drift {
    /// The allowance of the production client's Redlock.
    pub const REDLOCK: Self =
        Self { per_mille: wire::DRIFT_PPM as u64 / 1_000, plus_ms: wire::EXPIRY_MARGIN.as_millis() as u64 };

    /// Returns the promise of a lease: the lease less the allowance.
    pub fn promised(self, lease_ms: u64) -> Duration {
        let counted =
            Duration::from_micros(lease_ms.saturating_mul(1_000_u64.saturating_sub(self.per_mille)));
        counted.saturating_sub(Duration::from_millis(self.plus_ms))
    }
}

impl LockInfo {
    /// Returns true if each hold has a name of its own in Redis and is thus an owner of its own, as
    /// each attempt at a quorum and each permit with a lease is.
    pub fn names_its_holds(&self) -> bool {
        self.authority.quorum > 1 || matches!(self.kind, LockKind::Permits { .. })
    }
}

impl Authority {
    /// Returns the authority of one group: a single node, or a master and its replicas.
    pub fn group(nodes: impl IntoIterator<Item = Host>) -> Self {
        Self { groups: vec![nodes.into_iter().collect()], quorum: 1, drift: Drift::default() }
    }

    /// Returns the authority of a majority of independent nodes.
    pub fn majority(nodes: impl IntoIterator<Item = Host>, drift: Drift) -> Self {
        let groups: Vec<Vec<Host>> = nodes.into_iter().map(|node| vec![node]).collect();
        let quorum = groups.len() / 2 + 1;
        Self { groups, quorum, drift }
    }

    /// Returns the index of the node's group, or `None` if the node is in no group.
    pub fn group_of(&self, node: Host) -> Option<usize> {
        self.groups.iter().position(|group| group.contains(&node))
    }
}

/// The resource that the locks guard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resource {
    /// The host on which it runs.
    pub host: Host,
    /// The rule by which it accepts writes.
    pub fence: Fence,
}

/// The rule by which a resource accepts writes, by their fencing tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Fence {
    /// Accepts all writes: there is no fence.
    #[default]
    #[serde(rename = "none")]
    None,
    /// Accepts a token greater than every earlier one; the owner of the greatest token may write
    /// with it again.
    #[serde(rename = ">")]
    Greater,
    /// Accepts a token greater than or equal to the greatest earlier one.
    #[serde(rename = ">=")]
    AtLeast,
}

impl Fence {
    /// Returns this rule's decision on a write.
    pub fn accepts(self, accepted: Accepted) -> bool {
        match self {
            Self::None => true,
            Self::Greater => accepted.greater,
            Self::AtLeast => accepted.at_least,
        }
    }
}

impl Header {
    /// Returns a header with this name, hosts, locks and end; all else is as for a run of the event
    /// engine.
    pub fn new(scenario: &str, hosts: Vec<HostInfo>, locks: Vec<LockInfo>, end: True) -> Self {
        Self {
            scenario: scenario.into(),
            about: "".into(),
            claim: None,
            seed: 0,
            drawn: Vec::new(),
            engine: "event".into(),
            fingerprint: "".into(),
            replay: "".into(),
            hosts,
            locks,
            resource: None,
            calm: None,
            end,
            ended: Ended::Complete,
            bounds: Bounds::default(),
            probe: None,
            expect: Map::new(),
        }
    }

    /// Returns true if the run used real servers in real time.
    pub fn is_real(&self) -> bool {
        &*self.engine == "real"
    }

    /// Names the real servers of the nodes: the server if all nodes have the same, or else each
    /// node with its own. Empty for simulated nodes.
    ///
    /// ```
    /// # use lockstorm::judge::history::{Header, HostInfo, HostKind};
    /// # use lockstorm_world::time::True;
    /// let node = |name: &str, server: &str| HostInfo { server: Some(server.into()), ..HostInfo::new(name, HostKind::Node) };
    /// let header = Header::new("mixed", vec![node("m", "Redis 7.0.15"), node("r", "Valkey 9.1.2")], vec![], True::ZERO);
    /// assert_eq!(header.servers(), "m: Redis 7.0.15, r: Valkey 9.1.2");
    /// ```
    pub fn servers(&self) -> String {
        let known = || self.hosts.iter().filter_map(|host| Some((&host.name, host.server.as_ref()?)));
        match known().next() {
            Some((_, first)) if known().all(|(_, server)| server == first) => first.to_string(),
            _ => known().map(|(name, server)| format!("{name}: {server}")).collect::<Vec<_>>().join(", "),
        }
    }

    /// Returns the engine for a reader, with the real servers: `real engine on Valkey 9.1.2`.
    pub fn engine_in_words(&self) -> String {
        let servers = self.servers();
        let on = if servers.is_empty() { String::new() } else { format!(" on {servers}") };
        format!("{} engine{on}", self.engine)
    }

    /// Returns the error that the times of the history may have: 100 ms in real time, where the
    /// machine may have been busy, otherwise zero.
    pub fn tolerance(&self) -> Duration {
        if self.is_real() { Duration::from_millis(100) } else { Duration::ZERO }
    }

    /// Finds a host by its name in the scenario.
    pub fn host(&self, name: &str) -> Option<Host> {
        self.hosts.iter().position(|host| &*host.name == name).and_then(|at| u16::try_from(at).ok()).map(Host)
    }

    /// Finds a lock by its name, its main key in Redis.
    pub fn lock(&self, name: &str) -> Option<Lock> {
        self.locks.iter().position(|lock| &*lock.name == name).and_then(|at| u16::try_from(at).ok()).map(Lock)
    }

    /// Returns all hosts of one kind, in order.
    pub fn hosts_of(&self, kind: HostKind) -> impl Iterator<Item = Host> + '_ {
        let hosts = self.hosts.iter().enumerate();
        hosts.filter(move |(_, host)| host.kind == kind).map(|(at, _)| Host(at as u16))
    }

    /// Returns all locks on trial, in order.
    pub fn locks(&self) -> impl Iterator<Item = Lock> + '_ {
        (0..self.locks.len()).map(|at| Lock(at as u16))
    }

    /// Checks that every host number exists and every quorum is possible.
    ///
    /// # Errors
    /// A description of the first contradiction.
    pub fn validate(&self) -> Result<(), String> {
        let hosts = self.hosts.len();
        let limit = usize::from(u16::MAX);
        if hosts > limit || self.locks.len() > limit {
            return Err(format!("more than {limit} hosts or locks"));
        }
        let known = |host: &Host| usize::from(host.0) < hosts;
        for lock in &self.locks {
            let Authority { groups, quorum, .. } = &lock.authority;
            if !groups.iter().flatten().all(known) {
                return Err(format!("lock `{}` is granted by a host that is not there", lock.name));
            }
            if !(1..=groups.len()).contains(quorum) {
                return Err(format!("lock `{}` needs {quorum} of {} groups", lock.name, groups.len()));
            }
        }
        match &self.resource {
            Some(resource) if !known(&resource.host) => {
                Err("the resource is on a host that is not there".to_owned())
            }
            _ => Ok(()),
        }
    }
}
