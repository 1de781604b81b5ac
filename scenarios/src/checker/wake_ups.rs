//! Wake-ups: after a release, how long until a waiter tries again?
//!
//! A message takes one delay of the network; a waiter that missed it sleeps until its timer, which is the rest of a lease.
//! Measured from the release at the node to the first sign of life of a waiter: it was woken, asked again or got the lock. A
//! waiter is one whose acquisition is under way on a host that has not crashed since; while all of them stand still, none
//! is late. Waiters of a quorum rely on their own timers, so there is nothing to judge. Nor are
//! waiters for permits with leases, whose names are not those of the owners that call.

use std::{collections::BTreeMap, collections::BTreeSet, time::Duration};

use lockstorm_sim::time::True;

use super::{Checker, evidence::Evidence, words};
use crate::{
    history::{Call, Event, EventKind, History, Host, Life, Lock, Op, Owner, Wake},
    verdict::{Finding, Measure, Verdict, Witness},
};

/// The checker.
pub(super) const WAKE_UPS: Checker = Checker {
    name: "wake-ups",
    question: "Does a waiter try again within the bound after each release?",
    measures: &[
        ("longest", "the longest time from a release to the first waiter's next try"),
        ("releases", "how many releases there were with a waiter"),
        ("messages", "how many waits were ended by a message"),
        ("timers", "how many waits were ended by a timer"),
    ],
    check,
};

#[derive(Debug, Default)]
struct State {
    waiting: BTreeMap<Lock, BTreeSet<Owner>>,
    /// The acquisitions under way: a waiter whose call comes back waits no more, whatever it came back with.
    asking: BTreeMap<Op, (Lock, Owner)>,
    /// Releases without a reaction so far.
    pending: BTreeMap<Lock, Gap>,
    /// Releases to which no waiter can react, since all of them stand still.
    interrupted: BTreeMap<Lock, Gap>,
    /// How many releases there were with a waiter.
    releases: u64,
    standing_still: BTreeSet<Host>,
    /// The stretches without a reaction.
    gaps: Vec<Gap>,
}

/// A stretch after a release in which no waiter reacted although one could.
#[derive(Debug, Clone, Copy)]
struct Gap {
    lock: Lock,
    released: True,
    /// The release, or when a waiter that had stood still went on.
    since: True,
    until: True,
}

impl Gap {
    fn length(&self) -> Duration {
        self.until.since(self.since)
    }
}

impl State {
    fn waits(&self, history: &History, lock: Lock) -> bool {
        let able = |owner: &Owner| !self.standing_still.contains(&history.client_of(*owner));
        self.waiting.get(&lock).is_some_and(|waiting| waiting.iter().any(able))
    }

    fn reacts(&mut self, lock: Lock, owner: Owner, now: True) {
        let waits = self.waiting.get(&lock).is_some_and(|waiting| waiting.contains(&owner));
        if waits {
            self.interrupted.remove(&lock);
            if let Some(gap) = self.pending.remove(&lock) {
                self.gaps.push(Gap { until: now, ..gap });
            }
        }
    }

    /// A release concerns the waiters that can act: while there are none, none is late.
    fn note_waiters_left(&mut self, history: &History, now: True) {
        for lock in self.pending.keys().chain(self.interrupted.keys()).copied().collect::<Vec<Lock>>() {
            let waits = self.waits(history, lock);
            if !waits && let Some(gap) = self.pending.remove(&lock) {
                self.gaps.push(Gap { until: now, ..gap });
                self.interrupted.insert(lock, gap);
            }
            if waits && let Some(gap) = self.interrupted.remove(&lock) {
                self.pending.insert(lock, Gap { since: now, ..gap });
            }
            if self.waiting.get(&lock).is_none_or(BTreeSet::is_empty) {
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
            // A process started on that host again is another owner.
            EventKind::Life { life: Life::Crashed | Life::Started } => {
                self.standing_still.remove(&event.host);
                for waiting in self.waiting.values_mut() {
                    waiting.retain(|owner| history.client_of(*owner) != event.host);
                }
            }
            EventKind::Invoke { op, lock, owner, call: Call::Acquire { .. } } => {
                self.asking.insert(*op, (*lock, *owner));
            }
            EventKind::Return { op, .. } => {
                if let Some((lock, owner)) = self.asking.remove(op) {
                    self.waiting.entry(lock).or_default().remove(&owner);
                }
            }
            EventKind::Waiting { lock, owner } => {
                self.waiting.entry(*lock).or_default().insert(*owner);
            }
            EventKind::Woken { lock, owner, .. } => self.reacts(*lock, *owner, event.at),
            EventKind::Granted { lock, owner, .. } => {
                self.reacts(*lock, *owner, event.at);
                // Another owner was quicker: there is nothing left to be woken for.
                self.pending.remove(lock);
                self.interrupted.remove(lock);
                self.waiting.entry(*lock).or_default().remove(owner);
            }
            EventKind::Believes { lock, owner, .. } => {
                self.waiting.entry(*lock).or_default().remove(owner);
            }
            EventKind::Released { lock, left: 0, .. } if self.waits(history, *lock) => {
                let (lock, released) = (*lock, event.at);
                self.pending.entry(lock).or_insert_with(|| {
                    self.releases += 1;
                    Gap { lock, released, since: released, until: released }
                });
            }
            _ => {}
        }
        self.note_waiters_left(history, event.at);
    }
}

fn check(evidence: &Evidence<'_>) -> Finding {
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
        if state.waits(history, gap.lock) {
            state.gaps.push(Gap { until: end, ..gap });
        }
    }
    let worst = state.gaps.iter().rev().max_by_key(|gap| gap.length());
    let longest = worst.map_or(Duration::ZERO, Gap::length);
    let bound = history.header.bounds.wake;
    let verdict = match worst {
        Some(gap) if longest > bound => Verdict::Violated { witness: witness(history, gap) },
        _ if evidence.given_up().is_some() => Verdict::undecided(evidence.given_up().unwrap_or_default()),
        None => Verdict::undecided("No client waited for a release."),
        Some(_) => Verdict::holds(format!(
            "{} with a waiter, the slowest answered after {}.",
            words::many(state.releases as usize, "release"),
            words::length(longest)
        )),
    };
    let measures = vec![
        Measure::time("longest", longest),
        Measure::count("releases", state.releases),
        Measure::count("messages", messages),
        Measure::count("timers", timers),
    ];
    WAKE_UPS.finding(verdict, measures)
}

fn witness(history: &History, gap: &Gap) -> Witness {
    let Gap { lock, released, since, until } = gap;
    let name = &history.lock(*lock).name;
    let (released_at, length) = (words::instant(*released), words::length(gap.length()));
    let summary = if since == released {
        format!("`{name}` was released at {released_at} and no waiter tried again for {length}.")
    } else {
        let since = words::instant(*since);
        format!(
            "`{name}` was released at {released_at}, and no waiter tried again for {length} after one that had stood still went on at {since}."
        )
    };
    let of_lock =
        |event: &&Event| event.kind.lock() == Some(*lock) && event.at >= *released && event.at <= *until;
    let published = history.events.iter().filter(of_lock).find_map(|event| match &event.kind {
        EventKind::Published { receivers, .. } => Some((event.at, *receivers)),
        _ => None,
    });
    let story = vec![match published {
        Some((at, receivers)) => {
            format!(
                "The node sent its message at {} to {}.",
                words::instant(at),
                words::many(receivers as usize, "subscriber")
            )
        }
        None => "The node sent no message.".to_owned(),
    }];
    Witness {
        summary,
        story,
        from: *since,
        until: *until,
        lock: Some(*lock),
        owners: Vec::new(),
        fault: None,
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        checker::tests::explained,
        history::{Life, Outcome, Wake, story::Story},
    };

    #[test]
    fn explanations() {
        let waits =
            || Story::one_node().at(0).locks("c1", "m", 30_000).at(10).asks("c2").waiting("c2").at(1_000);
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
            ("the waiter is dead", waits().life("c2", Life::Crashed).unlocks("c1", "m").ends(60_000)),
        ];
        insta::assert_snapshot!(explained("wake-ups", &stories));
    }
}
