//! Wake-ups: after a release, how long until a waiter tries again?
//!
//! A message takes one network delay. A waiter that missed it sleeps until its timer, which is the
//! rest of a lease. The time is measured from the release at the node to the first reaction of a
//! waiter, which is woken or gets the lock, or until no waiter is left that could react. A waiter
//! is an owner whose acquisition is under way on a host that has not crashed since. While all
//! waiters are paused or suspended, none is late. A release of a read-write lock concerns all
//! waiters if it leaves no hold on its node, and waiting readers if a writer has released and only
//! readers are left. Waiters of a quorum rely on their own timers, so they are not judged. Waiters
//! for permits with leases are not judged either: their names are not those of the owners that
//! call. A lock that came back with its node, held by an owner that had released it, is not free,
//! and no waiter needs to react.
//!
//! The message of a fair lock goes to the head of the queue alone. If the head is dead, or waits
//! for a reply that is lost, no other waiter can or may react. The lock is then free until the
//! head's place expires or the head asks again: a violation that is not a fault of the waiters
//! behind it. With crashes and lost replies, `wake-ups` does not hold for a fair lock, by its
//! design.

use std::{collections::BTreeMap, collections::BTreeSet, time::Duration};

use lockstorm_world::time::True;

use crate::judge::{
    checker::{
        Checker,
        decision::{Case, Decided, Decision},
        evidence::Evidence,
    },
    history::{Call, Event, EventKind, History, Host, Life, Lock, LockKind, Mode, Op, Owner, Wake},
    verdict::{Finding, Measure},
};

pub(in crate::judge::checker) const WAKE_UPS: Checker = Checker {
    name: "wake-ups",
    question: "Does a waiter try again within the bound after each release?",
    measures: &[
        ("longest", "the longest time from a release to the first waiter's next try"),
        ("releases", "how many releases there were with a waiter"),
        ("messages", "how many waits were ended by a message"),
        ("timers", "how many waits were ended by a timer"),
    ],
    bound: Some(|bounds| format!("`longest` up to {:?}", bounds.wake)),
    check,
};

/// The reason of a verdict.
pub(in crate::judge::checker) enum Because {
    NoWaiter,
    Answered { releases: u64, longest: Duration },
}

/// A release to which no waiter reacted in time.
pub(in crate::judge::checker) struct Unanswered {
    pub(in crate::judge::checker) lock: Lock,
    pub(in crate::judge::checker) released: True,
    /// The node's message after the release: its instant and the number of subscribers.
    pub(in crate::judge::checker) message: Option<(True, u32)>,
}

#[derive(Debug, Default)]
struct State {
    waiting: BTreeMap<Lock, BTreeMap<Owner, Mode>>,
    /// The acquisitions under way. A waiter whose call returns no longer waits, whatever the
    /// result.
    asking: BTreeMap<Op, (Lock, Owner, Mode)>,
    /// The holds of each lock on each node; a read-write lock may have several.
    held: BTreeMap<(Lock, Host), BTreeSet<(Owner, Mode)>>,
    /// Releases without a reaction so far.
    pending: BTreeMap<Lock, Gap>,
    /// Releases to which no waiter can react, since all of them are paused or suspended.
    interrupted: BTreeMap<Lock, Gap>,
    /// The number of releases with a waiter.
    releases: u64,
    standing_still: BTreeSet<Host>,
    /// The periods without a reaction.
    gaps: Vec<Gap>,
}

/// A period after a release in which no waiter reacted although one could.
#[derive(Debug, Clone, Copy)]
struct Gap {
    lock: Lock,
    /// True if the release concerns waiting readers only.
    to_readers: bool,
    released: True,
    /// The release, or the instant at which a paused or suspended waiter resumed.
    since: True,
    until: True,
}

impl Gap {
    fn length(&self) -> Duration {
        self.until.since(self.since)
    }
}

impl State {
    /// Returns true if a waiter that such a release concerns can act.
    fn waits(&self, history: &History, lock: Lock, to_readers: bool) -> bool {
        let able = |(owner, mode): (&Owner, &Mode)| {
            (*mode == Mode::Shared || !to_readers)
                && !self.standing_still.contains(&history.client_of(*owner))
        };
        self.waiting.get(&lock).is_some_and(|waiting| waiting.iter().any(able))
    }

    /// Returns true if such a release concerns a waiter, even one that cannot act.
    fn any_waits(&self, lock: Lock, to_readers: bool) -> bool {
        let mut modes = self.waiting.get(&lock).into_iter().flat_map(BTreeMap::values);
        modes.any(|mode| *mode == Mode::Shared || !to_readers)
    }

    fn reacts(&mut self, lock: Lock, owner: Owner, now: True) {
        let Some(mode) = self.waiting.get(&lock).and_then(|waiting| waiting.get(&owner)).copied() else {
            return;
        };
        let concerned = |gap: &mut Gap| mode == Mode::Shared || !gap.to_readers;
        take_if(&mut self.interrupted, lock, concerned);
        if let Some(gap) = take_if(&mut self.pending, lock, concerned) {
            self.gaps.push(Gap { until: now, ..gap });
        }
    }

    /// Returns for whom a release frees the lock: `None` for no owner, `Some(true)` for readers
    /// only, `Some(false)` for all.
    fn released(
        &mut self,
        history: &History,
        (lock, owner, mode): (Lock, Owner, Mode),
        node: Host,
    ) -> Option<bool> {
        let held = self.held.entry((lock, node)).or_default();
        held.remove(&(owner, mode));
        match history.lock(lock).kind {
            LockKind::ReadWrite if held.is_empty() => Some(false),
            LockKind::ReadWrite
                if mode == Mode::Exclusive && held.iter().all(|(_, mode)| *mode == Mode::Shared) =>
            {
                Some(true)
            }
            LockKind::ReadWrite => None,
            _ => Some(false),
        }
    }

    /// Interrupts the releases for which no waiter can act, and continues those for which one can
    /// again: no grant is late while no waiter can act.
    fn note_waiters_left(&mut self, history: &History, now: True) {
        for lock in self.pending.keys().chain(self.interrupted.keys()).copied().collect::<Vec<Lock>>() {
            let gap = self.pending.get(&lock).or_else(|| self.interrupted.get(&lock));
            let to_readers = gap.is_some_and(|gap| gap.to_readers);
            let waits = self.waits(history, lock, to_readers);
            if !waits && let Some(gap) = self.pending.remove(&lock) {
                self.gaps.push(Gap { until: now, ..gap });
                self.interrupted.insert(lock, gap);
            }
            if waits && let Some(gap) = self.interrupted.remove(&lock) {
                self.pending.insert(lock, Gap { since: now, ..gap });
            }
            if !self.any_waits(lock, to_readers) {
                self.interrupted.remove(&lock);
            }
        }
    }

    fn take(&mut self, history: &History, event: &Event) {
        match &event.kind {
            EventKind::Life { life: Life::Paused | Life::Suspended } => {
                self.standing_still.insert(event.host);
            }
            EventKind::Life { life: Life::Resumed } => {
                self.standing_still.remove(&event.host);
            }
            // A process started again on that host is another owner.
            EventKind::Life { life: Life::Crashed | Life::Started } => {
                self.standing_still.remove(&event.host);
                for waiting in self.waiting.values_mut() {
                    waiting.retain(|owner, _| history.client_of(*owner) != event.host);
                }
            }
            EventKind::Invoke { op, lock, owner, call: Call::Acquire { mode, .. } } => {
                self.asking.insert(*op, (*lock, *owner, *mode));
            }
            EventKind::Return { op, .. } => {
                if let Some((lock, owner, _)) = self.asking.remove(op) {
                    self.waiting.entry(lock).or_default().remove(&owner);
                }
            }
            EventKind::Waiting { lock, owner } => {
                let mut asking = self.asking.values();
                let asked = asking.find(|(of, whose, _)| (of, whose) == (lock, owner));
                let mode = asked.map_or(Mode::Exclusive, |(.., mode)| *mode);
                self.waiting.entry(*lock).or_default().insert(*owner, mode);
            }
            EventKind::Woken { lock, owner, .. } => self.reacts(*lock, *owner, event.at),
            EventKind::Granted { lock, owner, mode, .. } => {
                self.held.entry((*lock, event.host)).or_default().insert((*owner, *mode));
                self.reacts(*lock, *owner, event.at);
                // Another owner was quicker: no waiter needs to wake up any more.
                self.pending.remove(lock);
                self.interrupted.remove(lock);
                self.waiting.entry(*lock).or_default().remove(owner);
            }
            EventKind::Regained { lock, owner, mode, .. } => {
                self.held.entry((*lock, event.host)).or_default().insert((*owner, *mode));
                self.pending.remove(lock);
                self.interrupted.remove(lock);
            }
            EventKind::Believes { lock, owner, .. } => {
                self.waiting.entry(*lock).or_default().remove(owner);
            }
            EventKind::Vanished { lock, owner, mode, .. } => {
                self.held.entry((*lock, event.host)).or_default().remove(&(*owner, *mode));
            }
            EventKind::Released { lock, owner, left: 0, mode, .. } => {
                let leaves = self.released(history, (*lock, *owner, *mode), event.host);
                let (lock, released) = (*lock, event.at);
                if let Some(to_readers) = leaves.filter(|to_readers| self.waits(history, lock, *to_readers)) {
                    self.pending.entry(lock).or_insert_with(|| {
                        self.releases += 1;
                        Gap { lock, to_readers, released, since: released, until: released }
                    });
                }
            }
            _ => {}
        }
        self.note_waiters_left(history, event.at);
    }
}

/// Removes a lock's gap from a map if it meets a condition.
fn take_if(
    gaps: &mut BTreeMap<Lock, Gap>,
    lock: Lock,
    condition: impl FnOnce(&mut Gap) -> bool,
) -> Option<Gap> {
    let is_meant = gaps.get_mut(&lock).is_some_and(condition);
    if is_meant { gaps.remove(&lock) } else { None }
}

fn check(evidence: &Evidence<'_>) -> Finding {
    decide(evidence).worded(&WAKE_UPS, evidence)
}

fn decide(evidence: &Evidence<'_>) -> Decided<Because, Unanswered> {
    let history = evidence.history;
    let judged = |lock: Lock| !history.lock(lock).names_its_holds();
    let mut state = State::default();
    let (mut messages, mut timers) = (0, 0);
    for event in &history.events {
        match &event.kind {
            EventKind::Woken { by: Wake::Message, .. } => messages += 1,
            EventKind::Woken { by: Wake::Timer, .. } => timers += 1,
            _ => {}
        }
        if event.kind.lock().is_none_or(judged) {
            state.take(history, event);
        }
    }
    let end = history.header.end;
    for gap in std::mem::take(&mut state.pending).into_values() {
        if state.waits(history, gap.lock, gap.to_readers) {
            state.gaps.push(Gap { until: end, ..gap });
        }
    }
    let worst = state.gaps.iter().rev().max_by_key(|gap| gap.length());
    let longest = worst.map_or(Duration::ZERO, Gap::length);
    let bound = history.header.bounds.wake;
    let verdict = match worst {
        Some(gap) if longest > bound => Decision::Violated(case(history, gap)),
        _ if evidence.is_given_up() => Decision::GivenUp,
        None => Decision::Undecided(Because::NoWaiter),
        Some(_) => Decision::Holds(Because::Answered { releases: state.releases, longest }),
    };
    let measures = vec![
        Measure::time("longest", longest),
        Measure::count("releases", state.releases),
        Measure::count("messages", messages),
        Measure::count("timers", timers),
    ];
    Decided { verdict, measures }
}

fn case(history: &History, gap: &Gap) -> Case<Unanswered> {
    let Gap { lock, released, since, until, .. } = *gap;
    let of_lock =
        |event: &&Event| event.kind.lock() == Some(lock) && event.at >= released && event.at <= until;
    let message = history.events.iter().filter(of_lock).find_map(|event| match &event.kind {
        EventKind::Published { receivers, .. } => Some((event.at, *receivers)),
        _ => None,
    });
    let wrong = Unanswered { lock, released, message };
    Case { wrong, from: since, until, lock: Some(lock), owners: Vec::new() }
}

#[cfg(test)]
mod tests {
    use crate::judge::{
        checker::tests::explained,
        history::{Life, LockKind, Mode, Outcome, Wake, story::Story},
    };

    #[test]
    fn explanations() {
        let waits =
            || Story::one_node().at(0).locks("c1", "m", 30_000).at(10).asks("c2").waiting("c2").at(1_000);
        let shared = || Story::of_kind(LockKind::ReadWrite).at(0);
        let readers = || {
            let story = shared().granted_in("m", "c1", 30_000, Mode::Shared);
            story.granted_in("m", "c2", 30_000, Mode::Shared).at(1_000).asks("c3").waiting("c3")
        };
        let downgrade = || {
            let story = shared().granted_in("m", "c1", 30_000, Mode::Exclusive);
            story.granted_in("m", "c1", 30_000, Mode::Shared).in_mode("c1", Mode::Exclusive).at(1_000)
        };
        let stories = [
            ("a message", waits().unlocks("c1", "m").at(1_002).woken("c2", Wake::Message).ends(60_000)),
            (
                "the message was lost",
                waits().unlocks("c1", "m").at(30_002).woken("c2", Wake::Timer).ends(60_000),
            ),
            ("no message ever woke it", waits().unlocks("c1", "m").ends(60_000)),
            (
                "another owner was quicker",
                waits().unlocks("c1", "m").at(1_001).locks("c3", "m", 30_000).ends(60_000),
            ),
            (
                "the only waiter had given up",
                waits().at(900).returns("c2", Outcome::Refused).at(1_000).unlocks("c1", "m").ends(60_000),
            ),
            (
                "the only waiter gives up half a second after the release",
                waits().unlocks("c1", "m").at(1_500).returns("c2", Outcome::Refused).ends(60_000),
            ),
            (
                "the waiter is dead, although its host has started again",
                waits()
                    .life("c2", Life::Crashed)
                    .at(1_100)
                    .life("c2", Life::Started)
                    .at(1_200)
                    .unlocks("c1", "m")
                    .ends(60_000),
            ),
            (
                "the waiter stands still while the message comes, and is quick afterwards",
                waits()
                    .unlocks("c1", "m")
                    .at(1_001)
                    .life("c2", Life::Paused)
                    .at(9_000)
                    .life("c2", Life::Resumed)
                    .at(9_001)
                    .woken("c2", Wake::Message)
                    .ends(60_000),
            ),
            (
                "the waiter stands still while the message is lost",
                waits()
                    .unlocks("c1", "m")
                    .at(1_001)
                    .life("c2", Life::Paused)
                    .at(9_000)
                    .life("c2", Life::Resumed)
                    .at(30_002)
                    .woken("c2", Wake::Timer)
                    .ends(60_000),
            ),
            (
                "one of two readers leaves, and the writer waits on",
                readers()
                    .at(2_000)
                    .released("m", "c1")
                    .at(9_000)
                    .released("m", "c2")
                    .at(9_001)
                    .woken("c3", Wake::Message)
                    .ends(60_000),
            ),
            (
                "one of two readers leaves, which frees nothing that another reader could not have",
                readers()
                    .returns("c3", Outcome::Refused)
                    .asks_to_read("c3")
                    .waiting("c3")
                    .at(2_000)
                    .released("m", "c1")
                    .ends(60_000),
            ),
            (
                "the last reader leaves, and the writer is not told",
                readers().at(2_000).released("m", "c1").released("m", "c2").ends(60_000),
            ),
            (
                "a writer becomes a reader, and another reader is not told",
                downgrade().asks_to_read("c2").waiting("c2").at(2_000).released("m", "c1").ends(60_000),
            ),
            (
                "a writer becomes a reader, which no other writer can use",
                downgrade().asks("c2").waiting("c2").at(2_000).released("m", "c1").ends(60_000),
            ),
            (
                "a writer becomes a reader, and the reader who waits is not told and stands still at once",
                downgrade()
                    .asks_to_read("c2")
                    .waiting("c2")
                    .at(2_000)
                    .released("m", "c1")
                    .at(2_001)
                    .life("c2", Life::Paused)
                    .at(9_000)
                    .life("c2", Life::Resumed)
                    .ends(60_000),
            ),
            (
                "the message goes to a dead head, and those behind it wait rightly",
                Story::of_kind(LockKind::Fair)
                    .at(0)
                    .locks("c1", "m", 30_000)
                    .at(10)
                    .asks("c2")
                    .queue("m", &["c2"])
                    .waiting("c2")
                    .at(20)
                    .asks("c3")
                    .queue("m", &["c2", "c3"])
                    .waiting("c3")
                    .at(500)
                    .life("c2", Life::Crashed)
                    .at(1_000)
                    .unlocks("c1", "m")
                    .published("m", 1)
                    .at(2_400)
                    .woken("c3", Wake::Timer)
                    .at(2_401)
                    .queue("m", &[])
                    .granted("m", "c3", 30_000)
                    .ends(60_000),
            ),
            ("the waiter is dead", waits().life("c2", Life::Crashed).unlocks("c1", "m").ends(60_000)),
        ];
        insta::assert_snapshot!(explained("wake-ups", &stories));
    }
}
