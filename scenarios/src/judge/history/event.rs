//! One thing that happened on one host. Instants are true time unless a clock is named.

use std::time::Duration;

use lockstorm_sim::time::{True, Wall};
use serde::{Deserialize, Serialize};

use super::{
    clock::Deadline,
    id::{Host, Lock, Op, Owner, nanos, wall_option},
};

/// What happened, when and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// True time.
    #[serde(with = "nanos")]
    pub at: True,
    /// The client that did or learned it, the node that executed it, or the resource it arrived at.
    pub host: Host,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// What happened on a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
pub enum EventKind {
    /// Client: the application called.
    Invoke {
        /// Which call.
        op: Op,
        /// The lock.
        lock: Lock,
        /// The owner.
        owner: Owner,
        /// What was asked.
        call: Call,
    },
    /// Client: the call came back.
    Return {
        /// Which call.
        op: Op,
        /// With what.
        outcome: Outcome,
    },
    /// Client: from now on the owner thinks that it holds the lock. Emitted when an acquire
    /// succeeded and again at each renewal.
    Believes {
        /// The lock.
        lock: Lock,
        /// Who.
        owner: Owner,
        /// Until which reading of which of this client's clocks; `None`: until it learns otherwise.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Deadline>,
        /// The fencing token, if it got one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token: Option<u64>,
        /// How many times it thinks that it holds it.
        count: u32,
        /// Shared or alone.
        #[serde(default)]
        mode: Mode,
    },
    /// Client: from now on the owner knows that it does not hold the lock (any more).
    Disbelieves {
        /// The lock.
        lock: Lock,
        /// Who.
        owner: Owner,
        /// What made it think so.
        why: Reason,
        /// Shared or alone.
        #[serde(default)]
        mode: Mode,
    },
    /// Client: the owner's line of work has ended, and has not given back what it believes it
    /// holds. Nothing that it does will.
    Abandoned {
        /// The lock.
        lock: Lock,
        /// Who.
        owner: Owner,
    },
    /// Client: it was refused and waits to be woken.
    Waiting {
        /// The lock.
        lock: Lock,
        /// Who.
        owner: Owner,
    },
    /// Client: it stopped waiting in order to try again.
    Woken {
        /// The lock.
        lock: Lock,
        /// Who.
        owner: Owner,
        /// By what.
        by: Wake,
    },
    /// Node: it executed a client's command that made the owner hold the lock (again). What a
    /// replica repeats is not a grant. The [`EventKind::Queue`] of the same command comes before or
    /// after it, in the order of the command's writes.
    Granted {
        /// The lock.
        lock: Lock,
        /// The owner.
        owner: Owner,
        /// For how long; `None`: the key has no expiry.
        lease_ms: Option<u64>,
        /// When the key expires by this node's wall clock.
        #[serde(with = "wall_option", default, skip_serializing_if = "Option::is_none")]
        until: Option<Wall>,
        /// How many times the owner now holds it.
        count: u32,
        /// The token handed out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token: Option<u64>,
        /// Shared or alone.
        #[serde(default)]
        mode: Mode,
    },
    /// Node: the lock's key got a new expiry.
    Extended {
        /// The lock.
        lock: Lock,
        /// Who holds it.
        owner: Owner,
        /// Who asked for the extension.
        by: Party,
        /// The new lease; `None`: the key lost its expiry.
        lease_ms: Option<u64>,
        /// When the key expires by this node's wall clock.
        #[serde(with = "wall_option", default, skip_serializing_if = "Option::is_none")]
        until: Option<Wall>,
        /// Shared or alone.
        #[serde(default)]
        mode: Mode,
    },
    /// Node: a release took effect.
    Released {
        /// The lock.
        lock: Lock,
        /// Whose hold was released.
        owner: Owner,
        /// Who asked for it.
        by: Party,
        /// How many holds of the owner are left.
        left: u32,
        /// The lease a partial release set, if it set one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lease_ms: Option<u64>,
        /// When the key expires by this node's wall clock, after a partial release.
        #[serde(with = "wall_option", default, skip_serializing_if = "Option::is_none")]
        until: Option<Wall>,
        /// Shared or alone.
        #[serde(default)]
        mode: Mode,
    },
    /// Node: the owner's hold is gone without its owner having released it.
    Vanished {
        /// The lock.
        lock: Lock,
        /// Who held it until now.
        owner: Owner,
        /// How it went.
        how: LossCause,
        /// Shared or alone.
        #[serde(default)]
        mode: Mode,
    },
    /// Node: it has come back with a hold of the owner that is not what its group has said of that
    /// last: the release, the loss or the shorter lease that came after was not on its disk, or had
    /// not reached it when it took over.
    ///
    /// Told by a node that is a master, of what it has when it has started again or has become one,
    /// and that is not over by its clock. The last that the nodes of the group have said, a grant,
    /// an extension, a release or a loss (that of a replica's copy is none), is that the owner has
    /// nothing any more, or another number of levels than the node counts, or the same with an end
    /// by more than [`SAME_END`] before that which the node has. What it has as its group had it,
    /// or with an earlier end, has not come back.
    Regained {
        /// The lock.
        lock: Lock,
        /// Who holds it as the node has it.
        owner: Owner,
        /// What is left of its lease by this node's wall clock; `None`: the key has no expiry.
        lease_ms: Option<u64>,
        /// When the key expires by this node's wall clock.
        #[serde(with = "wall_option", default, skip_serializing_if = "Option::is_none")]
        until: Option<Wall>,
        /// How many times the owner holds it as the node has it.
        count: u32,
        /// How the node came to have it.
        how: GainCause,
        /// Shared or alone.
        #[serde(default)]
        mode: Mode,
    },
    /// Node: the queue of a fair lock changed and is now this, head first.
    Queue {
        /// The lock.
        lock: Lock,
        /// Who waits.
        waiters: Box<[Owner]>,
    },
    /// Node: the count of a latch is now this. Zero: the latch is open.
    Counted {
        /// The latch.
        lock: Lock,
        /// How many times it must be counted down until it opens.
        left: u64,
    },
    /// Node: it granted permits of a rate limiter.
    Passed {
        /// The limiter.
        lock: Lock,
        /// Who asked for them; with an owner of the process whose rate it was, where each has one
        /// by itself.
        by: Party,
        /// How many.
        permits: u32,
    },
    /// Node: it published a lock's message.
    Published {
        /// The lock.
        lock: Lock,
        /// How many subscribers it was sent to.
        receivers: u32,
    },
    /// Node: it became a master or a replica.
    Became {
        /// Which.
        role: Role,
    },
    /// Sentinel: it emitted an event.
    Sentinel {
        /// Its name, such as `+sdown`.
        event: Box<str>,
        /// What it is about.
        message: Box<str>,
    },
    /// Node of a cluster: something has changed in its view of the cluster.
    Cluster {
        /// What: `pfail`, `fail`, `recovered`, `election`, `vote`, `elected`, `takeover`, `epoch`,
        /// `slots`, `migrating`, `importing`, `stable`, `follows` or `state`.
        event: Box<str>,
        /// Of which node, slots or epoch.
        about: Box<str>,
    },
    /// Node of a cluster: what it is to the slot of a lock, in its own view, is another thing from
    /// now on.
    Serves {
        /// The lock.
        lock: Lock,
        /// What.
        how: Serving,
    },
    /// Any host: its software started, stopped or stood still.
    Life {
        /// Which.
        life: Life,
    },
    /// Resource: a client's write arrived.
    Write {
        /// The lock that guards the resource.
        lock: Lock,
        /// Who wrote.
        owner: Owner,
        /// The token it carried.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token: Option<u64>,
        /// When the client sent it.
        #[serde(with = "nanos")]
        sent: True,
        /// Whether each rule would have let it through.
        accepted: Accepted,
    },
}

/// What an application asked of a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Call {
    /// To hold it.
    Acquire {
        /// How long it would wait.
        wait: Wait,
        /// For how long it wants it; `None`: until released, kept by a watchdog.
        lease_ms: Option<u64>,
        /// Shared or alone.
        #[serde(default)]
        mode: Mode,
    },
    /// To hold it no longer.
    Release,
    /// To hold it for so much longer.
    Extend {
        /// The new lease.
        lease_ms: u64,
    },
    /// To set a latch to its count, if it is open.
    Set,
    /// To count a latch down by one.
    CountDown,
    /// To go on when a latch is open.
    Await {
        /// How long it would wait.
        wait: Wait,
    },
    /// To open a latch by deleting it.
    Delete,
    /// To be granted permits of a rate limiter.
    Take {
        /// How many.
        permits: u32,
        /// How long it would wait.
        wait: Wait,
    },
}

/// How long a caller would wait for a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wait {
    /// Not at all.
    No,
    /// So many milliseconds.
    Ms(u64),
    /// Without a limit.
    Unbounded,
}

/// How a call came back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It was done.
    Ok,
    /// It was refused by the lock's rules: another owner holds it, or the caller does not.
    Refused,
    /// It went wrong.
    Failed {
        /// Whether the lock certainly did not change.
        definite: bool,
        /// The error.
        message: Box<str>,
    },
}

/// Shared or alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// No other owner may hold it.
    #[default]
    Exclusive,
    /// Others may hold it in the same mode.
    Shared,
}

/// What made an owner think that it no longer holds a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// It is about to release it.
    Released,
    /// It learned of the loss: a renewal or a release found that the lock was gone.
    Lost,
    /// Its own clock says that the lease is over.
    Expired,
}

/// What ended a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wake {
    /// A published message.
    Message,
    /// A timer.
    Timer,
}

/// Who sent a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Party {
    /// The client it came from.
    pub client: Host,
    /// On whose behalf, where the command or its connection says it; a bare DEL on a connection
    /// that several lines of work of the client share does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<Owner>,
}

/// How a hold went away without its owner having released it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LossCause {
    /// Its lease was over by the node's wall clock.
    Expired,
    /// The node needed the memory.
    Evicted,
    /// FLUSHALL or FLUSHDB.
    Flushed,
    /// A client deleted the key.
    Deleted(Party),
    /// A client overwrote the value.
    Overwritten(Party),
    /// The node crashed and came back without it.
    Crash,
    /// The node that was promoted did not have it.
    Failover,
}

/// How a node came to have a hold that its group had no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GainCause {
    /// It started again with what was on its disk.
    Restart,
    /// It became a master with what had reached it.
    Failover,
}

/// Two ends of a lease that are no farther apart may be one: a real node's is read some time after
/// it was set.
pub const SAME_END: Duration = Duration::from_millis(10);

/// What a node is to its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// It takes writes.
    Master,
    /// It repeats its master's.
    Replica,
}

/// What a node of a cluster is to a slot, in its own view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Serving {
    /// Another node is its master, or none is.
    Elsewhere,
    /// It is its master, and does not answer, because the cluster is down.
    Closed,
    /// It is its master, and answers.
    Whole,
    /// It is its master, and answers for the keys that it still has.
    Migrating,
    /// Another node is its master, and this one answers who was sent by it.
    Importing,
}

impl Serving {
    /// Whether the node is the master of the slot, whether or not it answers.
    pub fn is_master(self) -> bool {
        matches!(self, Self::Closed | Self::Whole | Self::Migrating)
    }

    /// Whether the node is the master of the slot, and answers.
    pub fn answers(self) -> bool {
        matches!(self, Self::Whole | Self::Migrating)
    }
}

/// What became of a host's software.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Life {
    /// It started, for the first time or again.
    Started,
    /// It crashed; what it had in memory is gone.
    Crashed,
    /// It stands still; all its clocks go on.
    Paused,
    /// It stands still, and its monotonic clock with it.
    Suspended,
    /// It goes on after a pause or a suspension.
    Resumed,
}

/// Whether each rule of a resource would have let a write through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accepted {
    /// Under `>`.
    pub greater: bool,
    /// Under `>=`.
    pub at_least: bool,
}

impl EventKind {
    /// The lock it is about, if it is about one.
    pub fn lock(&self) -> Option<Lock> {
        match self {
            Self::Invoke { lock, .. }
            | Self::Believes { lock, .. }
            | Self::Disbelieves { lock, .. }
            | Self::Abandoned { lock, .. }
            | Self::Waiting { lock, .. }
            | Self::Woken { lock, .. }
            | Self::Granted { lock, .. }
            | Self::Extended { lock, .. }
            | Self::Released { lock, .. }
            | Self::Vanished { lock, .. }
            | Self::Regained { lock, .. }
            | Self::Queue { lock, .. }
            | Self::Counted { lock, .. }
            | Self::Passed { lock, .. }
            | Self::Published { lock, .. }
            | Self::Serves { lock, .. }
            | Self::Write { lock, .. } => Some(*lock),
            Self::Return { .. }
            | Self::Became { .. }
            | Self::Sentinel { .. }
            | Self::Cluster { .. }
            | Self::Life { .. } => None,
        }
    }

    /// The owner it is about, if it is about one.
    pub fn owner(&self) -> Option<Owner> {
        match self {
            Self::Invoke { owner, .. }
            | Self::Believes { owner, .. }
            | Self::Disbelieves { owner, .. }
            | Self::Abandoned { owner, .. }
            | Self::Waiting { owner, .. }
            | Self::Woken { owner, .. }
            | Self::Granted { owner, .. }
            | Self::Extended { owner, .. }
            | Self::Released { owner, .. }
            | Self::Vanished { owner, .. }
            | Self::Regained { owner, .. }
            | Self::Write { owner, .. } => Some(*owner),
            Self::Return { .. }
            | Self::Queue { .. }
            | Self::Counted { .. }
            | Self::Passed { .. }
            | Self::Published { .. }
            | Self::Became { .. }
            | Self::Sentinel { .. }
            | Self::Cluster { .. }
            | Self::Serves { .. }
            | Self::Life { .. } => None,
        }
    }

    /// The hold that it is about: an owner has one of a lock in each mode.
    pub fn hold(&self) -> Option<(Lock, Owner, Mode)> {
        match self {
            Self::Believes { lock, owner, mode, .. }
            | Self::Disbelieves { lock, owner, mode, .. }
            | Self::Granted { lock, owner, mode, .. }
            | Self::Extended { lock, owner, mode, .. }
            | Self::Released { lock, owner, mode, .. }
            | Self::Vanished { lock, owner, mode, .. }
            | Self::Regained { lock, owner, mode, .. } => Some((*lock, *owner, *mode)),
            _ => None,
        }
    }

    /// The acting party that it mentions, for checking that it is known.
    pub(super) fn party(&self) -> Option<Party> {
        match self {
            Self::Extended { by, .. } | Self::Released { by, .. } | Self::Passed { by, .. } => Some(*by),
            Self::Vanished { how: LossCause::Deleted(by) | LossCause::Overwritten(by), .. } => Some(*by),
            _ => None,
        }
    }
}
