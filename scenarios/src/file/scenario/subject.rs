//! The subjects that a scenario can put on trial, by name. Each is the right algorithm except for
//! the traits in its row.

use std::{borrow::Cow, fmt};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::{
    LockKind,
    traits::{
        Belief, Cleanup, ClockName, Counted, Fencing, Grant, Key, OtherTraits, Pace, Quorum, Release,
        Renewal, Replicas, Resend, Time, Together, Token, Traits, Window,
    },
};

/// An implementation that can be put on trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subject {
    /// Its name in scenario files.
    pub name: &'static str,
    /// One line about it, for `lockstorm list subjects`.
    pub about: &'static str,
    /// The code that implements it.
    pub algorithm: Algorithm,
    /// The design choices of the lock algorithm, right or wrong.
    pub traits: Traits,
}

/// The code that implements a subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// The production client, unchanged; of all traits it has only the clock.
    Client,
    /// The model in `subject/model/`, which has all traits.
    Model,
}

const RIGHT: Traits = Traits::RIGHT;
const COUNTED: Traits = Traits { key: Key::Count, token: Token::OfClient, ..RIGHT };
const QUEUED: Traits = Traits { key: Key::Queue, token: Token::OfClient, pace: Pace::Fixed, ..RIGHT };
const SHARED: Traits = Traits { key: Key::Mode, token: Token::OfClient, ..RIGHT };
/// A permit has no lease: its owner holds it until it releases it.
const PERMITS: Traits = Traits {
    key: Key::Permits,
    belief: Belief::UntilTold,
    cleanup: Cleanup::Acknowledged,
    renewal: Renewal::Never,
    token: Token::OfClient,
    ..RIGHT
};

/// An owner holds two values of a hash together.
const VALUES: Traits = Traits { key: Key::Values, ..RIGHT };

/// Each permit has an id, which is its token.
const LEASES: Traits = Traits { key: Key::Leases, ..RIGHT };
const RATE: Traits = Traits { key: Key::Rate, token: Token::OfClient, ..RIGHT };
const LATCH: Traits = Traits { key: Key::Latch, token: Token::OfClient, ..RIGHT };

/// All subjects, in the order of `lockstorm list subjects`. The first one is the default of
/// scenario files.
pub const TABLE: &[Subject] = &[
    client("client", "the production client, unchanged", RIGHT),
    client(
        "client-on-monotonic-clock",
        "the production client, whose platform has no clock that goes on while the machine sleeps",
        Traits { clock: ClockName::Monotonic, ..RIGHT },
    ),
    model(
        "token-lock",
        "SET NX PX with a token, done right: one node, or the published Redlock over several",
        RIGHT,
    ),
    model(
        "del-without-token",
        "releases with DEL, without comparing the token",
        Traits { release: Release::Delete, ..RIGHT },
    ),
    model(
        "no-own-deadline",
        "believes in its lock until it is told otherwise",
        Traits { belief: Belief::UntilTold, ..RIGHT },
    ),
    model(
        "lease-from-reply",
        "counts the lease from the reply, however late it came",
        Traits { belief: Belief::FromReply, drift: false, ..RIGHT },
    ),
    model(
        "wall-clock-validity",
        "measures its lease by the wall clock",
        Traits { clock: ClockName::Wall, ..RIGHT },
    ),
    model(
        "monotonic-validity",
        "measures its lease by a clock that stops while the machine sleeps",
        Traits { clock: ClockName::Monotonic, ..RIGHT },
    ),
    model(
        "no-drift",
        "grants a quorum the whole lease, as if no clock ever ran fast",
        Traits { drift: false, ..RIGHT },
    ),
    model("half-quorum", "takes half of the nodes for a quorum", Traits { quorum: Quorum::Half, ..RIGHT }),
    model(
        "release-only-acknowledged",
        "after a failure releases only where it was told that it had the lock",
        Traits { cleanup: Cleanup::Acknowledged, ..RIGHT },
    ),
    model(
        "release-on-new-connection",
        "after a failure releases over a new connection, ahead of the request that failed",
        Traits { cleanup: Cleanup::NewConnection, ..RIGHT },
    ),
    model(
        "no-cleanup",
        "releases nothing after a failed attempt",
        Traits { cleanup: Cleanup::None, ..RIGHT },
    ),
    model("fixed-retry-delay", "tries again after a fixed delay", Traits { pace: Pace::Fixed, ..RIGHT }),
    model(
        "doubling-retry-delay",
        "waits twice as long each time that it is refused, without a limit",
        Traits { pace: Pace::Doubling, ..RIGHT },
    ),
    model(
        "resend-with-new-token",
        "asks again with a new token when a reply does not come, and forgets the old one",
        Traits { resend: Resend::Fresh, cleanup: Cleanup::None, ..RIGHT },
    ),
    model(
        "resend-counted",
        "counts holds, and sends the same request again when a reply does not come",
        Traits { resend: Resend::Same, ..COUNTED },
    ),
    model(
        "renew-anybodys",
        "renews the key, without comparing the token",
        Traits { renewal: Renewal::Anybody, ..RIGHT },
    ),
    model(
        "extend-on-any-answer",
        "takes any answer to an extension for a yes",
        Traits { renewal: Renewal::AnyAnswer, ..RIGHT },
    ),
    model(
        "renew-recreates",
        "renews by setting the key again",
        Traits { renewal: Renewal::Recreate, belief: Belief::UntilTold, ..RIGHT },
    ),
    model(
        "renew-until-failure",
        "stops renewing after one failure, without reporting the loss",
        Traits { renewal: Renewal::UntilFailure, belief: Belief::UntilTold, ..RIGHT },
    ),
    model(
        "renew-without-quorum",
        "renews on the nodes that still have it, however few",
        Traits { renewal: Renewal::EachNode, belief: Belief::UntilTold, ..RIGHT },
    ),
    model("shared-token", "has one token for all clients", Traits { token: Token::Shared, ..RIGHT }),
    model(
        "redisson-redlock",
        "Redisson's Redlock: one node after the other, and no look at the clock afterwards",
        Traits {
            belief: Belief::FromReply,
            drift: false,
            renewal: Renewal::EachNode,
            at_once: false,
            ..RIGHT
        },
    ),
    model("counted-lock", "counts holds under one name for each client, done right", COUNTED),
    model(
        "subscribing-lock",
        "waits for the message of a release, done right",
        Traits { pace: Pace::Message, ..RIGHT },
    ),
    model(
        "key-event-lock",
        "waits for the keyspace notification that the key is gone",
        Traits { pace: Pace::KeyEvent, ..RIGHT },
    ),
    model("queue-lock", "grants in the order of a queue, done right but for waiters that die", QUEUED),
    model(
        "fenced-token-lock",
        "hands out fencing tokens with the grant, done right",
        Traits { fence: Fencing::WithGrant, ..RIGHT },
    ),
    model(
        "replicated-lock",
        "gives the lock back when no replica has acknowledged it, done right",
        Traits { replicas: Replicas::Required, ..RIGHT },
    ),
    model("semaphore", "a semaphore without leases, done right", PERMITS),
    model("leased-permits", "a semaphore whose permits have leases, done right", LEASES),
    model("polled-latch", "a count-down latch whose waiters look again and again, done right", LATCH),
    model(
        "redisson-latch",
        "Redisson's latch: its waiters go by messages alone",
        Traits { pace: Pace::Message, ..LATCH },
    ),
    model("rate-limiter", "so many permits in any window, done right", RATE),
    model("read-write-lock", "many readers or one writer, done right", SHARED),
    model(
        "grant-in-two-steps",
        "sets the key, and its expiry with a second command",
        Traits { grant: Grant::TwoSteps, ..RIGHT },
    ),
    model(
        "release-in-two-steps",
        "reads the token, and deletes the key with a second command",
        Traits { release: Release::GetThenDelete, ..RIGHT },
    ),
    model(
        "release-remembered",
        "remembers each release for a repeat of it, and leaves it to time to forget it",
        Traits { release: Release::Remember, ..RIGHT },
    ),
    model(
        "release-resent",
        "counts holds, and sends the same release again when a reply does not come",
        Traits { resend_release: true, ..COUNTED },
    ),
    model(
        "watchdog-never-cancelled",
        "goes on renewing after the release",
        Traits { cancels: false, ..COUNTED },
    ),
    model("busy-waiting", "asks again at once when it is refused", Traits { pace: Pace::AtOnce, ..RIGHT }),
    model(
        "subscribe-without-second-look",
        "subscribes to releases and goes to sleep without asking once more",
        Traits { pace: Pace::MessageWithoutRecheck, ..RIGHT },
    ),
    model(
        "queue-without-head-check",
        "stands in line, and takes a free lock without looking who is first",
        Traits { grant: Grant::AnybodyInLine, ..QUEUED },
    ),
    model(
        "queue-pruned-by-count",
        "throws the first out of a line that has grown long",
        Traits { grant: Grant::ShortLine, ..QUEUED },
    ),
    model(
        "fence-taken-separately",
        "takes its fencing token with a second command, after the grant",
        Traits { fence: Fencing::Afterwards, ..RIGHT },
    ),
    model(
        "fence-by-client-clock",
        "takes the time by its own wall clock for a fencing token",
        Traits { fence: Fencing::ClientClock, ..RIGHT },
    ),
    model(
        "wait-result-ignored",
        "asks for a replica's acknowledgement, and does not look at the answer",
        Traits { replicas: Replicas::Ignored, ..RIGHT },
    ),
    model(
        "semaphore-without-compare",
        "takes a permit without looking whether one is left",
        Traits { grant: Grant::AnyPermit, ..PERMITS },
    ),
    model(
        "permit-taken-again",
        "asks for a permit again when a reply does not come, and has two then",
        Traits { resend: Resend::Same, ..PERMITS },
    ),
    model(
        "permit-given-back-again",
        "gives a permit back again when the reply to its release does not come",
        Traits { resend_release: true, ..PERMITS },
    ),
    model(
        "permits-by-client-clock",
        "Redisson's expirable semaphore: the clock of the client that asks says which permits have expired",
        Traits { time: Time::OfClient, ..LEASES },
    ),
    model(
        "permits-given-back-unseen",
        "gives a permit back without looking whether it is out",
        Traits { release: Release::Delete, ..LEASES },
    ),
    model("values-lock", "takes several values of one hash, all or none, done right", VALUES),
    model(
        "values-by-client-clock",
        "Redisson's faster multi-lock: the clock of the client that asks says until when values are held",
        Traits { time: Time::OfClient, ..VALUES },
    ),
    model(
        "looks-at-first-value",
        "takes several values of one hash if the first of them is free",
        Traits { grant: Grant::FirstValue, ..VALUES },
    ),
    model(
        "values-given-back-unseen",
        "gives several values of one hash back without looking whether they are its own",
        Traits { release: Release::Delete, ..VALUES },
    ),
    model(
        "latch-counted-down-again",
        "counts a latch down again when a reply does not come",
        Traits { resend_release: true, ..LATCH },
    ),
    model(
        "latch-counted-down-in-two-steps",
        "reads the count of a latch, and writes what is left of it with a second command",
        Traits { release: Release::GetThenDelete, ..LATCH },
    ),
    model(
        "latch-without-second-look",
        "subscribes to the opening of a latch and goes to sleep without looking once more",
        Traits { pace: Pace::MessageWithoutRecheck, ..LATCH },
    ),
    model(
        "rate-by-client-clock",
        "Redisson's rate limiter: the clock of the client that asks says what is over",
        Traits { time: Time::OfClient, ..RATE },
    ),
    model(
        "rate-in-fixed-windows",
        "has so many permits in each second, or whatever the window is, of the clock",
        Traits { window: Window::Fixed, ..RATE },
    ),
    model(
        "rate-of-all-clients",
        "counts what all clients were granted together, even where each has a rate by itself",
        Traits { counted: Counted::Together, ..RATE },
    ),
    model(
        "rate-of-each-client",
        "counts what each client was granted by itself, even where all have one rate",
        Traits { counted: Counted::Apart, ..RATE },
    ),
    model(
        "read-under-write",
        "lets readers in beside a writer",
        Traits { grant: Grant::ReadUnderWrite, ..SHARED },
    ),
    model(
        "write-under-read",
        "lets a writer in beside readers",
        Traits { grant: Grant::WriteUnderRead, ..SHARED },
    ),
    model(
        "read-release-shortens-write",
        "gives the lock of a writer the lease of what it still reads when it gives up some of that",
        Traits { release: Release::ShortensWriter, ..SHARED },
    ),
    model(
        "silent-downgrade",
        "waits for messages, and tells nobody when a writer only reads from now on",
        Traits { release: Release::SilentDowngrade, pace: Pace::Message, ..SHARED },
    ),
    model(
        "renews-all-readers",
        "renews the leases of all readers with those of one",
        Traits { renewal: Renewal::AllReaders, ..SHARED },
    ),
    model(
        "read-release-stops-renewal",
        "believes in its lock until it is told otherwise, and stops renewing what an owner writes when that has done reading",
        Traits { renewal: Renewal::UntilAnyRelease, belief: Belief::UntilTold, ..SHARED },
    ),
    model(
        "write-leases-add-up",
        "adds the lease of a nested hold of a writer to what is left of the outer one",
        Traits { grant: Grant::SumsLeases, ..SHARED },
    ),
    model(
        "undoes-what-was-refused",
        "gives a permit back when no replica has acknowledged the request, also if it was refused",
        Traits { replicas: Replicas::RequiredOfAll, ..PERMITS },
    ),
    model(
        "multi-keeps-what-it-got",
        "keeps the locks that it got when another one of them cannot be had",
        Traits { together: Together::Kept, ..RIGHT },
    ),
    model(
        "multi-release-stops-at-error",
        "releases several locks one after the other, until the first error",
        Traits { together: Together::FirstError, ..RIGHT },
    ),
];

const fn client(name: &'static str, about: &'static str, traits: Traits) -> Subject {
    Subject { name, about, algorithm: Algorithm::Client, traits }
}

const fn model(name: &'static str, about: &'static str, traits: Traits) -> Subject {
    Subject { name, about, algorithm: Algorithm::Model, traits }
}

impl Subject {
    /// Finds a subject by its name in scenario files; `None` if there is no such subject.
    pub fn named(name: &str) -> Option<Subject> {
        TABLE.iter().copied().find(|subject| subject.name == name)
    }

    /// Returns the kinds of lock that it implements with these traits laid over its own.
    pub fn kinds(&self, others: &OtherTraits) -> Vec<LockKind> {
        let traits = self.traits.with(others);
        let implements = |kind: &LockKind| self.algorithm == Algorithm::Client || traits.implement(*kind);
        LockKind::ALL.iter().copied().filter(implements).collect()
    }

    /// Checks that these traits can be laid over its own.
    ///
    /// # Errors
    /// The trait that cannot, and why.
    pub(super) fn check(&self, others: &OtherTraits) -> Result<(), (&'static str, String)> {
        if self.algorithm == Algorithm::Model {
            return Ok(());
        }
        if let Some(name) = others.given().into_iter().find(|name| *name != "clock") {
            let message = format!(
                "the subject \"{}\" is the production client, which has no trait `{name}`: of all traits it has `clock` alone",
                self.name
            );
            return Err((name, message));
        }
        match others.clock {
            Some(ClockName::Wall) => {
                let message =
                    "the production client counts by \"boottime\" or \"monotonic\", never by \"wall\"";
                Err(("clock", message.to_owned()))
            }
            _ => Ok(()),
        }
    }
}

impl Default for Subject {
    fn default() -> Subject {
        TABLE[0]
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Serialize for Subject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name)
    }
}

impl<'de> Deserialize<'de> for Subject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Subject, D::Error> {
        let name = Cow::<str>::deserialize(deserializer)?;
        Subject::named(&name).ok_or_else(|| {
            let known: Vec<&str> = TABLE.iter().map(|subject| subject.name).collect();
            de::Error::custom(format_args!(
                "unknown subject `{name}`, expected one of `{}`",
                known.join("`, `")
            ))
        })
    }
}

impl JsonSchema for Subject {
    fn schema_name() -> Cow<'static, str> {
        "Subject".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let row = |subject: &Subject| json_schema!({ "const": subject.name, "description": subject.about });
        let rows: Vec<Schema> = TABLE.iter().map(row).collect();
        json_schema!({ "description": "Who is on trial (`lockstorm list subjects`).", "oneOf": rows })
    }
}
