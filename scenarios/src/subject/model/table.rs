//! The models by name: each is the right algorithm but for what its line says.

use super::{
    Belief, Cleanup, ClockKind, Fence, Grant, Key, Pace, Quorum, Release, Renewal, Replicas, Resend, Token,
    Traits,
};
use crate::scenario::SubjectName;

/// What the model of this name does; `None` for subjects that are no models.
pub fn traits(name: SubjectName) -> Option<Traits> {
    let right = Traits::default();
    let counted = Traits { key: Key::Count, token: Token::OfClient, ..right };
    let queued = Traits { key: Key::Queue, token: Token::OfClient, pace: Pace::Fixed, ..right };
    let shared = Traits { key: Key::Mode, token: Token::OfClient, ..right };
    // A permit has no lease: it is had until it is given back.
    let permits = Traits {
        key: Key::Permits,
        belief: Belief::UntilTold,
        cleanup: Cleanup::Acknowledged,
        renewal: Renewal::Never,
        token: Token::OfClient,
        ..right
    };
    Some(match name {
        SubjectName::Client | SubjectName::ClientOnMonotonicClock => return None,
        SubjectName::TokenLock => right,
        SubjectName::DelWithoutToken => Traits { release: Release::Delete, ..right },
        SubjectName::NoOwnDeadline => Traits { belief: Belief::UntilTold, ..right },
        SubjectName::LeaseFromReply => Traits { belief: Belief::FromReply, drift: false, ..right },
        SubjectName::WallClockValidity => Traits { clock: ClockKind::Wall, ..right },
        SubjectName::MonotonicValidity => Traits { clock: ClockKind::Monotonic, ..right },
        SubjectName::NoDrift => Traits { drift: false, ..right },
        SubjectName::HalfQuorum => Traits { quorum: Quorum::Half, ..right },
        SubjectName::ReleaseOnlyAcknowledged => Traits { cleanup: Cleanup::Acknowledged, ..right },
        SubjectName::ReleaseOnNewConnection => Traits { cleanup: Cleanup::NewConnection, ..right },
        SubjectName::NoCleanup => Traits { cleanup: Cleanup::None, ..right },
        SubjectName::FixedRetryDelay => Traits { pace: Pace::Fixed, ..right },
        SubjectName::ResendWithNewToken => Traits { resend: Resend::Fresh, cleanup: Cleanup::None, ..right },
        SubjectName::ResendCounted => Traits { resend: Resend::Same, ..counted },
        SubjectName::RenewAnybodys => Traits { renewal: Renewal::Anybody, ..right },
        SubjectName::RenewRecreates => {
            Traits { renewal: Renewal::Recreate, belief: Belief::UntilTold, ..right }
        }
        SubjectName::RenewUntilFailure => {
            Traits { renewal: Renewal::UntilFailure, belief: Belief::UntilTold, ..right }
        }
        SubjectName::RenewWithoutQuorum => {
            Traits { renewal: Renewal::EachNode, belief: Belief::UntilTold, ..right }
        }
        SubjectName::SharedToken => Traits { token: Token::Shared, ..right },
        SubjectName::RedissonRedLock => Traits {
            belief: Belief::FromReply,
            drift: false,
            renewal: Renewal::EachNode,
            at_once: false,
            ..right
        },
        SubjectName::CountedLock => counted,
        SubjectName::SubscribingLock => Traits { pace: Pace::Message { second_look: true }, ..right },
        SubjectName::QueueLock => queued,
        SubjectName::FencedTokenLock => Traits { fence: Fence::WithGrant, ..right },
        SubjectName::ReplicatedLock => Traits { replicas: Replicas::Heeded, ..right },
        SubjectName::Semaphore => permits,
        SubjectName::ReadWriteLock => shared,
        SubjectName::GrantInTwoSteps => Traits { grant: Grant::TwoSteps, ..right },
        SubjectName::ReleaseInTwoSteps => Traits { release: Release::GetThenDelete, ..right },
        SubjectName::ReleaseResent => Traits { resend_release: true, ..counted },
        SubjectName::WatchdogNeverCancelled => Traits { cancels: false, ..counted },
        SubjectName::BusyWaiting => Traits { pace: Pace::AtOnce, ..right },
        SubjectName::SubscribeWithoutSecondLook => {
            Traits { pace: Pace::Message { second_look: false }, ..right }
        }
        SubjectName::QueueWithoutHeadCheck => Traits { grant: Grant::AnybodyInLine, ..queued },
        SubjectName::QueuePrunedByCount => Traits { grant: Grant::ShortLine, ..queued },
        SubjectName::FenceTakenSeparately => Traits { fence: Fence::Afterwards, ..right },
        SubjectName::WaitResultIgnored => Traits { replicas: Replicas::Ignored, ..right },
        SubjectName::SemaphoreWithoutCompare => Traits { grant: Grant::AnyPermit, ..permits },
        SubjectName::ReadUnderWrite => Traits { grant: Grant::ReadUnderWrite, ..shared },
        SubjectName::WriteUnderRead => Traits { grant: Grant::WriteUnderRead, ..shared },
    })
}

/// One line about the model of this name.
pub fn about(name: SubjectName) -> &'static str {
    match name {
        SubjectName::Client => "the production client, unchanged",
        SubjectName::ClientOnMonotonicClock => {
            "the production client, whose platform has no clock that goes on while the machine sleeps"
        }
        SubjectName::TokenLock => {
            "SET NX PX with a token, done right: one node, or the published RedLock over several"
        }
        SubjectName::DelWithoutToken => "releases with DEL, whoever holds the lock",
        SubjectName::NoOwnDeadline => "believes in its lock until it is told otherwise",
        SubjectName::LeaseFromReply => "counts the lease from the reply, however late it came",
        SubjectName::WallClockValidity => "measures its lease by the wall clock",
        SubjectName::MonotonicValidity => "measures its lease by a clock that stops while the machine sleeps",
        SubjectName::NoDrift => "grants a quorum the whole lease, as if no clock ever ran fast",
        SubjectName::HalfQuorum => "takes half of the nodes for a quorum",
        SubjectName::ReleaseOnlyAcknowledged => {
            "after a failure releases only where it was told that it had the lock"
        }
        SubjectName::ReleaseOnNewConnection => {
            "after a failure releases over a new connection, ahead of the request that failed"
        }
        SubjectName::NoCleanup => "releases nothing after a failed attempt",
        SubjectName::FixedRetryDelay => "tries again after a fixed delay",
        SubjectName::ResendWithNewToken => {
            "asks again with a new token when a reply does not come, and forgets the old one"
        }
        SubjectName::ResendCounted => {
            "counts holds, and sends the same request again when a reply does not come"
        }
        SubjectName::RenewAnybodys => "renews the key, whoever's it is",
        SubjectName::RenewRecreates => "renews by setting the key again",
        SubjectName::RenewUntilFailure => "stops renewing after one failure, and tells nobody",
        SubjectName::RenewWithoutQuorum => "renews on the nodes that still have it, however few",
        SubjectName::SharedToken => "has one token for all clients",
        SubjectName::RedissonRedLock => {
            "Redisson's RedLock: one node after the other, and no look at the clock afterwards"
        }
        SubjectName::CountedLock => "counts holds under one name for each client, done right",
        SubjectName::SubscribingLock => "waits for the message of a release, done right",
        SubjectName::QueueLock => "grants in the order of a queue, done right but for waiters that die",
        SubjectName::FencedTokenLock => "hands out fencing tokens with the grant, done right",
        SubjectName::ReplicatedLock => "gives the lock back when no replica has acknowledged it, done right",
        SubjectName::Semaphore => "a semaphore without leases, done right",
        SubjectName::ReadWriteLock => "many readers or one writer, done right",
        SubjectName::GrantInTwoSteps => "sets the key, and its expiry with a second command",
        SubjectName::ReleaseInTwoSteps => "reads the token, and deletes the key with a second command",
        SubjectName::ReleaseResent => {
            "counts holds, and sends the same release again when a reply does not come"
        }
        SubjectName::WatchdogNeverCancelled => "goes on renewing after the release",
        SubjectName::BusyWaiting => "asks again at once when it is refused",
        SubjectName::SubscribeWithoutSecondLook => {
            "subscribes to releases and goes to sleep without asking once more"
        }
        SubjectName::QueueWithoutHeadCheck => {
            "stands in line, and takes a free lock without looking who is first"
        }
        SubjectName::QueuePrunedByCount => "throws the first out of a line that has grown long",
        SubjectName::FenceTakenSeparately => "takes its fencing token with a second command, after the grant",
        SubjectName::WaitResultIgnored => {
            "asks for a replica's acknowledgement, and does not look at the answer"
        }
        SubjectName::SemaphoreWithoutCompare => "takes a permit without looking whether one is left",
        SubjectName::ReadUnderWrite => "lets readers in beside a writer",
        SubjectName::WriteUnderRead => "lets a writer in beside readers",
    }
}
