//! Wake-ups: after a release, how long until a waiter tries again?
//!
//! A message takes one delay of the network; a waiter that missed it sleeps until its timer, which is the rest of a lease.
//! Measured from the release at the node to the first sign of life of a waiter: it was woken, asked again or got the lock.
//! Waiters of a quorum go by their own timers, so there is nothing to judge.

use std::{collections::BTreeMap, collections::BTreeSet, time::Duration};

use lockstorm_sim::time::True;

use super::{Checker, evidence::Evidence, words};
use crate::{
    history::{Event, History, Host, Life, Lock, Owner, Wake, What},
    verdict::{Finding, Measure, Verdict, Witness},
};

/// The checker.
pub(super) const WAKE_UPS: Checker = Checker {
    name: "wake-ups",
    question: "Does a waiter try again within the bound after each release?",
    measures: &[
        ("longest", "the longest time from a release to the first waiter's next try"),
        ("releases", "how many releases there were with somebody waiting"),
        ("messages", "how many waits were ended by a message"),
        ("timers", "how many waits were ended by a timer"),
    ],
    check,
};

#[derive(Debug, Default)]
struct State {
    waiting: BTreeMap<Lock, BTreeSet<Owner>>,
    /// Releases that nobody has reacted to.
    pending: BTreeMap<Lock, True>,
    standing_still: BTreeSet<Host>,
    /// From when until when nobody reacted.
    gaps: Vec<(Lock, True, True)>,
}

impl State {
    fn waits(&self, history: &History, lock: Lock) -> bool {
        let able = |owner: &Owner| !self.standing_still.contains(&history.client_of(*owner));
        self.waiting.get(&lock).is_some_and(|waiting| waiting.iter().any(able))
    }

    fn reacts(&mut self, lock: Lock, owner: Owner, now: True) {
        let waits = self.waiting.get(&lock).is_some_and(|waiting| waiting.contains(&owner));
        if waits && let Some(since) = self.pending.remove(&lock) {
            self.gaps.push((lock, since, now));
        }
    }

    fn take(&mut self, history: &History, event: &Event) {
        match &event.what {
            What::Life { life: Life::Crashed | Life::Paused | Life::Suspended } => {
                self.standing_still.insert(event.host);
            }
            What::Life { .. } => {
                self.standing_still.remove(&event.host);
            }
            What::Waiting { lock, owner } => {
                self.waiting.entry(*lock).or_default().insert(*owner);
            }
            What::Woken { lock, owner, .. } | What::Refused { lock, owner } => {
                self.reacts(*lock, *owner, event.at)
            }
            What::Granted { lock, owner, .. } => {
                self.reacts(*lock, *owner, event.at);
                // Somebody who did not wait was quicker: there is nothing to be woken for any more.
                self.pending.remove(lock);
                self.waiting.entry(*lock).or_default().remove(owner);
            }
            What::Believes { lock, owner, .. } | What::Dequeued { lock, owner } => {
                self.waiting.entry(*lock).or_default().remove(owner);
            }
            What::Released { lock, left: 0, .. } if self.waits(history, *lock) => {
                self.pending.entry(*lock).or_insert(event.at);
            }
            _ => {}
        }
    }
}

fn check(evidence: &Evidence<'_>) -> Finding {
    let history = evidence.history;
    let judged = |lock: Lock| history.lock(lock).authority.quorum == 1;
    let mut state = State::default();
    let (mut messages, mut timers) = (0, 0);
    for event in &history.events {
        match &event.what {
            What::Woken { by: Wake::Message, .. } => messages += 1,
            What::Woken { by: Wake::Timer, .. } => timers += 1,
            _ => {}
        }
        if event.what.lock().is_none_or(judged) {
            state.take(history, event);
        }
    }
    let end = history.header.end;
    let unanswered: Vec<(Lock, True)> = std::mem::take(&mut state.pending).into_iter().collect();
    for (lock, since) in unanswered {
        if state.waits(history, lock) {
            state.gaps.push((lock, since, end));
        }
    }
    let worst = state.gaps.iter().rev().max_by_key(|(_, since, until)| until.since(*since));
    let longest = worst.map_or(Duration::ZERO, |(_, since, until)| until.since(*since));
    let bound = history.header.bounds.wake;
    let verdict = match worst {
        Some(gap) if longest > bound => Verdict::Violated { witness: witness(history, gap) },
        _ if evidence.given_up().is_some() => Verdict::undecided(evidence.given_up().unwrap_or_default()),
        None => Verdict::undecided("Nobody waited for a release."),
        Some(_) => Verdict::holds(format!(
            "{} with somebody waiting, the slowest answered after {}.",
            words::many(state.gaps.len(), "release"),
            words::length(longest)
        )),
    };
    let measures = vec![
        Measure::time("longest", longest),
        Measure::count("releases", state.gaps.len() as u64),
        Measure::count("messages", messages),
        Measure::count("timers", timers),
    ];
    WAKE_UPS.finding(verdict, measures)
}

fn witness(history: &History, (lock, since, until): &(Lock, True, True)) -> Witness {
    let summary = format!(
        "`{}` was released at {} and no waiter tried again for {}.",
        history.lock(*lock).name,
        words::instant(*since),
        words::length(until.since(*since))
    );
    let of_lock =
        |event: &&Event| event.what.lock() == Some(*lock) && event.at >= *since && event.at <= *until;
    let published = history.events.iter().filter(of_lock).find_map(|event| match &event.what {
        What::Published { receivers, .. } => Some((event.at, *receivers)),
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
        history::{Life, Wake, story::Story},
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
            ("nobody ever woke it", waits().unlocks("c1", "m").ends(60_000)),
            (
                "somebody else was quicker",
                waits().unlocks("c1", "m").at(1_001).locks("c3", "m", 30_000).ends(60_000),
            ),
            ("the waiter is dead", waits().life("c2", Life::Crashed).unlocks("c1", "m").ends(60_000)),
        ];
        insta::assert_snapshot!(explained("wake-ups", &stories));
    }
}
