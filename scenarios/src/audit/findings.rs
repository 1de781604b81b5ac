//! Findings: events that a lock should prevent, and the commands that prove them.

use std::{collections::BTreeMap, rc::Rc};

use serde::Serialize;

use super::{
    capture::Unit,
    command::Call,
    locks::Leased,
    names::{Names, key, moment},
};

/// The most findings that are kept one by one; further ones are counted.
const FINDINGS_MAX: usize = 10_000;

/// A kind of finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The lock was granted to another owner while its former holder went on.
    GrantedTwice,
    /// A client deleted the hold of another owner.
    ReleasedByOther,
    /// A client changed the lease of another owner.
    ExtendedByOther,
    /// A client replaced a holder by another owner.
    Overwritten,
    /// A client that is no holder deleted the key.
    Deleted,
    /// A client deleted all keys.
    Flushed,
    /// The lease ended, and its holder renewed or released later.
    Late,
    /// A replica that became the master did not have the hold, and its holder came back.
    FailedOver,
    /// More permits of a semaphore were held or free than it has.
    PermitsBeyond,
    /// A waiter of a fair lock's queue was passed over.
    Overtaken,
    /// A lock that has no expiry stays if its holder dies.
    NoExpiry,
    /// Two hosts use one owner's name.
    SharedName,
    /// No command of the capture ended the hold.
    Unexplained,
    /// A renewal came shortly before the end of the lease.
    NearMiss,
    /// A client releases without a check of the owner.
    Unchecked,
    /// A release named another owner than the holder, and its script left the lock alone.
    NotHolder,
    /// A lease ended, and the source does not show if its owner came back.
    LeaseEnded,
    /// Clients wait for a latch that nothing counts down.
    NeverOpens,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 18] = [
        Kind::GrantedTwice,
        Kind::ReleasedByOther,
        Kind::ExtendedByOther,
        Kind::Overwritten,
        Kind::Deleted,
        Kind::Flushed,
        Kind::Late,
        Kind::FailedOver,
        Kind::PermitsBeyond,
        Kind::Overtaken,
        Kind::NoExpiry,
        Kind::SharedName,
        Kind::Unexplained,
        Kind::NearMiss,
        Kind::Unchecked,
        Kind::NotHolder,
        Kind::LeaseEnded,
        Kind::NeverOpens,
    ];

    /// Returns true if the kind makes an audit fail. Others are notices.
    pub fn is_finding(self) -> bool {
        !matches!(
            self,
            Kind::Unexplained
                | Kind::NearMiss
                | Kind::Unchecked
                | Kind::NotHolder
                | Kind::LeaseEnded
                | Kind::NeverOpens
        )
    }

    /// Returns the name of the kind, as JSON has it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::GrantedTwice => "granted-twice",
            Kind::ReleasedByOther => "released-by-other",
            Kind::ExtendedByOther => "extended-by-other",
            Kind::Overwritten => "overwritten",
            Kind::Deleted => "deleted",
            Kind::Flushed => "flushed",
            Kind::Late => "late",
            Kind::FailedOver => "failed-over",
            Kind::PermitsBeyond => "permits-beyond",
            Kind::Overtaken => "overtaken",
            Kind::NoExpiry => "no-expiry",
            Kind::SharedName => "shared-name",
            Kind::Unexplained => "unexplained",
            Kind::NearMiss => "near-miss",
            Kind::Unchecked => "unchecked",
            Kind::NotHolder => "not-holder",
            Kind::LeaseEnded => "lease-ended",
            Kind::NeverOpens => "never-opens",
        }
    }

    /// Returns the heading of the kind.
    pub fn title(self) -> &'static str {
        match self {
            Kind::GrantedTwice => "granted twice",
            Kind::ReleasedByOther => "released by another client",
            Kind::ExtendedByOther => "extended by another client",
            Kind::Overwritten => "overwritten",
            Kind::Deleted => "deleted by hand",
            Kind::Flushed => "flushed",
            Kind::Late => "expired under its holder",
            Kind::FailedOver => "lost in a failover",
            Kind::PermitsBeyond => "permits beyond their number",
            Kind::Overtaken => "fair queue overtaken",
            Kind::NoExpiry => "no expiry",
            Kind::SharedName => "one name, two hosts",
            Kind::Unexplained => "ended without a command",
            Kind::NearMiss => "renewed late",
            Kind::Unchecked => "released without a check",
            Kind::NotHolder => "release refused",
            Kind::LeaseEnded => "lease ended",
            Kind::NeverOpens => "latch that never opens",
        }
    }

    /// Returns the advice against the kind.
    pub fn help(self) -> &'static str {
        match self {
            Kind::GrantedTwice | Kind::Late => {
                "Give the lock a lease longer than the longest pause of a holder, renew it by a watchdog, \
                 and let the guarded resource refuse old fencing tokens."
            }
            Kind::ReleasedByOther | Kind::Unchecked => {
                "Release by a script that compares the owner's token and deletes only on a match."
            }
            Kind::ExtendedByOther => "Renew by a script that compares the owner's token.",
            Kind::Overwritten => {
                "Acquire with SET NX, or by a script that leaves another owner's lock alone, and keep no data \
                 under a lock's key."
            }
            Kind::Deleted => "Forbid DEL on the locks' keys by an ACL rule, and let a lease end instead.",
            Kind::Flushed => "Forbid FLUSHALL and FLUSHDB by an ACL rule, and keep locks apart from caches.",
            Kind::FailedOver => {
                "Let a holder wait for a replica before it counts as one (WAIT), use fencing tokens, or a \
                 majority of independent masters."
            }
            Kind::PermitsBeyond => {
                "Release each permit once, and let an expirable permit's lease be longer than the longest pause of \
                 its holder."
            }
            Kind::Overtaken => {
                "Use the same kind of lock for a key in all clients, and leave the queue's keys alone."
            }
            Kind::NeverOpens => {
                "Count down also when a worker fails, wait with a time limit, and delete no latch that is awaited."
            }
            Kind::NoExpiry => "Set the lock and its expiry in one command: SET key token NX PX lease.",
            Kind::SharedName => "Give each process a random token, or an id drawn at its start.",
            Kind::Unexplained => {
                "Look for an eviction, a failover or a restart at this time: MONITOR shows none of them."
            }
            Kind::LeaseEnded => {
                "Look for a holder that died or stood still: an audit with MONITOR shows if it came back."
            }
            Kind::NearMiss => "Renew at a third of the lease, and look for pauses and busy executors.",
            Kind::NotHolder => {
                "Release as the owner that acquired the lock, once for each grant. Redisson's owners are \
                 threads: release on the same thread, or name it (unlockAsync with its id)."
            }
        }
    }

    /// Returns the stock claim that explains the kind, as `lockstorm claims` lists it.
    pub fn claim(self) -> Option<&'static str> {
        match self {
            Kind::GrantedTwice | Kind::Late => Some("S2"),
            Kind::ReleasedByOther | Kind::Unchecked => Some("S1"),
            Kind::ExtendedByOther => Some("T8"),
            Kind::FailedOver => Some("S4"),
            Kind::Unexplained => Some("S17"),
            Kind::NearMiss => Some("W7"),
            _ => None,
        }
    }
}

/// A command that proves a finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// The number of the line in the node's capture, or the offset in the file that `client` names.
    pub line: u64,
    /// The unit of the number.
    pub unit: Unit,
    /// The server's time in UTC.
    pub at: String,
    /// The address of the client; an append-only file has its own name in its place.
    pub client: String,
    /// The command, with its values hashed.
    pub command: String,
    /// The part that the command has in the finding.
    pub role: String,
}

/// A finding about one lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The kind.
    pub kind: Kind,
    /// The name of the node.
    pub node: String,
    /// The number of the database.
    pub db: u32,
    /// The lock's key.
    pub lock: String,
    /// The owner that lost, as its hash unless revealed.
    pub owner: String,
    /// The server's time in UTC.
    pub at: String,
    /// The finding in a sentence.
    pub says: String,
    /// The number of times that the same hold showed it.
    pub times: u64,
    /// The commands, in the order of time.
    pub evidence: Vec<Evidence>,
    /// The time in microseconds since 1970.
    #[serde(skip)]
    pub at_us: i64,
    /// The key's bytes, to find the lock again.
    #[serde(skip)]
    pub(super) key: Box<[u8]>,
    /// Set if the holder itself later showed that it believed in its hold.
    #[serde(skip)]
    pub(super) is_confirmed: bool,
    /// Set if the key turned out to be no lock.
    #[serde(skip)]
    pub(super) is_dismissed: bool,
    /// The calls of the evidence, in the same order.
    #[serde(skip)]
    pub(super) calls: Vec<Rc<Call>>,
    /// The leases that it is about.
    #[serde(skip)]
    pub(super) leases: Leases,
    /// Set for a lock that several clients may hold at a time.
    #[serde(skip)]
    pub(super) is_shared: bool,
    /// Set if a replaced master had granted the hold.
    #[serde(skip)]
    pub(super) has_moved: bool,
}

impl Finding {
    /// Returns the kind that the use of the key leaves to the finding; `None` withdraws it. The
    /// arguments are true if the key is used as a lock, and if its releases compare an owner.
    pub(super) fn by_use(&self, (is_lock, is_proven): (bool, bool)) -> Option<Kind> {
        match self.kind {
            kind if self.is_confirmed => Some(kind),
            _ if !is_lock => None,
            Kind::Deleted if !is_proven => Some(Kind::Unchecked),
            kind => Some(kind),
        }
    }
}

/// A hold that ended before another client was granted the lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Former {
    pub(super) leased: Leased,
    pub(super) ended_us: i64,
    /// Set if the lease ended the hold, and not a command.
    pub(super) has_expired: bool,
}

/// The leases that a finding is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Leases {
    /// The lease of the owner that lost.
    pub(super) lost: Option<Leased>,
    /// The earlier hold of the client that broke the lock.
    pub(super) former: Option<Former>,
}

/// A replica in the place of its master.
#[derive(Debug, Clone)]
pub(super) struct Failover {
    /// The name of the former master.
    pub(super) old: Rc<str>,
    /// The name of the node in its place.
    pub(super) new: String,
    /// The time at which the audit learned of it, by the clock of the audit's machine.
    pub(super) at_us: i64,
    /// The time of the former master's last command.
    pub(super) last_us: i64,
    /// Set if the audit had lost the connection to the former master by then.
    pub(super) has_crashed: bool,
}

/// A change of a node of a live group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The time in UTC, by the clock of the audit's machine.
    pub at: String,
    /// The name of the node.
    pub node: String,
    /// The change, as the end of a sentence about the node.
    pub what: String,
}

/// A part of a node that the audit had no right to see.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unseen {
    /// The name of the node.
    pub node: String,
    /// The right, as a rule of an ACL where it is one: `+type`.
    pub lacks: String,
    /// The server's first refusal.
    pub refusal: String,
    /// The part that was not seen, as the end of a sentence.
    pub what: String,
}

/// The place of a lock in an audit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) node: &'a str,
    pub(super) db: u32,
    pub(super) key: &'a [u8],
}

/// A command with its part in a finding.
pub(super) type Part<'a> = (&'a Rc<Call>, &'a str);

/// The findings of an audit.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) list: Vec<Finding>,
    /// The number of findings beyond those in the list.
    pub(super) beyond: u64,
    /// The number of findings and notices beyond those in the list, by kind.
    pub(super) beyond_of: BTreeMap<Kind, u64>,
    pub(super) names: Names,
    /// The leases that the next findings are about.
    pub(super) leases: Leases,
}

impl Findings {
    /// Adds a finding. Returns its number, or `None` if there are too many to keep it.
    pub(super) fn add(
        &mut self,
        kind: Kind,
        place: Place<'_>,
        owner: &str,
        at_us: i64,
        says: String,
        parts: &[Part<'_>],
    ) -> Option<usize> {
        if self.list.len() >= FINDINGS_MAX {
            self.beyond += u64::from(kind.is_finding());
            *self.beyond_of.entry(kind).or_default() += 1;
            return None;
        }
        let evidence = parts.iter().map(|part| self.evidence(*part)).collect();
        self.list.push(Finding {
            kind,
            node: place.node.to_owned(),
            db: place.db,
            lock: key(place.key),
            owner: self.names.value(owner),
            at: moment(at_us),
            says,
            times: 1,
            evidence,
            at_us,
            key: place.key.into(),
            is_confirmed: false,
            is_dismissed: false,
            calls: parts.iter().map(|(call, _)| Rc::clone(call)).collect(),
            leases: self.leases.clone(),
            is_shared: false,
            has_moved: false,
        });
        Some(self.list.len() - 1)
    }

    /// Adds a finding about a lock that several clients may hold at a time.
    pub(super) fn add_shared(
        &mut self,
        kind: Kind,
        place: Place<'_>,
        owner: &str,
        at_us: i64,
        says: String,
        parts: &[Part<'_>],
    ) -> Option<usize> {
        self.leases = Leases::default();
        let at = self.add(kind, place, owner, at_us, says, parts)?;
        if let Some(finding) = self.list.get_mut(at) {
            finding.is_shared = true;
        }
        Some(at)
    }

    /// Adds a later command to a finding.
    pub(super) fn confirm(&mut self, finding: usize, part: Part<'_>) {
        let evidence = self.evidence(part);
        let Some(finding) = self.list.get_mut(finding) else { return };
        if finding.has_moved {
            finding.kind = Kind::FailedOver;
        }
        if std::mem::replace(&mut finding.is_confirmed, true) {
            finding.times += 1;
            return;
        }
        match (finding.calls.last(), finding.evidence.last_mut()) {
            // The holder itself found its hold gone.
            (Some(call), Some(last)) if Rc::ptr_eq(call, part.0) => *last = evidence,
            _ => {
                finding.evidence.push(evidence);
                finding.calls.push(Rc::clone(part.0));
            }
        }
    }

    /// Judges the findings of a node's locks by the use of their keys. `uses` returns for a key
    /// whether it is used as a lock, and whether its releases compare an owner; `None` if it does
    /// not know the key.
    pub(super) fn judge(&mut self, node: &str, uses: impl Fn(u32, &[u8]) -> Option<(bool, bool)>) {
        for finding in self.list.iter_mut().filter(|one| one.node == node && !one.is_confirmed) {
            let Some(uses) = uses(finding.db, &finding.key) else { continue };
            match finding.by_use(uses) {
                Some(kind) => finding.kind = kind,
                None => finding.is_dismissed = true,
            }
        }
    }

    fn evidence(&self, (call, role): Part<'_>) -> Evidence {
        Evidence {
            line: call.line,
            unit: call.unit,
            at: moment(call.at_us),
            client: call.client.to_string(),
            command: self.names.call(call),
            role: role.to_owned(),
        }
    }
}
