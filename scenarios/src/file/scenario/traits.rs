//! The traits in which lock algorithms differ. A subject is defined by its traits, and each of its
//! mistakes is the value of one trait.
//!
//! To add a trait, add its enum and its line below, and branch on it in `subject/model/` where the
//! algorithms differ.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::LockKind;

/// Declares the traits: [`Traits`] with the values of the right algorithm, [`OtherTraits`] for
/// scenario files, and the list of both.
macro_rules! traits {
    ($($(#[doc = $doc:literal])+ $name:ident: $Type:ty = $right:expr,)+) => {
        /// The choices of an algorithm, right or wrong. The default is the right algorithm.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct Traits { $($(#[doc = $doc])+ pub $name: $Type,)+ }

        /// Traits that replace those of a subject: `traits = { release = "delete" }`. Default of
        /// each key: the subject's value.
        #[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        pub struct OtherTraits { $($(#[doc = $doc])+ #[serde(skip_serializing_if = "Option::is_none")] pub $name: Option<$Type>,)+ }

        impl Traits {
            /// The traits of the algorithm without a mistake.
            pub const RIGHT: Traits = Traits { $($name: $right,)+ };

            /// The name of each trait and a line about it, for `lockstorm list traits`.
            pub const LIST: &[(&str, &str)] = &[$((stringify!($name), concat!($($doc),+).trim_ascii()),)+];

            /// Returns these traits with those of `others` that are set.
            #[must_use]
            pub fn with(self, others: &OtherTraits) -> Traits {
                Traits { $($name: others.$name.unwrap_or(self.$name),)+ }
            }
        }

        impl OtherTraits {
            /// Returns the names of the traits that are set.
            pub fn given(&self) -> Vec<&'static str> {
                [$(self.$name.map(|_| stringify!($name)),)+].into_iter().flatten().collect()
            }
        }
    };
}

traits! {
    /// The Redis data that records who holds the lock.
    key: Key = Key::Token,
    /// The conditions that are checked before the lock is granted.
    grant: Grant = Grant::Checked,
    /// The way a release makes sure that the lock is its own.
    release: Release = Release::Compare,
    /// The time until which an owner believes that it holds its lock.
    belief: Belief = Belief::FromRequest,
    /// The clock that measures the belief.
    clock: ClockName = ClockName::Boottime,
    /// The number of nodes that make a quorum.
    quorum: Quorum = Quorum::Majority,
    /// True if the validity of a lock on several nodes is shortened by the allowance for clock
    /// drift.
    drift: bool = true,
    /// The cleanup after a failed attempt.
    cleanup: Cleanup = Cleanup::All,
    /// The way a lease is renewed.
    renewal: Renewal = Renewal::Quorum,
    /// True if a release ends the renewals.
    cancels: bool = true,
    /// The reaction when the reply to an acquisition does not come.
    resend: Resend = Resend::Never,
    /// True if a release, or the count-down of a latch, is sent again when its reply does not come.
    resend_release: bool = false,
    /// The delay or event after which a waiter asks again.
    pace: Pace = Pace::Spread,
    /// True if all nodes are asked at the same time, false if they are asked one after the other.
    at_once: bool = true,
    /// The scope of a token: one acquisition, one client, or all clients.
    token: Token = Token::Unique,
    /// The source of fencing tokens.
    fence: Fencing = Fencing::None,
    /// The acknowledgement by a replica that a grant requires.
    replicas: Replicas = Replicas::None,
    /// The way in which scripts are sent.
    scripts: Scripts = Scripts::Text,
    /// The part of the lock's key that has the lease.
    lease: LeaseOn = LeaseOn::Key,
    /// True if a grant counts only after the first node has synced its append-only file: WAITAOF of
    /// Redis 7.2.
    synced: bool = false,
    /// The clock that decides which leases and grants are over.
    time: Time = Time::OfServer,
    /// The moment at which a window of a rate begins.
    window: Window = Window::Sliding,
    /// The clients whose grants count against a rate.
    counted: Counted = Counted::AsAsked,
    /// The treatment of several locks that are taken together, when one of them cannot be acquired
    /// or released.
    together: Together = Together::Undone,
}

impl Traits {
    /// Returns true if an algorithm with these traits implements this kind of lock. The trait `key`
    /// decides. The keys `token`, `queue` and `count` implement each kind that has one owner,
    /// except the faster multi-lock, in the same way as a plain lock.
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

/// The Redis data that records who holds the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Key {
    /// A string with the owner's token.
    Token,
    /// A string with the owner's token, and a list of its waiters.
    Queue,
    /// A hash with the owner's count, which a repeated acquisition raises.
    Count,
    /// A hash with the readers or the writer, and a key for the lease of each level of a reader.
    Mode,
    /// A hash with the owner, the deadline and the levels of each of several values.
    Values,
    /// A string with the number of free permits.
    Permits,
    /// A string with the number of free permits, and a sorted set with the deadlines of the permits
    /// that are taken.
    Leases,
    /// A string with the number of count-downs until the latch opens.
    Latch,
    /// A sorted set with the grants of a window.
    Rate,
}

/// The clients whose grants count against a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Counted {
    /// All clients, or with `per_client` only the client that asks.
    AsAsked,
    /// All clients, even if `per_client` gives each of them a rate of its own.
    Together,
    /// Only the client that asks, even if all clients share one rate.
    Apart,
}

impl Counted {
    /// Returns true if the grants of each client are counted apart, for a limiter with this
    /// `per_client`.
    pub(crate) fn is_apart(self, per_client: bool) -> bool {
        match self {
            Counted::AsAsked => per_client,
            Counted::Together => false,
            Counted::Apart => true,
        }
    }
}

/// The clock that decides which leases and grants are over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Time {
    /// The clock of the node.
    OfServer,
    /// The wall clock of the client that asks.
    OfClient,
}

/// The moment at which a window of a rate begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Window {
    /// Each grant begins a window.
    Sliding,
    /// A window begins at each multiple of its length.
    Fixed,
}

/// The treatment of several locks that are taken together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Together {
    /// If one cannot be acquired, the others are released. A release releases all of them, even
    /// after an error.
    Undone,
    /// If one cannot be acquired, the others are kept.
    Kept,
    /// A release releases one after the other, and stops at the first error.
    FirstError,
}

/// The conditions that are checked before the lock is granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Grant {
    /// All conditions, in one step.
    Checked,
    /// All conditions, but a second step sets the expiry.
    TwoSteps,
    /// All but the order of the queue.
    AnybodyInLine,
    /// All conditions, but the head of a long queue is thrown out.
    ShortLine,
    /// All but the number of free permits.
    AnyPermit,
    /// Of several values, only that the first is free.
    FirstValue,
    /// For a reader, all but that there is no writer.
    ReadUnderWrite,
    /// For a writer, all but that there is no reader.
    WriteUnderRead,
    /// All conditions, but each further level of a writer adds its lease to the time that is left.
    SumsLeases,
    /// All conditions. After a lease that ended without a release, `lock.delay` must have passed as
    /// well.
    AfterDelay,
    /// All conditions, at the end of a script that keeps the node busy for `lock.script_time`
    /// before it looks at the lock.
    AfterWork,
}

/// The way in which scripts are sent to a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scripts {
    /// EVAL with the text, each time.
    Text,
    /// EVALSHA, and EVAL if the node does not know the script.
    ShaOrText,
    /// SCRIPT LOAD before the first call; then EVALSHA, and nothing if the node does not know the
    /// script.
    Load,
    /// EVAL for the first call; then EVALSHA, and nothing if the node does not know the script.
    RunOnce,
    /// EVAL for the first call, and SCRIPT LOAD after it; then EVALSHA, and nothing if the node
    /// does not know the script.
    RunAndLoad,
}

/// The part of the lock's key that has the lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LeaseOn {
    /// The whole key.
    Key,
    /// The owner's field of a hash: HSETEX and HPEXPIRE of Redis 8 and Valkey 9. With
    /// `key = "token"` the hash has one field, which holds the owner's token.
    Field,
}

/// The delay or event after which a waiter asks again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pace {
    /// A new random delay each time.
    Spread,
    /// The same delay each time.
    Fixed,
    /// A delay that doubles each time.
    Doubling,
    /// Next to no delay: 1 ms.
    AtOnce,
    /// A message of the release, or the end of the lease. The waiter asks again after it has
    /// subscribed, before it sleeps.
    Message,
    /// A message of the release, or the end of the lease, but the waiter sleeps as soon as it has
    /// subscribed.
    MessageWithoutRecheck,
    /// A keyspace notification about the lock, and nothing else.
    KeyEvent,
}

/// The source of fencing tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Fencing {
    /// There are no fencing tokens.
    None,
    /// A counter that the granting step raises.
    WithGrant,
    /// A counter that a separate step raises after the grant.
    Afterwards,
    /// The client's wall clock.
    ClientClock,
}

/// The acknowledgement by a replica that a grant requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Replicas {
    /// No acknowledgement is asked for.
    None,
    /// One replica must acknowledge a grant; otherwise the lock is released.
    Required,
    /// One replica is asked to acknowledge, and the result is ignored.
    Ignored,
    /// One replica must acknowledge, by the number that WAIT returns in the script that grants the
    /// lock. There WAIT does not block. Otherwise the script releases the lock.
    InScript,
    /// One replica must acknowledge, by the number that WAIT returns in the transaction (MULTI)
    /// that grants the lock. There WAIT does not block. Otherwise the lock is released.
    InTransaction,
    /// One replica must acknowledge, whatever the node answered; otherwise the lock is released,
    /// even if it was not granted.
    RequiredOfAll,
}

/// The way a release makes sure that the lock is its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Release {
    /// A script compares the token.
    Compare,
    /// One command compares the token: DELIFEQ of Valkey 9. For a lock that is a string and whose
    /// waiters need no message.
    DelIfEq,
    /// DEL, without any comparison.
    Delete,
    /// GET, then DEL if the token was its own. Of a latch: GET, then SET to one less.
    GetThenDelete,
    /// A script compares the token, and sets a key for each release, which would identify a repeat.
    /// This is for a lock that is a string and whose waiters need no message.
    Remember,
    /// A script compares the owner. When a reader that also writes releases a level, the lock gets
    /// the longest lease of the readers.
    ShortensWriter,
    /// A script compares the owner, but publishes no message when a writer becomes a reader.
    SilentDowngrade,
}

/// The time until which an owner believes that it holds its lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Belief {
    /// The end of the lease, counted from before the request was sent. A grant that arrives after
    /// this is refused.
    FromRequest,
    /// The end of the lease, counted from the reply, however late it comes.
    FromReply,
    /// No end: until the owner learns that it lost the lock.
    UntilTold,
}

/// The clock that measures the belief.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ClockName {
    /// The clock that continues while the machine sleeps.
    Boottime,
    /// The clock that stops while the machine sleeps.
    Monotonic,
    /// The clock that an operator can set.
    Wall,
}

/// The number of nodes that make a quorum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Quorum {
    /// More than half.
    Majority,
    /// Half, rounded down, but at least one. Two owners can have such a quorum at the same time.
    Half,
}

/// The cleanup after a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cleanup {
    /// Complete: each node that granted the lock or did not answer is asked to release, over the
    /// same connection.
    All,
    /// Complete, unless the release overtakes a late request: to a node that did not answer, the
    /// release goes over a new connection.
    NewConnection,
    /// Each node that is known to have granted the lock is asked to release. Grants whose reply did
    /// not come are left behind.
    Acknowledged,
    /// No node is asked to release. All grants are left behind.
    None,
}

/// The way the watchdog renews a lease, each time that a third of it has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Renewal {
    /// It does not renew.
    Never,
    /// On a quorum of nodes that still have the owner's token; otherwise the lock is lost.
    Quorum,
    /// On a quorum of nodes that still have the owner's token, by one command instead of a script:
    /// SET IFEQ of Valkey 8.1. For a lock that is a string.
    SetIfEq,
    /// On each node that still has the owner's token, whatever the others answer.
    EachNode,
    /// On a quorum of nodes that answer, whatever they answer.
    AnyAnswer,
    /// It does not renew: it asks the nodes if they still have the owner's token, and believes a
    /// quorum that says so.
    Looks,
    /// On every node, whatever token the node has.
    Anybody,
    /// By setting the key again, even if it no longer exists.
    Recreate,
    /// Until the first time that a renewal fails.
    UntilFailure,
    /// Together with the leases of all other readers, if the owner is a reader.
    AllReaders,
    /// Until the owner has released the lock once, in either mode.
    UntilAnyRelease,
}

/// The reaction when the reply to an acquisition does not come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Resend {
    /// None: the attempt has failed, and is cleaned up.
    Never,
    /// The same request again, on a new connection.
    Same,
    /// A request with a new token.
    Fresh,
}

/// The scope of a token: the acquisitions that share one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Token {
    /// Each acquisition has a new token.
    Unique,
    /// All acquisitions of a client use the same token.
    OfClient,
    /// All clients use the same token.
    Shared,
}
