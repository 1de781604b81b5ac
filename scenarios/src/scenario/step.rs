//! What a client does, one step after the other.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{Draw, Span};

/// The script of a client.
pub type Steps = Vec<StepEntry>;

/// One step: an action, and perhaps the time of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct StepEntry {
    /// Not before this time after the start, in true time.
    pub at: Option<Draw<Span>>,
    /// Wait for the lock as long as it takes, or no longer than `wait`.
    pub acquire: Option<Acquire>,
    /// Ask for the lock once.
    pub try_acquire: Option<Attempt>,
    /// Ask for the lock again and again, `every` so often, until it is granted.
    pub poll: Option<Poll>,
    /// Give the lock back; of several holds, the latest.
    pub release: Option<Release>,
    /// Hold the lock for longer.
    pub extend: Option<Extend>,
    /// Work inside the critical section for a time, writing to the resource now and then.
    pub work: Option<Work>,
    /// Write to the resource once.
    pub write: Option<Write>,
    /// Ask whether the lock is still held, and end the script if it is not.
    pub check: Option<Check>,
    /// Do nothing for a time.
    pub sleep: Option<Draw<Span>>,
    /// Keep the processor busy for a time without letting any other task of the client run.
    pub block: Option<Span>,
    /// Run the whole script again, so many times more.
    pub repeat: Option<u32>,
}

impl StepEntry {
    /// The actions that are given; a valid step has one.
    pub fn actions(&self) -> Vec<&'static str> {
        [
            ("acquire", self.acquire.is_some()),
            ("try_acquire", self.try_acquire.is_some()),
            ("poll", self.poll.is_some()),
            ("release", self.release.is_some()),
            ("extend", self.extend.is_some()),
            ("work", self.work.is_some()),
            ("write", self.write.is_some()),
            ("check", self.check.is_some()),
            ("sleep", self.sleep.is_some()),
            ("block", self.block.is_some()),
            ("repeat", self.repeat.is_some()),
        ]
        .into_iter()
        .filter_map(|(name, given)| given.then_some(name))
        .collect()
    }
}

/// Waiting for the lock.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Acquire {
    /// The lease; the lock's own, or the watchdog, if left out.
    pub lease: Option<Span>,
    /// How long to wait at most; as long as it takes if left out.
    pub wait: Option<Span>,
    /// Ask for the watchdog even though the lock has a lease.
    pub watchdog: bool,
    /// Ask again when the outcome of an attempt is unknown.
    pub retry: bool,
    /// Hold it together with others that ask so: the read half of a read-write lock.
    pub shared: bool,
}

/// Asking for the lock once.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Attempt {
    /// The lease; the lock's own, or the watchdog, if left out.
    pub lease: Option<Span>,
    /// Ask for the watchdog even though the lock has a lease.
    pub watchdog: bool,
    /// Hold it together with others that ask so: the read half of a read-write lock.
    pub shared: bool,
}

/// Asking for the lock again and again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Poll {
    /// From one attempt's end to the next one's begin.
    pub every: Span,
    /// The lease; the lock's own, or the watchdog, if left out.
    #[serde(default)]
    pub lease: Option<Span>,
    /// When to give up; never if left out.
    #[serde(default)]
    pub until: Option<Span>,
    /// Hold it together with others that ask so: the read half of a read-write lock.
    #[serde(default)]
    pub shared: bool,
}

/// Giving the lock back.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Release {
    /// Ask again when the outcome is unknown, after this long.
    pub retry_after: Option<Span>,
}

/// Holding the lock for longer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Extend {
    /// The new lease, from now.
    pub lease: Span,
}

/// Working inside the critical section.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Work {
    /// How long.
    #[serde(rename = "for")]
    pub length: Option<Draw<Span>>,
    /// Until this time after the start, in true time.
    pub until: Option<Span>,
    /// How often to write to the resource meanwhile; never if left out.
    pub write_every: Option<Span>,
    /// Stop when the client learns that the lock is lost.
    pub until_lost: bool,
}

/// Writing to the resource once.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Write {
    /// Do not write when the client knows that the lock is lost.
    pub if_held: bool,
}

/// Asking whether the lock is still held.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Check {}

/// Name and one line about each workload, for `lockstorm list workloads`.
pub const WORKLOADS: &[(&str, &str)] = &[(
    "contend",
    "acquire, hold (writing to the resource), release, think, again, until the end of the storm and once more",
)];

/// What a client does over and over. Exactly one kind.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Workload {
    /// Acquire, hold, release, think, again.
    pub contend: Option<Contend>,
}

/// Acquire, hold, release, think, again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Contend {
    /// How long the lock is held.
    pub hold: Draw<Span>,
    /// The pause between two rounds.
    pub think: Draw<Span>,
    /// How long to wait for the lock at most; as long as it takes if left out.
    #[serde(default)]
    pub wait: Option<Span>,
    /// How often to write to the resource while holding; once, in the middle, if left out.
    #[serde(default)]
    pub write_every: Option<Span>,
    /// How many rounds; until the end of the storm if left out.
    #[serde(default)]
    pub rounds: Option<u32>,
    /// How many levels of a reentrant lock a round takes at most: each round draws how many, takes them one inside the other
    /// and gives them back one by one. One if left out.
    #[serde(default)]
    pub levels: Option<u32>,
}
