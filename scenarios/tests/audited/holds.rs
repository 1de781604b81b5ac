//! The holds of a run as the recorder saw them, on each node by itself, and the findings about
//! them.

use std::{collections::BTreeMap, fmt};

use lockstorm::{
    audit::{
        capture::Line,
        findings::{Finding, Kind},
    },
    judge::history::{ClockId, Event, EventKind, History, Host, Lock, LossCause, Owner, Party},
    run::Captures,
};
use lockstorm_world::time::True;

/// Times of the recorder and of MONITOR differ by rounding at most.
const SAME_US: i64 = 10;

/// A hold proves nothing if it was granted within this time after the end of another lease.
const NEAR_US: i64 = 21_000;

/// The lease of a hold without one, for the time that a capture needs to be sure of it.
const NO_LEASE_MS: u64 = 60_000;

/// A lock without an expiry for so long is a finding.
const WITHOUT_EXPIRY_US: i64 = 1_000_000;

/// The fate of a hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// It lasted until the end of the run.
    Held,
    Released,
    /// A party that is not its owner released it, or deleted the key.
    Deleted,
    Overwritten,
    Expired,
    Flushed,
    /// It ended in a way that MONITOR does not show.
    Unseen,
}

/// A hold on one node.
#[derive(Debug)]
pub(crate) struct Hold<'a> {
    history: &'a History,
    node: Host,
    lock: Lock,
    owner: Owner,
    /// The node's wall clock at the grant.
    granted_us: i64,
    lease_ms: Option<u64>,
    /// The node's wall clock at the end of the lease.
    until_us: Option<i64>,
    /// The node's wall clock at the end.
    ended_us: i64,
    fate: Fate,
    /// Set if another owner was granted the lock after it.
    has_next: bool,
    /// Set if another party extended it.
    is_extended: bool,
    /// Set if a command of another party, or a flush, broke it.
    is_broken: bool,
    /// Set if no stream of commands can show that.
    pub(crate) is_beyond: bool,
    /// Set by a finding or a notice.
    pub(crate) is_found: bool,
}

impl fmt::Display for Hold<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Hold { history, granted_us, ended_us, fate, is_extended, .. } = self;
        let (node, lock) = (history.host_name(self.node), &history.lock(self.lock).name);
        let owner = &history.owners[self.owner.0 as usize].name;
        write!(f, "{lock} on {node} of {owner}, granted at {granted_us}: {fate:?} at {ended_us}")?;
        if *is_extended { f.write_str(", extended by another") } else { Ok(()) }
    }
}

/// The holds of a run.
#[derive(Debug)]
pub(crate) struct Holds<'a> {
    history: &'a History,
    captures: &'a Captures,
    list: Vec<Hold<'a>>,
}

/// Returns the holds of a run.
pub(crate) fn of<'a>(history: &'a History, captures: &'a Captures) -> Holds<'a> {
    let mut holds = Holds { history, captures, list: Vec::new() };
    // The present hold of each owner, by its index.
    let mut live = BTreeMap::new();
    history.events.iter().for_each(|event| holds.take(event, &mut live));
    let begun: BTreeMap<Host, Vec<i64>> = history
        .header
        .hosts
        .iter()
        .enumerate()
        .filter_map(|(at, info)| Some((Host(u16::try_from(at).ok()?), begins(captures.get(&*info.name)?))))
        .collect();
    let unsure: Vec<bool> = holds.list.iter().map(|hold| holds.is_unsure(hold, &begun)).collect();
    holds.list.iter_mut().zip(unsure).for_each(|(hold, unsure)| hold.is_beyond |= unsure);
    holds
}

/// Returns the times of the first command of each connection of a monitor.
fn begins(capture: &str) -> Vec<i64> {
    let (mut times, mut is_new) = (Vec::new(), true);
    for text in capture.lines() {
        if text == "OK" {
            is_new = true;
        } else if std::mem::take(&mut is_new) {
            times.extend(Line::parse(text.as_bytes()).map(|line| line.at_us));
        }
    }
    times
}

impl<'a> Holds<'a> {
    fn wall_us(&self, node: Host, at: True) -> i64 {
        self.history.clock(node).reading(ClockId::Wall, at).div_euclid(1_000)
    }

    fn take(&mut self, event: &Event, live: &mut BTreeMap<(Host, Lock, Owner), usize>) {
        let (history, node) = (self.history, event.host);
        let now_us = self.wall_us(node, event.at);
        let is_own = |owner: Owner, by: Party| history.is_own(owner, by);
        let is_same_client = |owner: Owner, by: Party| history.client_of(owner) == by.client;
        match event.kind {
            EventKind::Granted { lock, owner, lease_ms, until, .. } => {
                let until_us = until.map(|at| at.as_micros());
                if let Some(at) = live.get(&(node, lock, owner)) {
                    self.list[*at].until_us = until_us;
                    return;
                }
                let ended = |hold: &&mut Hold<'_>| {
                    (hold.node, hold.lock) == (node, lock) && hold.owner != owner && hold.fate != Fate::Held
                };
                self.list.iter_mut().filter(ended).for_each(|hold| hold.has_next = true);
                live.insert((node, lock, owner), self.list.len());
                self.list.push(Hold {
                    history,
                    node,
                    lock,
                    owner,
                    granted_us: now_us,
                    lease_ms,
                    until_us,
                    ended_us: i64::MAX,
                    fate: Fate::Held,
                    has_next: false,
                    is_extended: false,
                    is_broken: false,
                    is_beyond: false,
                    is_found: false,
                });
            }
            EventKind::Extended { lock, owner, by, until, .. } => {
                let Some(at) = live.get(&(node, lock, owner)) else { return };
                let hold = &mut self.list[*at];
                hold.until_us = until.map(|at| at.as_micros());
                if !is_own(owner, by) {
                    (hold.is_extended, hold.is_broken) = (true, true);
                    hold.is_beyond |= is_same_client(owner, by);
                }
            }
            EventKind::Released { lock, owner, by, left, .. } => {
                let Some(at) = live.get(&(node, lock, owner)).copied() else { return };
                let fate = if is_own(owner, by) { Fate::Released } else { Fate::Deleted };
                let hold = &mut self.list[at];
                if fate == Fate::Deleted {
                    hold.is_broken = true;
                    hold.is_beyond |= is_same_client(owner, by);
                }
                if left == 0 {
                    (hold.fate, hold.ended_us) = (fate, now_us);
                    live.remove(&(node, lock, owner));
                }
            }
            EventKind::Vanished { lock, owner, how, .. } => {
                let Some(at) = live.remove(&(node, lock, owner)) else { return };
                let (fate, by) = match how {
                    LossCause::Expired => (Fate::Expired, None),
                    LossCause::Flushed => (Fate::Flushed, None),
                    LossCause::Deleted(by) if is_own(owner, by) => (Fate::Released, None),
                    LossCause::Deleted(by) => (Fate::Deleted, Some(by)),
                    LossCause::Overwritten(by) => (Fate::Overwritten, Some(by)),
                    LossCause::Evicted | LossCause::Crash | LossCause::Failover => (Fate::Unseen, None),
                };
                let hold = &mut self.list[at];
                (hold.fate, hold.ended_us) = (fate, now_us);
                hold.is_broken |= by.is_some_and(|by| !is_own(owner, by)) || fate == Fate::Flushed;
                hold.is_beyond |= by.is_some_and(|by| !is_own(owner, by) && is_same_client(owner, by));
            }
            // A restart that finds an old hold on its disk.
            EventKind::Regained { lock, owner, .. } => {
                let id = |hold: &Hold<'_>| (hold.node, hold.lock, hold.owner) == (node, lock, owner);
                if let Some(at) = self.list.iter().rposition(id) {
                    (self.list[at].fate, self.list[at].ended_us) = (Fate::Held, i64::MAX);
                    live.insert((node, lock, owner), at);
                }
            }
            _ => {}
        }
    }

    /// Returns true if the grant may have been refused for all that the capture shows.
    fn is_unsure(&self, hold: &Hold<'_>, begun: &BTreeMap<Host, Vec<i64>>) -> bool {
        let lease_us = i64::try_from(hold.lease_ms.unwrap_or(NO_LEASE_MS)).unwrap_or(i64::MAX) * 1_000;
        let from = begun.get(&hold.node).into_iter().flatten().rev().find(|from| **from <= hold.granted_us);
        let is_early = from.is_none_or(|from| hold.granted_us - from < lease_us);
        let is_near = |other: &Hold<'_>| {
            let is_other = (other.node, other.lock) == (hold.node, hold.lock) && other.owner != hold.owner;
            is_other && other.until_us.is_some_and(|at| (0..=NEAR_US).contains(&(hold.granted_us - at)))
        };
        is_early || self.list.iter().any(is_near)
    }

    /// Looks for the hold of a finding. Returns `None` if it is about no lock on trial, and an
    /// error if the history does not have the event.
    pub(crate) fn confirm(&mut self, finding: &Finding) -> Option<Result<(), String>> {
        let lock = self.history.header.lock(&finding.lock)?;
        let fits: Vec<usize> = self.holds_of(finding, lock);
        let Some(at) = fits.iter().find(|at| has(&self.list[**at], finding.kind)) else {
            let seen: Vec<String> = fits.iter().map(|at| self.list[*at].to_string()).collect();
            let (title, at, owner) = (finding.kind.title(), &finding.at, &finding.owner);
            return Some(Err(format!("{title}, {owner} at {at}: {}; recorded: {seen:?}", finding.says)));
        };
        self.list[*at].is_found = true;
        Some(Ok(()))
    }

    /// Looks for the hold of a notice.
    pub(crate) fn notice(&mut self, notice: &Finding) {
        if let Some(lock) = self.history.header.lock(&notice.lock)
            && notice.kind == Kind::Unchecked
        {
            self.holds_of(notice, lock).into_iter().for_each(|at| self.list[at].is_found = true);
        }
    }

    /// Returns the holds that were granted when the evidence says so.
    fn holds_of(&self, finding: &Finding, lock: Lock) -> Vec<usize> {
        let Some(granted_us) = self.granted_us(finding) else { return Vec::new() };
        let is_it = |hold: &Hold<'_>| {
            hold.lock == lock
                && self.history.host_name(hold.node) == finding.node
                && (hold.granted_us - granted_us).abs() <= SAME_US
        };
        (0..self.list.len()).filter(|at| is_it(&self.list[*at])).collect()
    }

    /// Returns the time at which the lost hold was granted, by the lines of its evidence.
    fn granted_us(&self, finding: &Finding) -> Option<i64> {
        let role = |wanted: &str| finding.evidence.iter().find(|one| one.role.starts_with(wanted));
        let next = role("granted it to the next owner").filter(|_| finding.kind == Kind::ReleasedByOther);
        let evidence = next.or_else(|| role("granted it"))?;
        let number = usize::try_from(evidence.line).ok()?.checked_sub(1)?;
        let text = self.captures.get(&finding.node)?.lines().nth(number)?;
        Line::parse(text.as_bytes()).ok().map(|line| line.at_us)
    }

    /// Returns the holds that a command of another party broke.
    pub(crate) fn broken(&self) -> impl Iterator<Item = &Hold<'a>> {
        self.list.iter().filter(|hold| hold.is_broken)
    }
}

/// Returns true if a hold had the fate that a finding of this kind states.
fn has(hold: &Hold<'_>, kind: Kind) -> bool {
    match kind {
        Kind::Late => hold.fate == Fate::Expired,
        Kind::GrantedTwice => hold.fate == Fate::Expired && hold.has_next,
        Kind::ReleasedByOther | Kind::Deleted => hold.fate == Fate::Deleted,
        Kind::Overwritten => hold.fate == Fate::Overwritten,
        Kind::Flushed => hold.fate == Fate::Flushed,
        Kind::ExtendedByOther => hold.is_extended,
        Kind::NoExpiry => {
            hold.lease_ms.is_none() && hold.ended_us.saturating_sub(hold.granted_us) >= WITHOUT_EXPIRY_US
        }
        // Each owner has one client, one node shows no failover, and the locks are plain. The rest
        // are notices.
        Kind::SharedName
        | Kind::FailedOver
        | Kind::PermitsBeyond
        | Kind::Overtaken
        | Kind::Unexplained
        | Kind::NearMiss
        | Kind::Unchecked
        | Kind::NotHolder
        | Kind::LeaseEnded
        | Kind::NeverOpens => false,
    }
}
