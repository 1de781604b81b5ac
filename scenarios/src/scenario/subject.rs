//! The names of all that a scenario can put on trial.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::LockKind;

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
    /// After a failed attempt releases over a new connection.
    ReleaseOnNewConnection,
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
    /// A lock that counts holds, done right: a hash with one name for each client.
    CountedLock,
    /// A lock whose waiters subscribe to its releases, done right.
    SubscribingLock,
    /// A lock that is granted in the order of a queue, done right but for waiters that die.
    QueueLock,
    /// A lock that hands out fencing tokens, done right.
    FencedTokenLock,
    /// A lock that waits for a replica's acknowledgement, done right.
    ReplicatedLock,
    /// A semaphore, done right.
    Semaphore,
    /// A read-write lock, done right.
    ReadWriteLock,
    /// Sets the key, and its expiry with a second command.
    GrantInTwoSteps,
    /// Reads the token, and deletes the key with a second command.
    ReleaseInTwoSteps,
    /// Counts holds, and sends the same release again when a reply does not come.
    ReleaseResent,
    /// Goes on renewing after the release.
    WatchdogNeverCancelled,
    /// Asks again at once when it is refused.
    BusyWaiting,
    /// Sleeps once it has subscribed, without asking again.
    SubscribeWithoutSecondLook,
    /// Stands in line, and takes a free lock without looking who is first.
    QueueWithoutHeadCheck,
    /// Throws the first out of a line that has grown long.
    QueuePrunedByCount,
    /// Takes its fencing token with a second command, when it already has the lock.
    FenceTakenSeparately,
    /// Asks for a replica's acknowledgement, and does not look at the answer.
    WaitResultIgnored,
    /// Takes a permit without looking whether one is left.
    SemaphoreWithoutCompare,
    /// Lets readers in beside a writer.
    ReadUnderWrite,
    /// Lets a writer in beside readers.
    WriteUnderRead,
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
        SubjectName::ReleaseOnNewConnection,
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
        SubjectName::CountedLock,
        SubjectName::SubscribingLock,
        SubjectName::QueueLock,
        SubjectName::FencedTokenLock,
        SubjectName::ReplicatedLock,
        SubjectName::Semaphore,
        SubjectName::ReadWriteLock,
        SubjectName::GrantInTwoSteps,
        SubjectName::ReleaseInTwoSteps,
        SubjectName::ReleaseResent,
        SubjectName::WatchdogNeverCancelled,
        SubjectName::BusyWaiting,
        SubjectName::SubscribeWithoutSecondLook,
        SubjectName::QueueWithoutHeadCheck,
        SubjectName::QueuePrunedByCount,
        SubjectName::FenceTakenSeparately,
        SubjectName::WaitResultIgnored,
        SubjectName::SemaphoreWithoutCompare,
        SubjectName::ReadUnderWrite,
        SubjectName::WriteUnderRead,
    ];

    /// Whether it implements locks of this kind. A model is what it is, and takes the other kinds for a plain lock's.
    pub(super) fn implements(self, kind: LockKind) -> bool {
        match self {
            SubjectName::Semaphore | SubjectName::SemaphoreWithoutCompare => kind == LockKind::Semaphore,
            SubjectName::ReadWriteLock | SubjectName::ReadUnderWrite | SubjectName::WriteUnderRead => {
                kind == LockKind::ReadWrite
            }
            _ => !matches!(kind, LockKind::Semaphore | LockKind::ReadWrite),
        }
    }
}
