//! The models by name: each is the right algorithm but for what its line says.

use super::{Belief, Cleanup, ClockKind, Key, Quorum, Release, Renewal, Resend, Token, Traits};
use crate::scenario::SubjectName;

/// What the model of this name does; `None` for subjects that are no models.
pub fn traits(name: SubjectName) -> Option<Traits> {
    let right = Traits::default();
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
        SubjectName::NoCleanup => Traits { cleanup: Cleanup::None, ..right },
        SubjectName::FixedRetryDelay => Traits { jitter: false, ..right },
        SubjectName::ResendWithNewToken => Traits { resend: Resend::Fresh, cleanup: Cleanup::None, ..right },
        SubjectName::ResendCounted => Traits { key: Key::Count, resend: Resend::Same, ..right },
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
    }
}
