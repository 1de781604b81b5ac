//! What is on trial: the lock, who implements it, and the resource it guards.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Subject, traits::OtherTraits};
pub use crate::object::LockKind;
use crate::{name::Name, units::Span};

/// The lock on trial: `[lock]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Lock {
    /// Its name, which is also its key.
    pub name: String,
    /// Further locks of the same kind, with the same settings on the same nodes, which a workload takes together with this
    /// one, in this order. Only the production client takes several, and steps take the first.
    pub also: Vec<String>,
    /// Which lock of the client it is.
    pub kind: LockKind,
    /// Who implements it: the production client, or a model of another algorithm (`lockstorm list subjects`).
    pub subject: Subject,
    /// What the subject does otherwise than its name says, such as `{ release = "delete" }` (`lockstorm list traits`).
    pub traits: OtherTraits,
    /// The nodes it lives on: one for a plain lock (its replicas follow by themselves), several for a RedLock. All masters if
    /// left out.
    pub nodes: Option<Vec<Name>>,
    /// The lease of every acquisition that names none. Without one the watchdog renews.
    pub lease: Option<Span>,
    /// The lease the watchdog keeps renewing.
    pub watchdog: Span,
    /// How long a client waits for a reply.
    pub response_timeout: Option<Span>,
    /// How long a RedLock waits for one node.
    pub node_timeout: Option<Span>,
    /// The longest random delay between two attempts of a RedLock.
    pub retry_delay: Option<Span>,
    /// Which replicas must have acknowledged an acquisition (WAIT).
    pub sync: Sync,
    /// How long to wait for their acknowledgement.
    pub sync_timeout: Option<Span>,
    /// How long a queued waiter of a fair lock may be silent before it loses its place.
    pub fair_wait: Option<Span>,
    /// How many permits a semaphore has; one if left out.
    pub permits: Option<u32>,
}

impl Default for Lock {
    fn default() -> Lock {
        Lock {
            name: "lock".to_owned(),
            also: Vec::new(),
            kind: LockKind::Plain,
            subject: Subject::default(),
            traits: OtherTraits::default(),
            nodes: None,
            lease: None,
            watchdog: Span::secs(30),
            response_timeout: None,
            node_timeout: None,
            retry_delay: None,
            sync: Sync::None,
            sync_timeout: None,
            fair_wait: None,
            permits: None,
        }
    }
}

impl Lock {
    /// The names of all locks on trial, in the order in which a workload takes them.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.name.as_str()).chain(self.also.iter().map(String::as_str))
    }
}

/// Which replicas must have acknowledged an acquisition.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sync {
    /// None: replication is asynchronous.
    #[default]
    None,
    /// One, if the master has any.
    One,
    /// As many as make a majority of all nodes together with the master.
    Majority,
    /// Every replica.
    All,
}

/// The resource that the lock guards: `[resource]`. It is a host of its own, so a write takes its time over the network.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Resource {
    /// Which tokens it refuses.
    pub fence: Fence,
}

/// Which writes a fenced resource accepts, by their fencing tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Fence {
    /// All: there is no fence.
    #[default]
    #[serde(rename = "none")]
    None,
    /// Those with a token greater than any owner's before; an owner may write again with its own.
    #[serde(rename = ">")]
    Greater,
    /// Those with a token greater than or equal to the greatest before.
    #[serde(rename = ">=")]
    GreaterOrEqual,
}
