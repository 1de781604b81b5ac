//! Fairness: is the lock granted in the order of the queue?
//!
//! An owner's place in line is the order in which it was first seen in any node's queue. A place
//! counts while its owner is alive: a call is under way, and its host has neither crashed nor is
//! paused. A grant to an owner behind it, or to one that never was in the queue, overtakes it. An
//! owner is swept if it leaves the queue without having got the lock or given up, for whatever
//! reason: a client with a wrong clock removed it, or a failover went to a node without the queue.
//!
//! A queue loses an owner that gives up before its call returns. So an owner that left counts as
//! swept, and as overtaken since, only once it is seen to wait on; and not as swept if its host was
//! paused when it left. If its host is paused when the run ends, its call may have been ending.
//!
//! When its call ends, the owner has given its place up, and the place no longer counts. The place
//! itself lasts as long as the server's queue has it: those behind came later, so an owner that
//! asks again in that time is ahead of them as before. The place counts again once the owner is
//! seen to wait, since the server may still have to remove the old place of a client that asks
//! again. An owner that gave its place up and joins a queue without it is at the end. A place that
//! a late request takes, after its call has ended, is given up from the start.
//!
//! Queues are those of masters. A replica's queue is a late copy, which still has owners that have
//! been granted the lock and are in line again. It becomes the queue when the replica is promoted.

use std::collections::{BTreeMap, BTreeSet};

use lockstorm_world::time::True;

use crate::judge::{
    checker::{
        Checker,
        decision::{Case, Decided, Decision},
        evidence::Evidence,
    },
    history::{Call, EventKind, History, Host, Life, Lock, LockKind, Op, Owner, Role},
    verdict::{Finding, Measure},
};

pub(in crate::judge::checker) const FAIRNESS: Checker = Checker {
    name: "fairness",
    question: "Is the lock granted in the order of its queue?",
    measures: &[
        ("overtakes", "how many times an owner that had waited longer was passed over"),
        ("swept", "how many live waiters were thrown out of the queue"),
    ],
    bound: None,
    check,
};

/// The reason of a verdict.
pub(in crate::judge::checker) enum Because {
    NoOrder,
    NoQueue,
    InOrder,
}

/// A violation against a waiter.
pub(in crate::judge::checker) struct Unfair {
    pub(in crate::judge::checker) waiter: Owner,
    /// The owner that overtook the waiter; `None` if the waiter was swept.
    pub(in crate::judge::checker) by: Option<Owner>,
    /// The numbers of violations of the run.
    pub(in crate::judge::checker) overtakes: usize,
    pub(in crate::judge::checker) swept: usize,
}

/// An owner's place in line.
#[derive(Debug)]
struct Place {
    owner: Owner,
    /// True if the owner's call ended, or had ended when the place was taken, and the owner has not
    /// been seen to wait since.
    given_up: bool,
}

/// One lock's line.
#[derive(Debug, Default)]
struct Line {
    /// In the order of arrival.
    places: Vec<Place>,
    /// The latest queue of each master.
    queues: BTreeMap<Host, Vec<Owner>>,
    /// The latest copy of the queue on each replica.
    copies: BTreeMap<Host, Vec<Owner>>,
    /// The owners that left a queue and are not yet known to have given up or to wait on.
    gone: BTreeMap<Owner, Gone>,
}

/// A waiter's departure from a queue.
#[derive(Debug)]
struct Gone {
    at: True,
    /// True if the waiter was alive when it left.
    was_alive: bool,
    /// The owners that passed it since, each with its instant.
    passed: Vec<(True, Owner)>,
}

impl Line {
    /// Drops the places that were given up and are in no queue. To be called at the end of an
    /// instant: an owner may be granted the lock in the instant in which it leaves the queue for
    /// this.
    fn drop_given_up(&mut self) {
        let Line { places, queues, .. } = self;
        places.retain(|place| !place.given_up || queues.values().any(|queue| queue.contains(&place.owner)));
    }

    /// Returns true if the owner has a place that it has not given up.
    fn stands(&self, owner: Owner) -> bool {
        self.places.iter().any(|place| place.owner == owner && !place.given_up)
    }
}

/// A violation against one waiter, as in [`Unfair`].
#[derive(Debug, Clone, Copy)]
struct Wrong {
    lock: Lock,
    waiter: Owner,
    by: Option<Owner>,
    at: True,
}

#[derive(Debug, Default)]
struct State {
    lines: BTreeMap<Lock, Line>,
    calls: BTreeMap<Op, (Lock, Owner)>,
    asking: BTreeSet<(Lock, Owner)>,
    standing_still: BTreeSet<Host>,
    replicas: BTreeSet<Host>,
    wrongs: Vec<Wrong>,
    queued_behind: bool,
}

impl State {
    fn alive(&self, history: &History, lock: Lock, owner: Owner) -> bool {
        self.asking.contains(&(lock, owner)) && !self.stands_still(history, owner)
    }

    fn stands_still(&self, history: &History, owner: Owner) -> bool {
        self.standing_still.contains(&history.client_of(owner))
    }

    /// Records that the owner is seen to wait, whatever it had given up.
    fn waits(&mut self, lock: Lock, owner: Owner, now: True) {
        self.waits_on(lock, owner, now);
        let places = self.lines.get_mut(&lock).into_iter().flat_map(|line| &mut line.places);
        places.filter(|place| place.owner == owner).for_each(|place| place.given_up = false);
    }

    /// Records that the owner is seen to wait on: if it left the queue alive, it was swept.
    fn waits_on(&mut self, lock: Lock, owner: Owner, now: True) {
        let Some(line) = self.lines.get_mut(&lock) else { return };
        // In the same instant, its own grant may have taken it out.
        if line.gone.get(&owner).is_some_and(|gone| gone.at < now)
            && let Some(Gone { at, was_alive, passed }) = line.gone.remove(&owner)
        {
            let wrong = |at, by| Wrong { lock, waiter: owner, by, at };
            self.wrongs.extend(was_alive.then(|| wrong(at, None)));
            self.wrongs.extend(passed.into_iter().map(|(at, by)| wrong(at, Some(by))));
        }
    }

    /// Takes over a node's changed queue. A replica's queue counts once it is promoted.
    fn queue(&mut self, history: &History, lock: Lock, node: Host, now: True, waiters: &[Owner]) {
        if self.replicas.contains(&node) {
            self.lines.entry(lock).or_default().copies.insert(node, waiters.to_vec());
            return;
        }
        let before = self.lines.entry(lock).or_default().queues.insert(node, waiters.to_vec());
        self.queued_behind |= waiters.len() > 1;
        for owner in waiters {
            self.waits_on(lock, *owner, now);
            let line = self.lines.entry(lock).or_default();
            line.gone.remove(owner);
            if before.as_ref().is_some_and(|before| !before.contains(owner)) {
                line.places.retain(|place| place.owner != *owner || !place.given_up);
            }
            if line.places.iter().all(|place| place.owner != *owner) {
                // A request whose call has ended has come late.
                let given_up = !self.asking.contains(&(lock, *owner));
                line.places.push(Place { owner: *owner, given_up });
            }
        }
        for owner in before.into_iter().flatten().filter(|owner| !waiters.contains(owner)) {
            let was_alive = self.alive(history, lock, owner);
            if self.asking.contains(&(lock, owner))
                && let Some(line) = self.lines.get_mut(&lock)
                && line.stands(owner)
            {
                line.gone.entry(owner).or_insert(Gone { at: now, was_alive, passed: Vec::new() });
            }
        }
    }

    fn becomes(&mut self, history: &History, node: Host, now: True, role: Role) {
        match role {
            Role::Replica => {
                self.replicas.insert(node);
                for line in self.lines.values_mut() {
                    line.queues.remove(&node);
                    line.copies.remove(&node);
                }
            }
            Role::Master => {
                self.replicas.remove(&node);
                let lines = self.lines.iter_mut();
                let copies = lines.filter_map(|(lock, line)| Some((*lock, line.copies.remove(&node)?)));
                for (lock, copy) in copies.collect::<Vec<_>>() {
                    self.queue(history, lock, node, now, &copy);
                }
            }
        }
    }

    fn granted(&mut self, history: &History, lock: Lock, owner: Owner, now: True) {
        self.waits_on(lock, owner, now);
        let places = self.lines.get(&lock).map_or(&[][..], |line| &line.places);
        let ahead = places.iter().take_while(|place| place.owner != owner);
        let counts = |place: &&Place| !place.given_up && self.alive(history, lock, place.owner);
        let ahead: Vec<Owner> = ahead.filter(counts).map(|place| place.owner).collect();
        for passed in ahead {
            let line = self.lines.entry(lock).or_default();
            match line.gone.get_mut(&passed) {
                Some(gone) => gone.passed.push((now, owner)),
                None => self.wrongs.push(Wrong { lock, waiter: passed, by: Some(owner), at: now }),
            }
        }
        if let Some(line) = self.lines.get_mut(&lock) {
            line.places.retain(|place| place.owner != owner);
            line.gone.remove(&owner);
        }
    }

    /// Records that the owner's call has ended, with whatever result.
    fn gives_up(&mut self, lock: Lock, owner: Owner) {
        let Some(line) = self.lines.get_mut(&lock) else { return };
        line.gone.remove(&owner);
        let places = line.places.iter_mut().filter(|place| place.owner == owner);
        places.for_each(|place| place.given_up = true);
    }
}

fn check(evidence: &Evidence<'_>) -> Finding {
    decide(evidence).worded(&FAIRNESS, evidence)
}

fn decide(evidence: &Evidence<'_>) -> Decided<Because, Unfair> {
    let history = evidence.history;
    let mut state = State::default();
    let fair = |lock: Lock| history.lock(lock).kind == LockKind::Fair;
    let mut latest = True::ZERO;
    for event in &history.events {
        let now = event.at;
        if now > latest {
            latest = now;
            state.lines.values_mut().for_each(Line::drop_given_up);
        }
        match &event.kind {
            EventKind::Life { life: Life::Paused | Life::Suspended } => {
                state.standing_still.insert(event.host);
            }
            EventKind::Life { life: Life::Resumed } => {
                state.standing_still.remove(&event.host);
            }
            // Its calls ended with it: a process started again on that host is another owner.
            EventKind::Life { life: Life::Crashed | Life::Started } => {
                state.standing_still.remove(&event.host);
                let of_host = |asks: &(Lock, Owner)| history.client_of(asks.1) == event.host;
                for (lock, owner) in state.asking.extract_if(.., of_host).collect::<Vec<_>>() {
                    state.gives_up(lock, owner);
                }
            }
            EventKind::Return { op, .. } => {
                if let Some((lock, owner)) = state.calls.remove(op) {
                    state.asking.remove(&(lock, owner));
                    state.gives_up(lock, owner);
                }
            }
            EventKind::Became { role } => state.becomes(history, event.host, now, *role),
            what if what.lock().is_none_or(|lock| !fair(lock)) => {}
            EventKind::Invoke { op, lock, owner, call: Call::Acquire { .. } } => {
                state.calls.insert(*op, (*lock, *owner));
                state.asking.insert((*lock, *owner));
            }
            EventKind::Queue { lock, waiters } => state.queue(history, *lock, event.host, now, waiters),
            EventKind::Granted { lock, owner, count: 0 | 1, .. } => {
                state.granted(history, *lock, *owner, now)
            }
            EventKind::Waiting { lock, owner } => state.waits(*lock, *owner, now),
            // The wake-up may belong to a call that is over, whose client has yet to notice.
            EventKind::Woken { lock, owner, .. } => state.waits_on(*lock, *owner, now),
            _ => {}
        }
    }
    // An owner whose call is under way at the end of the run had not given up, unless it is paused.
    let left = state.lines.iter().flat_map(|(lock, line)| line.gone.keys().map(|owner| (*lock, *owner)));
    let left: Vec<(Lock, Owner)> = left.filter(|(_, owner)| !state.stands_still(history, *owner)).collect();
    for (lock, owner) in left {
        state.waits_on(lock, owner, True::MAX);
    }
    state.wrongs.sort_by_key(|wrong| wrong.at);
    let swept = state.wrongs.iter().filter(|wrong| wrong.by.is_none()).count();
    let overtakes = state.wrongs.len() - swept;
    let verdict = match state.wrongs.first() {
        Some(&Wrong { lock, waiter, by, at }) => {
            let owners = by.into_iter().chain([waiter]).collect();
            let wrong = Unfair { waiter, by, overtakes, swept };
            Decision::Violated(Case { wrong, from: at, until: at, lock: Some(lock), owners })
        }
        None if evidence.is_given_up() => Decision::GivenUp,
        None if !history.header.locks().any(fair) => Decision::Undecided(Because::NoOrder),
        None if !state.queued_behind => Decision::Undecided(Because::NoQueue),
        None => Decision::Holds(Because::InOrder),
    };
    let measures = vec![Measure::count("overtakes", overtakes as u64), Measure::count("swept", swept as u64)];
    Decided { verdict, measures }
}

#[cfg(test)]
mod tests {
    use crate::judge::{
        checker::tests::{explained, first_line},
        history::{Life, LockKind, Outcome, Role, Wake, story::Story},
    };

    /// C1 holds the lock; C2 and C3 queue behind it in this order.
    fn queue() -> Story {
        let story = Story::failover(LockKind::Fair).at(0).locks("c1", "m", 30_000);
        story.at(10).asks("c2").queue("m", &["c2"]).at(20).asks("c3").queue("m", &["c2", "c3"])
    }

    #[test]
    fn explanations() {
        let stories = [
            (
                "in turn",
                queue()
                    .at(100)
                    .unlocks("c1", "m")
                    .at(101)
                    .queue("m", &["c3"])
                    .granted("m", "c2", 30_000)
                    .returns("c2", Outcome::Ok)
                    .at(200)
                    .unlocks("c2", "m")
                    .at(201)
                    .granted("m", "c3", 30_000)
                    .queue("m", &[])
                    .ends(1_000),
            ),
            ("past the head", queue().at(101).granted("m", "c3", 30_000).ends(1_000)),
            (
                "past the whole queue, from outside",
                queue().at(101).asks("c4").granted("m", "c4", 30_000).ends(1_000),
            ),
            (
                "a dead head is passed rightly",
                queue().at(50).life("c2", Life::Crashed).at(101).granted("m", "c3", 30_000).ends(1_000),
            ),
            (
                "who stood still and goes on is passed wrongly",
                queue()
                    .at(50)
                    .life("c2", Life::Paused)
                    .at(60)
                    .life("c2", Life::Resumed)
                    .at(101)
                    .granted("m", "c3", 30_000)
                    .ends(1_000),
            ),
            (
                "a dead head is dead for good, although its host starts again",
                queue()
                    .at(50)
                    .life("c2", Life::Crashed)
                    .at(60)
                    .life("c2", Life::Started)
                    .at(101)
                    .granted("m", "c3", 30_000)
                    .ends(1_000),
            ),
            (
                "who gave up is passed rightly",
                queue()
                    .at(50)
                    .queue("m", &["c3"])
                    .at(51)
                    .granted("m", "c3", 30_000)
                    .at(52)
                    .returns("c2", Outcome::Refused)
                    .ends(1_000),
            ),
            (
                "who is refused keeps its place, and asks again before the queue is without it",
                queue()
                    .at(50)
                    .returns("c2", Outcome::Refused)
                    .at(60)
                    .asks("c2")
                    .at(101)
                    .queue("m", &["c3"])
                    .granted("m", "c2", 30_000)
                    .ends(1_000),
            ),
            (
                "who is refused keeps its place, and is granted it although it asks no more",
                queue()
                    .at(50)
                    .returns("c2", Outcome::Refused)
                    .at(101)
                    .queue("m", &["c3"])
                    .granted("m", "c2", 30_000)
                    .ends(1_000),
            ),
            (
                "who is refused and asks again sees its old place given back first",
                queue()
                    .at(50)
                    .returns("c2", Outcome::Refused)
                    .woken("c2", Wake::Timer)
                    .at(60)
                    .asks("c2")
                    .at(61)
                    .queue("m", &["c3"])
                    .at(62)
                    .queue("m", &["c3", "c2"])
                    .waiting("c2")
                    .at(101)
                    .granted("m", "c3", 30_000)
                    .queue("m", &["c2"])
                    .ends(1_000),
            ),
            (
                "who has taken a place at the end gets the lock first",
                queue()
                    .at(50)
                    .returns("c2", Outcome::Refused)
                    .queue("m", &["c3"])
                    .at(60)
                    .asks("c2")
                    .queue("m", &["c3", "c2"])
                    .at(101)
                    .granted("m", "c2", 30_000)
                    .ends(1_000),
            ),
            (
                "who is put into the queue by a late request sees that place given back first",
                queue()
                    .at(50)
                    .asks("c4")
                    .at(60)
                    .returns("c4", Outcome::Failed { definite: false, message: "timed out".into() })
                    .at(70)
                    .queue("m", &["c2", "c3", "c4"])
                    .at(80)
                    .asks("c4")
                    .at(81)
                    .queue("m", &["c2", "c3"])
                    .at(82)
                    .queue("m", &["c2", "c3", "c4"])
                    .waiting("c4")
                    .ends(1_000),
            ),
            (
                "who keeps its place and waits again is swept",
                queue()
                    .at(50)
                    .returns("c2", Outcome::Refused)
                    .at(60)
                    .asks("c2")
                    .waiting("c2")
                    .at(70)
                    .queue("m", &["c3"])
                    .granted("m", "c3", 30_000)
                    .ends(1_000),
            ),
            (
                "a place that is given up in the queue of a lost master is none in its successor's",
                queue()
                    .at(50)
                    .returns("c2", Outcome::Refused)
                    .life("m", Life::Crashed)
                    .at(60)
                    .queue("r", &["c3"])
                    .asks("c2")
                    .at(61)
                    .queue("r", &["c3", "c2"])
                    .waiting("c2")
                    .at(101)
                    .granted("r", "c3", 30_000)
                    .queue("r", &["c2"])
                    .ends(1_000),
            ),
            (
                "a replica is promoted with the queue that it has",
                queue()
                    .became("r", Role::Replica)
                    .queue("r", &["c2", "c3"])
                    .at(50)
                    .became("r", Role::Master)
                    .at(60)
                    .granted("r", "c3", 30_000)
                    .ends(1_000),
            ),
            (
                "live waiters are swept by a wrong clock",
                queue()
                    .fault("the wall clock of c4 stepped +600 s", &["c4"])
                    .clocks("c4", [600_020, 20, 20], [0; 3])
                    .at(50)
                    .asks("c4")
                    .queue("m", &["c4"])
                    .at(60)
                    .granted("m", "c4", 30_000)
                    .at(70)
                    .woken("c2", Wake::Timer)
                    .ends(1_000),
            ),
            (
                "the queue is lost in a failover",
                queue()
                    .at(50)
                    .fault("m crashed", &["m"])
                    .at(60)
                    .queue("r", &["c3"])
                    .at(61)
                    .granted("r", "c3", 30_000)
                    .ends(1_000),
            ),
            ("a lock without order", Story::one_node().at(0).granted("m", "c1", 1_000).ends(1_000)),
            (
                "a queue of one",
                Story::of_kind(LockKind::Fair).at(0).asks("c1").queue("m", &["c1"]).ends(1_000),
            ),
        ];
        insta::assert_snapshot!(explained("fairness", &stories));
    }

    /// C2 is granted the lock, releases it and is in line again before the replica has received any
    /// of this. Regression: the replica's late queues counted as the line, from which C2 was thrown
    /// out and in which it stood before C3.
    #[test]
    fn what_a_replica_has_of_the_queue_is_not_the_line() {
        let story = Story::failover(LockKind::Fair).at(0).became("r", Role::Replica).locks("c1", "m", 30_000);
        let story = story.at(10).asks("c2").queue("m", &["c2"]).at(20).asks("c3").queue("m", &["c2", "c3"]);
        let story = story.at(100).unlocks("c1", "m").granted("m", "c2", 30_000).queue("m", &["c3"]);
        let story = story.returns("c2", Outcome::Ok).at(150).unlocks("c2", "m").at(160).asks("c2");
        let story = story.queue("m", &["c3", "c2"]).waiting("c2").at(310).queue("r", &["c2"]);
        let story = story.at(320).queue("r", &["c2", "c3"]).at(400).queue("r", &["c3"]).at(401);
        let story = story.granted("m", "c3", 30_000).queue("m", &["c2"]).returns("c3", Outcome::Ok);
        let story = story.at(460).queue("r", &["c3", "c2"]).at(500).unlocks("c3", "m");
        let story = story.granted("m", "c2", 30_000).queue("m", &[]).returns("c2", Outcome::Ok);
        assert_eq!(first_line("fairness", &story.ends(1_000)), "holds overtakes=0 swept=0");
    }

    /// C2 gave up and left the queue before c4 came. It is seen to wait again before the node is
    /// seen to have queued it again.
    #[test]
    fn a_place_that_was_given_up_is_gone_with_the_queue_that_had_it() {
        let lost = Outcome::Failed { definite: true, message: "timed out".into() };
        let story = queue().at(100).returns("c2", lost).queue("m", &["c3"]);
        let story = story.at(200).asks("c4").queue("m", &["c3", "c4"]).at(300).asks("c2").waiting("c2");
        let story = story.at(301).queue("m", &["c3", "c4", "c2"]).at(400).unlocks("c1", "m");
        let story = story.granted("m", "c3", 1_000).queue("m", &["c4", "c2"]).at(401).unlocks("c3", "m");
        let story = story.granted("m", "c4", 1_000).queue("m", &["c2"]);
        assert_eq!(first_line("fairness", &story.ends(1_000)), "holds overtakes=0 swept=0");
    }

    /// C2 was thrown out of the queue and then crashed: it did not wait on. Regression: it counted
    /// as having waited until the end.
    #[test]
    fn a_client_that_crashed_after_it_left_the_queue_was_not_swept() {
        let story = queue().at(100).queue("m", &["c3"]).at(200).life("c2", Life::Crashed);
        let story = story.at(300).unlocks("c1", "m").granted("m", "c3", 1_000).queue("m", &[]);
        assert_eq!(first_line("fairness", &story.ends(60_000)), "holds overtakes=0 swept=0");
    }

    /// C2 is paused while it leaves the queue, and C3 gets the lock before C2 does anything.
    fn passed_after_a_pause() -> Story {
        let story = queue().at(45).life("c2", Life::Paused).at(50).queue("m", &["c3"]);
        let story = story.at(100).life("c2", Life::Resumed).unlocks("c1", "m");
        story.at(120).granted("m", "c3", 1_000).queue("m", &[]).returns("c3", Outcome::Ok).at(130)
    }

    /// C2 had given up before the pause, and learns at 130 ms that its place is gone. Regression:
    /// the grant to C3 counted as an overtake.
    #[test]
    fn a_pause_while_a_place_is_given_up_accuses_no_owner() {
        let story = passed_after_a_pause().returns("c2", Outcome::Refused);
        assert_eq!(first_line("fairness", &story.ends(1_000)), "holds overtakes=0 swept=0");
        let story = passed_after_a_pause().woken("c2", Wake::Timer);
        assert_eq!(first_line("fairness", &story.ends(1_000)), "violated overtakes=1 swept=0");
    }

    /// C2 is paused from soon after it left the queue until the end. Regression: C2 counted as
    /// swept, although it may have given up.
    #[test]
    fn who_is_paused_when_the_run_ends_may_have_given_up() {
        let story = queue().at(50).queue("m", &["c3"]).at(55).life("c2", Life::Paused);
        assert_eq!(first_line("fairness", &story.ends(1_000)), "holds overtakes=0 swept=0");
    }
}
