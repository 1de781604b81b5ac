//! The setting of a run: its hosts, the locks on trial, the nodes that may grant them, the guarded
//! resource and the duration.

use std::time::Duration;

use lockstorm_client::wire;
use lockstorm_sim::time::True;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};

use super::{
    event::{Accepted, Mode},
    id::{Host, Lock, nanos, nanos_option},
};

/// What a run was about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// The scenario's name.
    pub scenario: Box<str>,
    /// What the experiment is about, in a sentence or two; empty where it does not say.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub about: Box<str>,
    /// The claim that it tries, if it tries one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<Claim>,
    /// The seed everything was drawn from.
    pub seed: u64,
    /// What the seed drew, where a scenario leaves it to the seed and the file was written by a
    /// trial.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drawn: Vec<Drawn>,
    /// What moved time on: `event`, `turmoil` or `real`.
    pub engine: Box<str>,
    /// SHA-256 of everything that happened, in hexadecimal; empty where there is none.
    #[serde(default)]
    pub fingerprint: Box<str>,
    /// The line to paste that has this run again; empty where it cannot be had again.
    #[serde(default)]
    pub replay: Box<str>,
    /// All hosts; [`Host`] is a place in this list.
    pub hosts: Vec<HostInfo>,
    /// The locks on trial; [`Lock`] is a place in this list.
    pub locks: Vec<LockInfo>,
    /// What the locks guard, if anything.
    pub resource: Option<Resource>,
    /// When the last fault ended and the calm began; `None` if the storm never ended.
    #[serde(with = "nanos_option", default, skip_serializing_if = "Option::is_none")]
    pub calm: Option<True>,
    /// When the run ended.
    #[serde(with = "nanos")]
    pub end: True,
    /// Whether it got to its end.
    #[serde(default)]
    pub ended: Ended,
    /// What counts as late.
    #[serde(default)]
    pub bounds: Bounds,
    /// Whether the laboratory asks for the locks itself once the storm is over; `None` where that
    /// is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<Probe>,
    /// What the scenario expects of each checker, by its name, as a scenario file would say it.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub expect: Map<String, Value>,
}

/// A value that the seed drew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drawn {
    /// The path of its key, by which a column of the results is called as well:
    /// `fault.jump.clock_step.by`.
    pub key: Box<str>,
    /// The value as a file would write it; of hosts, their names.
    pub value: Box<str>,
    /// The value as a number, where it is one: seconds of a time, percent of a rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<Number>,
}

/// A claim about Redis locks: `[claim]` in a scenario.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Its number in the catalogue, such as `S4`.
    pub id: String,
    /// What is claimed, in a sentence.
    pub says: String,
    /// Who claims it.
    pub by: String,
    /// Where: an address, a document, a source file.
    #[serde(rename = "where")]
    pub at: String,
    /// Why it has no number with a formula, neither a boundary nor a measure: no value of any key
    /// is one at which its verdict changes, or another claim has it; no reason is given if left
    /// out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_boundary: Option<String>,
}

/// Whether a run got to its end. What a run that did not reach its end did not show proves nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// It did all it was to do.
    #[default]
    Complete,
    /// It was given up, and why.
    Early(Box<str>),
}

/// Whether the laboratory itself asks, with a client of its own ([`HostKind::Probe`]), for each
/// lock that no owner was granted since the storm: so `progress` is decided where the work of all
/// clients is over by then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Probe {
    /// It does from this time on, when every hold that is not renewed is over.
    From {
        /// When.
        #[serde(with = "nanos")]
        at: True,
    },
    /// The calm is too short for that.
    TooShort {
        /// How long it would have to be, for the lock to have the whole bound of `progress`.
        needs: Duration,
    },
    /// It does not, because the file says so.
    Off,
    /// It does not, because it has no such lock: that of the clients is a library on trial, or a
    /// user's own code.
    NotOurs,
}

/// What counts as late. Checkers of progress compare with these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Bounds {
    /// How long, after the storm, a lock that no owner believes it holds may keep its waiters
    /// waiting.
    pub progress: Duration,
    /// How long after a release the first waiter may take to try again.
    pub wake: Duration,
    /// How many times in one second one waiter may ask for a lock before it counts as a busy loop.
    pub attempts_per_second: u32,
    /// How many times a waiter may be overtaken, for each owner that asks for the lock, before it
    /// counts as starved.
    pub overtaken: u32,
}

impl Default for Bounds {
    /// Sixty seconds cover the watchdog's default lease of thirty twice; a second covers every link
    /// but a broken one; a hundred times for each are no chance.
    fn default() -> Self {
        Self {
            progress: Duration::from_secs(60),
            wake: Duration::from_secs(1),
            attempts_per_second: 100,
            overtaken: 100,
        }
    }
}

/// A host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostInfo {
    /// Its name in the scenario.
    pub name: Box<str>,
    /// What runs on it.
    pub kind: HostKind,
}

/// What runs on a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostKind {
    /// A Redis node.
    Node,
    /// A client of the locks.
    Client,
    /// What the locks guard.
    Resource,
    /// A Sentinel.
    Sentinel,
    /// The laboratory's own client, which asks for locks that no other client has asked for since
    /// the storm. Only `progress` counts it.
    Probe,
}

/// A lock on trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockInfo {
    /// Its name.
    pub name: Box<str>,
    /// What it promises.
    pub kind: LockKind,
    /// Its key in Redis, and the keys that come and go with it (queues, hold keys).
    pub keys: Vec<Box<str>>,
    /// Keys that are meant to stay when there is no holder, such as a token counter.
    #[serde(default)]
    pub lasting_keys: Vec<Box<str>>,
    /// The beginnings of the names of keys that end by themselves soon after a release, such as
    /// what remembers it for its repeats.
    #[serde(default)]
    pub passing_keys: Vec<Box<str>>,
    /// Whose grant counts.
    pub authority: Authority,
}

/// What a lock promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LockKind {
    /// One owner at a time, in no order.
    Exclusive,
    /// One owner at a time, in the order of the queue.
    Fair,
    /// Many readers or one writer.
    ReadWrite,
    /// So many permits at a time.
    Semaphore {
        /// How many.
        permits: u32,
    },
    /// So many permits at a time, each of which is a hold with a lease of its own.
    Permits {
        /// How many.
        permits: u32,
    },
    /// Closed until it was counted down so many times.
    Latch {
        /// How many times.
        count: u32,
    },
    /// So many permits in any window.
    Rate {
        /// How many.
        permits: u32,
        /// The length of the window.
        window_ms: u64,
        /// Whether each client has so many by itself, whatever the others are granted.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        per_client: bool,
    },
}

impl LockKind {
    /// Tells if the keys on a node say which owner has what: those of a semaphore count permits
    /// alone.
    pub(crate) fn says_who_holds(self) -> bool {
        !matches!(self, LockKind::Semaphore { .. })
    }

    /// Whether two owners may not hold the lock at once, but for readers.
    pub fn is_exclusive(self) -> bool {
        matches!(self, Self::Exclusive | Self::Fair | Self::ReadWrite)
    }

    /// How many permits there are at a time.
    pub fn permits(self) -> Option<u32> {
        match self {
            Self::Semaphore { permits } | Self::Permits { permits } => Some(permits),
            _ => None,
        }
    }

    /// The owner that a name in Redis stands for, and the mode in which it holds the lock under
    /// that name: an owner of a read-write lock has another one for writing.
    pub fn named(self, name: &str) -> (&str, Mode) {
        match (self, name.strip_suffix(":write")) {
            (Self::ReadWrite, Some(owner)) => (owner, Mode::Exclusive),
            (Self::ReadWrite, None) => (name, Mode::Shared),
            _ => (name, Mode::Exclusive),
        }
    }

    /// The owner that a name in a command stands for when the lock is not known: the name, unless
    /// it is one for writing.
    pub fn owner_of_name(name: &str) -> &str {
        Self::ReadWrite.named(name).0
    }
}

/// Whose grant counts as holding the lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Authority {
    /// Replication groups: the nodes of one group pass one key on to each other, so a grant by any
    /// of them counts, and counts once.
    pub groups: Vec<Vec<Host>>,
    /// How many groups must have granted at once.
    pub quorum: usize,
    /// What a promise is shorter than the lease that was given.
    #[serde(default)]
    pub drift: Drift,
}

/// The allowance for clocks that drift: a part of each lease, and a constant on top.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Drift {
    /// So many thousandths of the lease.
    pub per_mille: u64,
    /// Milliseconds on top.
    pub plus_ms: u64,
}

impl Drift {
    /// The allowance of the production client's Redlock.
    pub const REDLOCK: Self =
        Self { per_mille: wire::DRIFT_PPM as u64 / 1_000, plus_ms: wire::EXPIRY_MARGIN.as_millis() as u64 };

    /// What is left of a lease for the promise.
    pub fn promised(self, lease_ms: u64) -> Duration {
        let counted =
            Duration::from_micros(lease_ms.saturating_mul(1_000_u64.saturating_sub(self.per_mille)));
        counted.saturating_sub(Duration::from_millis(self.plus_ms))
    }
}

impl LockInfo {
    /// Whether each hold has a name of its own in Redis, and so an owner: every attempt at a
    /// quorum, and every permit with a lease.
    pub fn names_its_holds(&self) -> bool {
        self.authority.quorum > 1 || matches!(self.kind, LockKind::Permits { .. })
    }
}

impl Authority {
    /// One node, or a master and its replicas.
    pub fn group(nodes: impl IntoIterator<Item = Host>) -> Self {
        Self { groups: vec![nodes.into_iter().collect()], quorum: 1, drift: Drift::default() }
    }

    /// A majority of independent nodes.
    pub fn majority(nodes: impl IntoIterator<Item = Host>, drift: Drift) -> Self {
        let groups: Vec<Vec<Host>> = nodes.into_iter().map(|node| vec![node]).collect();
        let quorum = groups.len() / 2 + 1;
        Self { groups, quorum, drift }
    }

    /// The group a node belongs to.
    pub fn group_of(&self, node: Host) -> Option<usize> {
        self.groups.iter().position(|group| group.contains(&node))
    }
}

/// What the locks guard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resource {
    /// The host it is.
    pub host: Host,
    /// Which writes it accepts.
    pub fence: Fence,
}

/// Which writes a fenced resource accepts, by their fencing tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Fence {
    /// All: there is no fence.
    #[default]
    #[serde(rename = "none")]
    None,
    /// Writes with a token greater than any owner's before; an owner may write again with its own.
    #[serde(rename = ">")]
    Greater,
    /// Writes with a token greater than or equal to the greatest before.
    #[serde(rename = ">=")]
    AtLeast,
}

impl Fence {
    /// Whether a write gets through, of which it is known what each rule says.
    pub fn accepts(self, accepted: Accepted) -> bool {
        match self {
            Self::None => true,
            Self::Greater => accepted.greater,
            Self::AtLeast => accepted.at_least,
        }
    }
}

impl Header {
    /// A header with a name, its hosts and its locks; the rest as for a run of the event engine
    /// that ended at `end`.
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

    /// Whether the run was on real servers, in the time of the machine.
    pub fn is_real(&self) -> bool {
        &*self.engine == "real"
    }

    /// By how much the times of the history may be off: the machine of a run in real time may have
    /// been busy.
    pub fn tolerance(&self) -> Duration {
        if self.is_real() { Duration::from_millis(100) } else { Duration::ZERO }
    }

    /// The host with this name.
    pub fn host(&self, name: &str) -> Option<Host> {
        self.hosts.iter().position(|host| &*host.name == name).and_then(|at| u16::try_from(at).ok()).map(Host)
    }

    /// The lock with this name.
    pub fn lock(&self, name: &str) -> Option<Lock> {
        self.locks.iter().position(|lock| &*lock.name == name).and_then(|at| u16::try_from(at).ok()).map(Lock)
    }

    /// Every host of one kind, in order.
    pub fn hosts_of(&self, kind: HostKind) -> impl Iterator<Item = Host> + '_ {
        let hosts = self.hosts.iter().enumerate();
        hosts.filter(move |(_, host)| host.kind == kind).map(|(at, _)| Host(at as u16))
    }

    /// Every lock on trial, in order.
    pub fn locks(&self) -> impl Iterator<Item = Lock> + '_ {
        (0..self.locks.len()).map(|at| Lock(at as u16))
    }

    /// Whether every number in it stands for something.
    ///
    /// # Errors
    /// What is wrong, in words.
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
