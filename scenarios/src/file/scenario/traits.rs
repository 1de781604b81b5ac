//! What lock algorithms differ in: a subject is its traits, and each of its mistakes is one of
//! them.
//!
//! To add a trait, add its enum and its line below, and ask for it in `subject/model/` where it
//! makes the difference.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::LockKind;

/// Declares the traits: the right algorithm, what a scenario file may lay over a subject, and the
/// list of both.
macro_rules! traits {
    ($($(#[doc = $doc:literal])+ $name:ident: $Type:ty = $right:expr,)+) => {
        /// What an algorithm does, and by that what it does wrong. The default is right.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct Traits { $($(#[doc = $doc])+ pub $name: $Type,)+ }

        /// Traits that are laid over those of a subject: `traits = { release = "delete" }`. What is
        /// left out is as the subject has it.
        #[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        pub struct OtherTraits { $($(#[doc = $doc])+ #[serde(skip_serializing_if = "Option::is_none")] pub $name: Option<$Type>,)+ }

        impl Traits {
            /// The right algorithm.
            pub const RIGHT: Traits = Traits { $($name: $right,)+ };

            /// Name and one line about each trait, for `lockstorm list traits`.
            pub const LIST: &[(&str, &str)] = &[$((stringify!($name), concat!($($doc),+).trim_ascii()),)+];

            /// These traits, with others laid over them.
            #[must_use]
            pub fn with(self, others: &OtherTraits) -> Traits {
                Traits { $($name: others.$name.unwrap_or(self.$name),)+ }
            }
        }

        impl OtherTraits {
            /// The names of the traits that are given.
            pub fn given(&self) -> Vec<&'static str> {
                [$(self.$name.map(|_| stringify!($name)),)+].into_iter().flatten().collect()
            }
        }
    };
}

traits! {
    /// How the key says who holds the lock.
    key: Key = Key::Token,
    /// What is looked at before the lock is granted.
    grant: Grant = Grant::Checked,
    /// How a release finds out whether the lock is its own.
    release: Release = Release::Compare,
    /// Until when an owner believes in its lock.
    belief: Belief = Belief::FromRequest,
    /// The clock that the belief is measured by.
    clock: ClockName = ClockName::Boottime,
    /// How many nodes make a quorum.
    quorum: Quorum = Quorum::Majority,
    /// Whether the quorum's validity is shortened by what clocks may drift.
    drift: bool = true,
    /// What an attempt that failed leaves behind.
    cleanup: Cleanup = Cleanup::All,
    /// How a lease is renewed.
    renewal: Renewal = Renewal::Quorum,
    /// Whether a release ends the renewals.
    cancels: bool = true,
    /// What is done when the reply to an acquisition does not come.
    resend: Resend = Resend::Never,
    /// Whether a release, or what counts a latch down, is sent again when its reply does not come.
    resend_release: bool = false,
    /// What a waiter waits for before it asks again.
    pace: Pace = Pace::Spread,
    /// Whether all nodes are asked at once, or one after the other.
    at_once: bool = true,
    /// Whether the token is a new one for each acquisition, or the same for all clients.
    token: Token = Token::Unique,
    /// Where fencing tokens come from.
    fence: Fencing = Fencing::None,
    /// Whether a replica must have acknowledged the grant.
    replicas: Replicas = Replicas::None,
    /// Whose clock says what is over.
    time: Time = Time::OfServer,
    /// When a window of a rate begins.
    window: Window = Window::Sliding,
    /// Whose grants a rate is counted by.
    counted: Counted = Counted::AsAsked,
    /// What becomes of several locks that are taken together, when one of them cannot be had or
    /// given back.
    together: Together = Together::Undone,
}

impl Traits {
    /// Whether an algorithm with these traits implements this kind of lock. Its key decides: one
    /// that has neither modes nor permits takes the other kinds for a plain lock's.
    pub fn implement(&self, kind: LockKind) -> bool {
        match self.key {
            Key::Mode => kind == LockKind::ReadWrite,
            Key::Values => kind == LockKind::FasterMulti,
            Key::Permits => kind == LockKind::Semaphore,
            Key::Leases => kind == LockKind::PermitSemaphore,
            Key::Latch => kind == LockKind::Latch,
            Key::Rate => kind == LockKind::Rate,
            Key::Token | Key::Queue | Key::Count => kind.has_one_owner() && kind != LockKind::FasterMulti,
        }
    }
}

impl Default for Traits {
    fn default() -> Traits {
        Traits::RIGHT
    }
}

/// How the key says who holds the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Key {
    /// A string with the owner's token.
    Token,
    /// The same, and a list of its waiters.
    Queue,
    /// A hash with the owner's count, which a repeated acquisition raises.
    Count,
    /// A hash with the readers or the writer, and a key for the lease of each level of a reader.
    Mode,
    /// A hash with the owner, the deadline and the levels of each of several values.
    Values,
    /// A string with how many permits are left.
    Permits,
    /// The same, and a sorted set with the deadlines of those that are out.
    Leases,
    /// A string with how many times it is still to be counted down.
    Latch,
    /// A sorted set with the grants of a window.
    Rate,
}

/// Whose grants a rate is counted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Counted {
    /// Those of all clients, or with `per_client` those of the one that asks.
    AsAsked,
    /// Those of all clients, even where each has a rate by itself.
    Together,
    /// Those of the client that asks, even where all have one rate.
    Apart,
}

impl Counted {
    /// Whether each client is counted by itself, where the limiter is to be so or not.
    pub(crate) fn is_apart(self, per_client: bool) -> bool {
        match self {
            Counted::AsAsked => per_client,
            Counted::Together => false,
            Counted::Apart => true,
        }
    }
}

/// Whose clock says what is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Time {
    /// The node's.
    OfServer,
    /// The wall clock of the client that asks.
    OfClient,
}

/// When a window of a rate begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Window {
    /// With each grant.
    Sliding,
    /// At each multiple of its length.
    Fixed,
}

/// What becomes of several locks that are taken together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Together {
    /// If one cannot be had the others are given back, and all are released.
    Undone,
    /// If one cannot be had the others are kept.
    Kept,
    /// They are released one after the other, until the first error.
    FirstError,
}

/// What is looked at before the lock is granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Grant {
    /// All that matters, in one step.
    Checked,
    /// The same, but the expiry is set in a second step.
    TwoSteps,
    /// Not the order of the line.
    AnybodyInLine,
    /// The order of the line, but the head of a long line is thrown out.
    ShortLine,
    /// Not how many permits are left.
    AnyPermit,
    /// Not whether any but the first of several values is free.
    FirstValue,
    /// Not whether there is a writer, for a reader.
    ReadUnderWrite,
    /// Not whether there is a reader, for a writer.
    WriteUnderRead,
    /// All that matters, but one more level of a writer adds its lease to what is left.
    SumsLeases,
    /// All that matters, and after a lease that ended by itself, until `lock.delay` has passed as
    /// well.
    AfterDelay,
}

/// What a waiter waits for before it asks again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pace {
    /// A delay drawn anew each time.
    Spread,
    /// The same delay each time.
    Fixed,
    /// Twice the delay of the time before.
    Doubling,
    /// Next to nothing.
    AtOnce,
    /// A message of the release, or the end of the lease. Once it has subscribed it asks again
    /// before it sleeps.
    Message,
    /// The same, but it sleeps as soon as it has subscribed.
    MessageWithoutRecheck,
    /// A keyspace notification about the lock, and nothing else.
    KeyEvent,
}

/// Where fencing tokens come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Fencing {
    /// There are none.
    None,
    /// They are counted in the step that grants the lock.
    WithGrant,
    /// They are counted in a step of its own, once the lock is had.
    Afterwards,
    /// They are the time by the client's wall clock.
    ClientClock,
}

/// Whether a replica must have acknowledged the grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Replicas {
    /// None is asked for.
    None,
    /// One must have: otherwise the lock is given back.
    Required,
    /// One is asked for, and it makes no difference what comes of it.
    Ignored,
    /// One must have, whatever the node has answered: otherwise the lock is given back, also if it
    /// was not granted.
    RequiredOfAll,
}

/// How a release finds out whether the lock is its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Release {
    /// A script compares the token.
    Compare,
    /// It does not: DEL.
    Delete,
    /// GET, and DEL if it was the token; of a latch, SET to one less.
    GetThenDelete,
    /// A script compares the token, and leaves a key for each release, by which a repeat would be
    /// known: of a lock that is a string, and whose waiters need no message.
    Remember,
    /// A script compares it, and a reader that writes as well gives the lock the lease of what is
    /// still read.
    ShortensWriter,
    /// A script compares it, and emits no message when a writer only reads from now on.
    SilentDowngrade,
}

/// Until when an owner believes in its lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Belief {
    /// The lease, counted from before the request was sent; an acquisition that comes too late is
    /// none.
    FromRequest,
    /// The lease, counted from the reply; however late it comes.
    FromReply,
    /// Until it learns otherwise.
    UntilTold,
}

/// The clock that the belief is measured by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ClockName {
    /// The one that goes on while the machine sleeps.
    Boottime,
    /// The one that does not.
    Monotonic,
    /// The one that an operator can set.
    Wall,
}

/// How many nodes make a quorum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Quorum {
    /// More than half.
    Majority,
    /// Half, rounded down, which two owners can have at once.
    Half,
}

/// What an attempt that failed leaves behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cleanup {
    /// Nothing: every node is asked to release.
    All,
    /// Nothing, unless a request that was late comes after the release: the two go over different
    /// connections.
    NewConnection,
    /// What nodes granted without their reply having come.
    Acknowledged,
    /// Everything.
    None,
}

/// How a lease is renewed, every third of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Renewal {
    /// Not at all.
    Never,
    /// On a quorum of nodes that still have the owner's token; otherwise the lock is lost.
    Quorum,
    /// On each node that still has it, whatever the others say.
    EachNode,
    /// On a quorum of nodes that answer, whatever they answer.
    AnyAnswer,
    /// Not at all: the nodes are asked whether they still have the owner's token, and a quorum that
    /// says so is believed.
    Looks,
    /// On every node, whatever token it has.
    Anybody,
    /// By setting the key again, whether it is there or not.
    Recreate,
    /// Until the first time that a renewal fails.
    UntilFailure,
    /// A reader's with the leases of all other readers.
    AllReaders,
    /// Until the owner has released the lock once, in whatever mode.
    UntilAnyRelease,
}

/// What is done when the reply to an acquisition does not come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Resend {
    /// Nothing: the attempt failed, and is cleaned up after.
    Never,
    /// The same request again, on a new connection.
    Same,
    /// A request with a new token.
    Fresh,
}

/// Where tokens come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Token {
    /// A new one for each acquisition.
    Unique,
    /// One for each client.
    OfClient,
    /// The same for all clients.
    Shared,
}
