//! What is on trial: the lock, who implements it, and the resource it guards.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{name::Name, units::Span};

/// The lock on trial: `[lock]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Lock {
    /// Its name, which is also its key.
    pub name: String,
    /// Which lock of the client it is.
    pub kind: LockKind,
    /// Who implements it: the production client, or a model of another algorithm (`lockstorm list subjects`).
    pub subject: SubjectName,
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
    /// How many nodes make a quorum, where a model gets it wrong on purpose.
    pub quorum: Option<u32>,
}

impl Default for Lock {
    fn default() -> Lock {
        Lock {
            name: "lock".to_owned(),
            kind: LockKind::Plain,
            subject: SubjectName::Client,
            nodes: None,
            lease: None,
            watchdog: Span::secs(30),
            response_timeout: None,
            node_timeout: None,
            retry_delay: None,
            sync: Sync::None,
            sync_timeout: None,
            fair_wait: None,
            quorum: None,
        }
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

/// Who is on trial. The algorithms are in `subject/`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SubjectName {
    /// The production client, unchanged.
    #[default]
    Client,
    /// The production client on a platform whose best clock stops while the machine sleeps.
    ClientOnMonotonicClock,
    /// `SET NX PX` with a token, done right; over several nodes, the published RedLock.
    TokenLock,
    /// Releases with DEL, whoever holds the lock.
    DelWithoutToken,
    /// Believes in its lock until it is told otherwise.
    NoOwnDeadline,
    /// Counts the lease from the reply.
    LeaseFromReply,
    /// Measures its lease by the wall clock.
    WallClockValidity,
    /// Measures its lease by a clock that stops while the machine sleeps.
    MonotonicValidity,
    /// Allows nothing for clocks that run fast.
    NoDrift,
    /// Takes half of the nodes for a quorum.
    HalfQuorum,
    /// Releases only where it was told that it had the lock.
    ReleaseOnlyAcknowledged,
    /// Releases nothing after a failed attempt.
    NoCleanup,
    /// Tries again after a fixed delay.
    FixedRetryDelay,
    /// Asks again with a new token when a reply does not come.
    ResendWithNewToken,
    /// Counts holds, and sends the same request again when a reply does not come.
    ResendCounted,
    /// Renews the key, whoever's it is.
    RenewAnybodys,
    /// Renews by setting the key again.
    RenewRecreates,
    /// Stops renewing after one failure.
    RenewUntilFailure,
    /// Renews on the nodes that still have it, however few.
    RenewWithoutQuorum,
    /// Has one token for all clients.
    SharedToken,
    /// Redisson's RedLock: one node after the other, and no look at the clock afterwards.
    RedissonRedLock,
}

impl SubjectName {
    /// All of them, in the order of `lockstorm list subjects`.
    pub const ALL: &[SubjectName] = &[
        SubjectName::Client,
        SubjectName::ClientOnMonotonicClock,
        SubjectName::TokenLock,
        SubjectName::DelWithoutToken,
        SubjectName::NoOwnDeadline,
        SubjectName::LeaseFromReply,
        SubjectName::WallClockValidity,
        SubjectName::MonotonicValidity,
        SubjectName::NoDrift,
        SubjectName::HalfQuorum,
        SubjectName::ReleaseOnlyAcknowledged,
        SubjectName::NoCleanup,
        SubjectName::FixedRetryDelay,
        SubjectName::ResendWithNewToken,
        SubjectName::ResendCounted,
        SubjectName::RenewAnybodys,
        SubjectName::RenewRecreates,
        SubjectName::RenewUntilFailure,
        SubjectName::RenewWithoutQuorum,
        SubjectName::SharedToken,
        SubjectName::RedissonRedLock,
    ];
}

/// The locks a scenario can put on trial.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LockKind {
    /// The reentrant lock.
    #[default]
    Plain,
    /// The lock that is granted in the order of asking.
    Fair,
    /// The lock that hands out fencing tokens.
    Fenced,
    /// RedLock over independent masters.
    Red,
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
