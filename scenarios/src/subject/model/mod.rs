//! Small models of other lock algorithms: the lock of `SET key token NX PX`, over one node or a quorum of them, and its kin that
//! count, queue, share or hand out permits. Each is done right by default, and wrong in exactly one way for each model.
//!
//! Models exist to be judged: by the claims that say what goes wrong with them, and by the tests that prove that every alarm
//! rings.

mod commands;
mod hold;
mod lock;
mod table;
mod wire;

use lockstorm_client::Env;

use crate::{bridge::HostEnv, history::Deadline};

pub(super) use lock::make;
pub use table::{about, traits};

/// What a model does, and by that what it does wrong. The default is right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traits {
    /// How the key says who holds the lock.
    pub key: Key,
    /// What is looked at before the lock is granted.
    pub grant: Grant,
    /// How a release finds out whether the lock is its own.
    pub release: Release,
    /// Until when an owner believes in its lock.
    pub belief: Belief,
    /// The clock that the belief is measured by.
    pub clock: ClockKind,
    /// How many nodes make a quorum.
    pub quorum: Quorum,
    /// Whether the quorum's validity is shortened by what clocks may drift.
    pub drift: bool,
    /// What an attempt that failed leaves behind.
    pub cleanup: Cleanup,
    /// How a lease is renewed.
    pub renewal: Renewal,
    /// Whether a release ends the renewals.
    pub cancels: bool,
    /// What is done when the reply to an acquisition does not come.
    pub resend: Resend,
    /// Whether a release is sent again when its reply does not come.
    pub resend_release: bool,
    /// What a waiter waits for before it asks again.
    pub pace: Pace,
    /// Whether all nodes are asked at once, or one after the other.
    pub at_once: bool,
    /// Whether the token is a new one for each acquisition, or the same for all clients.
    pub token: Token,
    /// Where fencing tokens come from.
    pub fence: Fence,
    /// Whether a replica must have acknowledged the grant.
    pub replicas: Replicas,
}

/// How the key says who holds the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// A string with the owner's token.
    Token,
    /// The same, and a list of those who wait for it.
    Queue,
    /// A hash with the owner's count, which a repeated acquisition raises.
    Count,
    /// A hash with the readers or the writer, and which of the two they are.
    Mode,
    /// A string with how many permits are left.
    Permits,
}

/// What is looked at before the lock is granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grant {
    /// All that matters, in one step.
    Checked,
    /// The same, but the expiry is set in a second step.
    TwoSteps,
    /// Not who is first in line.
    AnybodyInLine,
    /// Who is first in line, but whoever is that in a long line is thrown out.
    ShortLine,
    /// Not how many permits are left.
    AnyPermit,
    /// Not whether somebody writes, for a reader.
    ReadUnderWrite,
    /// Not whether somebody reads, for a writer.
    WriteUnderRead,
}

/// What a waiter waits for before it asks again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// A delay drawn anew each time.
    Spread,
    /// The same delay each time.
    Fixed,
    /// Next to nothing.
    AtOnce,
    /// A message of the release, or the end of the lease.
    Message {
        /// Whether it asks once more when it has subscribed, before it sleeps.
        second_look: bool,
    },
}

/// Where fencing tokens come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fence {
    /// There are none.
    None,
    /// They are counted in the step that grants the lock.
    WithGrant,
    /// They are counted in a step of its own, once the lock is had.
    Afterwards,
}

/// Whether a replica must have acknowledged the grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replicas {
    /// None is asked for.
    None,
    /// One must have: otherwise the lock is given back.
    Heeded,
    /// One is asked for, and it makes no difference what comes of it.
    Ignored,
}

/// How a release finds out whether the lock is its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Release {
    /// A script compares the token.
    Compare,
    /// It does not: DEL.
    Delete,
    /// GET, and DEL if it was the token.
    GetThenDelete,
}

/// Until when an owner believes in its lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Belief {
    /// The lease, counted from before the request was sent; an acquisition that comes too late is none.
    FromRequest,
    /// The lease, counted from the reply; however late it comes.
    FromReply,
    /// Until it is told otherwise.
    UntilTold,
}

/// The clock that the belief is measured by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockKind {
    /// The one that goes on while the machine sleeps.
    Boottime,
    /// The one that does not.
    Monotonic,
    /// The one that an operator can set.
    Wall,
}

/// How many nodes make a quorum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quorum {
    /// More than half.
    Majority,
    /// Half, rounded down, which two owners can have at once.
    Half,
}

/// What an attempt that failed leaves behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cleanup {
    /// Nothing: every node is asked to release.
    All,
    /// Nothing, unless a request that was late comes after the release: the two go over different connections.
    NewConnection,
    /// What nodes granted without their reply having come.
    Acknowledged,
    /// Everything.
    None,
}

/// How a lease is renewed, every third of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renewal {
    /// Not at all.
    Never,
    /// On a quorum of nodes that still have the owner's token; otherwise the lock is lost.
    Quorum,
    /// On each node that still has it, whatever the others say.
    EachNode,
    /// On every node, whoever's token it has.
    Anybody,
    /// By setting the key again, whether it is there or not.
    Recreate,
    /// Until the first time that a renewal fails.
    UntilFailure,
}

/// What is done when the reply to an acquisition does not come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resend {
    /// Nothing: the attempt failed, and is cleaned up after.
    Never,
    /// The same request again, on a new connection.
    Same,
    /// A request with a new token.
    Fresh,
}

/// Where tokens come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Token {
    /// A new one for each acquisition.
    Unique,
    /// One for each client.
    OfClient,
    /// One and the same for everybody.
    Shared,
}

impl Default for Traits {
    fn default() -> Traits {
        Traits {
            key: Key::Token,
            grant: Grant::Checked,
            release: Release::Compare,
            belief: Belief::FromRequest,
            clock: ClockKind::Boottime,
            quorum: Quorum::Majority,
            drift: true,
            cleanup: Cleanup::All,
            renewal: Renewal::Quorum,
            cancels: true,
            resend: Resend::Never,
            resend_release: false,
            pace: Pace::Spread,
            at_once: true,
            token: Token::Unique,
            fence: Fence::None,
            replicas: Replicas::None,
        }
    }
}

impl ClockKind {
    /// What the clock shows, in nanoseconds.
    fn now(self, env: &HostEnv) -> i64 {
        let reading = match self {
            ClockKind::Boottime => env.boottime().0,
            ClockKind::Monotonic => env.now().0,
            ClockKind::Wall => env.wall().0,
        };
        i64::try_from(reading.as_nanos()).unwrap_or(i64::MAX)
    }

    /// A reading of it, as the history has it.
    fn deadline(self, nanos: i64) -> Deadline {
        use lockstorm_sim::time;
        match self {
            ClockKind::Boottime => time::Boottime::from_nanos(nanos).into(),
            ClockKind::Monotonic => time::Monotonic::from_nanos(nanos).into(),
            ClockKind::Wall => time::Wall::from_nanos(nanos).into(),
        }
    }
}
