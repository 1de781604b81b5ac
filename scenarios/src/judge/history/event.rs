//! One event on one host. Instants are true time unless a clock is named.

use std::time::Duration;

use lockstorm_world::time::{True, Wall};
use serde::{Deserialize, Serialize};

use super::{
    clock::Deadline,
    id::{Host, Lock, Op, Owner, nanos, wall_option},
};

/// One event: its kind, time and host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// The instant in true time; the stored form has nanoseconds since the start of the run.
    #[serde(with = "nanos")]
    pub at: True,
    /// The client that acted or got the reply, the node that executed the command, or the resource
    /// that received the write.
    pub host: Host,
    /// The kind of event, with its data.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// A kind of event on a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
pub enum EventKind {
    /// Client: the application called an operation.
    Invoke {
        /// The number of the call; the [`EventKind::Return`] with the same number ends it.
        op: Op,
        /// The lock on trial to which the call applies, a latch or rate limiter included.
        lock: Lock,
        /// The owner for which the client calls.
        owner: Owner,
        /// The operation with its arguments, such as an acquisition with its wait and lease.
        call: Call,
    },
    /// Client: the call returned.
    Return {
        /// The number of the call, as in its [`EventKind::Invoke`].
        op: Op,
        /// Success, a refusal by the lock's rules, or an error.
        outcome: Outcome,
    },
    /// Client: from now on the owner believes that it holds the lock. Emitted when an acquire
    /// succeeds and again at each renewal.
    Believes {
        /// The lock that the owner believes it holds.
        lock: Lock,
        /// The owner, which may believe this while the nodes have no such hold.
        owner: Owner,
        /// The reading, and the client's clock that must show it, at which the belief ends; `None`:
        /// until the owner learns otherwise.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Deadline>,
        /// The fencing token, if the owner got one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token: Option<u64>,
        /// The number of levels that the owner believes it holds.
        count: u32,
        /// Shared for a reader, exclusive for a writer.
        #[serde(default)]
        mode: Mode,
    },
    /// Client: from now on the owner knows that it does not hold the lock (any more).
    Disbelieves {
        /// The lock whose hold ended for the owner.
        lock: Lock,
        /// The owner. It may disbelieve one mode and still hold the lock in the other.
        owner: Owner,
        /// The way the owner knows: its own release, a loss it learned of, or the end of its lease.
        why: Reason,
        /// The mode of the ended hold: shared for a reader, exclusive for a writer.
        #[serde(default)]
        mode: Mode,
    },
    /// Client: the owner's line of work ended without releasing the lock that it believes it holds.
    /// It will never release it.
    Abandoned {
        /// The lock that the owner still believes it holds.
        lock: Lock,
        /// The owner whose line of work ended.
        owner: Owner,
    },
    /// Client: the owner was refused and waits for a wake-up.
    Waiting {
        /// The lock that the owner was refused.
        lock: Lock,
        /// The owner that now waits for a message or a timer.
        owner: Owner,
    },
    /// Client: the owner stopped waiting in order to try again.
    Woken {
        /// The lock for which the owner asks again.
        lock: Lock,
        /// The owner that stopped waiting. It does not hold the lock yet.
        owner: Owner,
        /// A published message, or the owner's own timer.
        by: Wake,
    },
    /// Node: it executed a client's command by which the owner holds the lock, or holds one more
    /// level. A replica that applies the same command does not record a grant. The
    /// [`EventKind::Queue`] of the same command comes before or after it, in the order of the
    /// command's writes.
    Granted {
        /// The lock that the node's data now shows as held.
        lock: Lock,
        /// The new holder according to the node's data.
        owner: Owner,
        /// The lease in milliseconds; `None`: the key has no expiry.
        lease_ms: Option<u64>,
        /// The instant of the key's expiry by this node's wall clock.
        #[serde(with = "wall_option", default, skip_serializing_if = "Option::is_none")]
        until: Option<Wall>,
        /// The number of levels that the owner now holds.
        count: u32,
        /// The fencing token handed out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token: Option<u64>,
        /// Shared for a reader, exclusive for a writer.
        #[serde(default)]
        mode: Mode,
    },
    /// Node: the lock's key got a new expiry.
    Extended {
        /// The lock whose expiry changed.
        lock: Lock,
        /// The owner of the extended hold; the sender of the command is `by`.
        owner: Owner,
        /// The sender of the command.
        by: Party,
        /// The new lease in milliseconds; `None`: the key lost its expiry.
        lease_ms: Option<u64>,
        /// The instant of the key's expiry by this node's wall clock.
        #[serde(with = "wall_option", default, skip_serializing_if = "Option::is_none")]
        until: Option<Wall>,
        /// The mode of the extended hold.
        #[serde(default)]
        mode: Mode,
    },
    /// Node: a release took effect.
    Released {
        /// The lock that lost a hold, or one level of a hold.
        lock: Lock,
        /// The owner of the released hold.
        owner: Owner,
        /// The sender of the command.
        by: Party,
        /// The number of levels that the owner still holds.
        left: u32,
        /// The new lease in milliseconds, if a partial release set one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lease_ms: Option<u64>,
        /// The instant of the key's expiry by this node's wall clock, after a partial release.
        #[serde(with = "wall_option", default, skip_serializing_if = "Option::is_none")]
        until: Option<Wall>,
        /// The mode of the released hold.
        #[serde(default)]
        mode: Mode,
    },
    /// Node: the owner's hold ended without a release by the owner.
    Vanished {
        /// The lock that lost the hold.
        lock: Lock,
        /// The owner that held it until now.
        owner: Owner,
        /// Expiry, eviction, a flush, a client's command, a crash or a failover.
        how: LossCause,
        /// The mode of the lost hold.
        #[serde(default)]
        mode: Mode,
    },
    /// Node: it restarted or was promoted with a hold that differs from its group's latest record
    /// of that hold. The later release, loss or shorter lease was not on its disk, or had not
    /// reached it when it took over.
    ///
    /// Recorded by a master that has just restarted or become one, for holds that are not over by
    /// its clock. The group's latest record is the last grant, extension, release or loss by any of
    /// its nodes; a replica's loss of its copy does not count. A hold differs if the record says
    /// that the owner holds nothing, or has another number of levels, or has the same number but an
    /// end more than [`SAME_END`] earlier than the node's. A hold equal to the record, or with an
    /// earlier end, has not come back.
    Regained {
        /// The lock that the node shows as held again.
        lock: Lock,
        /// The holder according to the node.
        owner: Owner,
        /// The remaining lease in milliseconds by this node's wall clock; `None`: the key has no
        /// expiry.
        lease_ms: Option<u64>,
        /// The instant of the key's expiry by this node's wall clock.
        #[serde(with = "wall_option", default, skip_serializing_if = "Option::is_none")]
        until: Option<Wall>,
        /// The number of levels according to the node.
        count: u32,
        /// A restart from older data on disk, or a promotion without the latest changes.
        how: GainCause,
        /// The mode of the hold that is back.
        #[serde(default)]
        mode: Mode,
    },
    /// Node: the queue of a fair lock changed; this is the new queue.
    Queue {
        /// The fair lock with this queue.
        lock: Lock,
        /// The waiting owners, head first.
        waiters: Box<[Owner]>,
    },
    /// Node: the count of a latch changed to this value. Zero: the latch is open.
    Counted {
        /// The latch; latches are among the header's locks.
        lock: Lock,
        /// The number of count-downs until the latch opens.
        left: u64,
    },
    /// Node: it granted permits of a rate limiter.
    Passed {
        /// The rate limiter; limiters are among the header's locks.
        lock: Lock,
        /// The sender of the request. It has an owner if each process has its own rate: an owner of
        /// the process whose rate was used.
        by: Party,
        /// The number of permits that this request took together.
        permits: u32,
    },
    /// Node: it published a lock's message.
    Published {
        /// The lock or latch to whose channel the message went.
        lock: Lock,
        /// The number of subscribers that received it.
        receivers: u32,
    },
    /// Node: it became a master or a replica.
    Became {
        /// The role from this event on.
        role: Role,
    },
    /// Sentinel: it emitted an event of its own.
    Sentinel {
        /// The event's name, such as `+sdown`.
        event: Box<str>,
        /// The event's message.
        message: Box<str>,
    },
    /// Node of a cluster: its view of the cluster changed.
    Cluster {
        /// The change: `pfail`, `fail`, `recovered`, `election`, `vote`, `elected`, `takeover`,
        /// `epoch`, `slots`, `migrating`, `importing`, `stable`, `exporting`, `paused`, `exported`,
        /// `imported`, `follows` or `state`.
        event: Box<str>,
        /// The node, slots or epoch concerned.
        about: Box<str>,
    },
    /// Node of a cluster: its role for the slot of a lock changed, in its own view.
    Serves {
        /// The lock that lives in the slot.
        lock: Lock,
        /// The role from this event on, such as [`Serving::Migrating`].
        how: Serving,
    },
    /// Any host: its software started, crashed, was halted or resumed.
    Life {
        /// A start, a crash, or the begin or end of a pause or suspension.
        life: Life,
    },
    /// Resource: a client's write arrived.
    Write {
        /// The lock that guards the resource.
        lock: Lock,
        /// The owner that wrote, even if it no longer holds the lock.
        owner: Owner,
        /// The fencing token that the owner sent with the write; `None` for a lock without tokens.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token: Option<u64>,
        /// The instant the client sent it.
        #[serde(with = "nanos")]
        sent: True,
        /// The decision of each fencing rule on this write.
        accepted: Accepted,
    },
}

/// An operation that an application asks of a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Call {
    /// Asks for the lock, and waits if another owner holds it.
    Acquire {
        /// The longest time to wait.
        wait: Wait,
        /// The lease asked for in milliseconds; `None`: until released, renewed by a watchdog.
        lease_ms: Option<u64>,
        /// Shared to read beside other readers, exclusive to be alone.
        #[serde(default)]
        mode: Mode,
    },
    /// Gives up one level of the caller's hold.
    Release,
    /// Sets a new lease on the hold.
    Extend {
        /// The time in milliseconds from the call's execution to the new expiry.
        lease_ms: u64,
    },
    /// Sets a latch to its count, if it is open.
    Set,
    /// Counts a latch down by one; at zero it opens.
    CountDown,
    /// Waits until a latch is open.
    Await {
        /// The longest time to wait.
        wait: Wait,
    },
    /// Opens a latch by deleting it.
    Delete,
    /// Takes permits of a rate limiter.
    Take {
        /// The number of permits to take together: all of them or none.
        permits: u32,
        /// The longest time to wait.
        wait: Wait,
    },
}

/// The longest time that a caller waits for a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wait {
    /// The caller does not wait.
    No,
    /// A number of milliseconds.
    Ms(u64),
    /// The caller waits without a limit.
    Unbounded,
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The call succeeded.
    Ok,
    /// The lock's rules refused it: another owner holds the lock, or the caller does not.
    Refused,
    /// The call failed with an error.
    Failed {
        /// True if the lock certainly did not change.
        definite: bool,
        /// The text of the error, as the client's library reports it.
        message: Box<str>,
    },
}

/// The holds that may exist beside a hold: none, or others in the same mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// No other owner may hold it.
    #[default]
    Exclusive,
    /// Others may hold it in the same mode.
    Shared,
}

/// The reason for which an owner believes that it no longer holds a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// The owner is about to release it.
    Released,
    /// The owner learned of the loss: a renewal or a release found that the lock was gone.
    Lost,
    /// The lease is over by the owner's own clock.
    Expired,
}

/// The cause that ended a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wake {
    /// A message that a node published on a channel of the lock.
    Message,
    /// The owner's own timer, without a message.
    Timer,
}

/// The sender of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Party {
    /// The client that sent it; for a command at a node's own console, the node.
    pub client: Host,
    /// The owner for which it was sent, if the command or its connection identifies one. A bare DEL
    /// on a connection that several lines of work of the client share does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<Owner>,
}

/// The cause for which a hold ended without a release by its owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LossCause {
    /// The lease was over by the node's wall clock.
    Expired,
    /// The node evicted the key to free memory.
    Evicted,
    /// A client ran FLUSHALL or FLUSHDB.
    Flushed,
    /// A client deleted the key.
    Deleted(Party),
    /// A client overwrote the value.
    Overwritten(Party),
    /// The node crashed and restarted without it.
    Crash,
    /// The promoted node did not have it.
    Failover,
}

/// The way in which a node got a hold that its group no longer had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GainCause {
    /// It restarted with older data from its disk.
    Restart,
    /// It became a master without the latest changes of the former master.
    Failover,
}

/// Two ends of a lease at most this far apart count as equal: the recorder reads a real node's
/// expiry some time after it was set.
pub const SAME_END: Duration = Duration::from_millis(10);

/// The role of a node in its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// It takes writes.
    Master,
    /// It applies its master's writes.
    Replica,
}

/// The role of a cluster node for a slot, in its own view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Serving {
    /// Another node is the slot's master, or no node is.
    Elsewhere,
    /// It is the slot's master, but does not serve it, because the cluster is down.
    Closed,
    /// It is the slot's master and serves all its keys.
    Whole,
    /// It is the slot's master and serves the keys that have not been moved yet.
    Migrating,
    /// Another node is the slot's master; this one serves the clients that the master redirects to
    /// it.
    Importing,
}

impl Serving {
    /// Returns true if the node is the slot's master, even if it does not serve the slot.
    pub fn is_master(self) -> bool {
        matches!(self, Self::Closed | Self::Whole | Self::Migrating)
    }

    /// Returns true if the node is the slot's master and serves it.
    pub fn answers(self) -> bool {
        matches!(self, Self::Whole | Self::Migrating)
    }
}

/// A change in the life of a host's software.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Life {
    /// It started, for the first time or again.
    Started,
    /// It crashed and lost its memory.
    Crashed,
    /// It does not run, but all its clocks continue.
    Paused,
    /// It does not run, and its monotonic clock stops.
    Suspended,
    /// It runs again after a pause or a suspension.
    Resumed,
}

/// The decision of each fencing rule on a write: true means accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accepted {
    /// By the rule `>` ([`Fence::Greater`](super::Fence::Greater)).
    pub greater: bool,
    /// By the rule `>=` ([`Fence::AtLeast`](super::Fence::AtLeast)).
    pub at_least: bool,
}

impl EventKind {
    /// Returns the lock concerned, or `None` if the event concerns no single lock.
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

    /// Returns the owner concerned, or `None` if the event concerns no single owner.
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

    /// Returns the hold concerned: an owner has one hold of a lock in each mode.
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

    /// Returns the acting party, so that the reader of a file can check its numbers.
    pub(super) fn party(&self) -> Option<Party> {
        match self {
            Self::Extended { by, .. } | Self::Released { by, .. } | Self::Passed { by, .. } => Some(*by),
            Self::Vanished { how: LossCause::Deleted(by) | LossCause::Overwritten(by), .. } => Some(*by),
            _ => None,
        }
    }
}
