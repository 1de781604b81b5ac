//! Progress in the calm: is a lock that no owner believes it holds granted to one of its waiters
//! within a bound?
//!
//! Safety is judged throughout the run, but progress only once the storm is over. A lock that is
//! never wrong but never granted again is broken, too. A lock is stalled while an owner
//! [wants](crate::judge::checker::evidence::wants) it and no owner believes it holds it. A server
//! that answers every acquisition with an error stalls the lock like one that does not answer.
//!
//! A stall longer than the bound is a violation. So is a stall as long as the bound that lasts to
//! the end of the run: no grant came within the bound. If a stall ends because no owner asks any
//! more, and no owner comes to believe afterwards that it holds the lock, the verdict is undecided:
//! this shows neither that the lock can be acquired nor that it cannot.
//!
//! The verdict is also undecided for a lock that never worked: no owner ever believed that it holds
//! the lock, all acquisitions that returned in the run failed, and one of them failed before any
//! fault began that could concern it. Faults on other clients do not. A password, a missing right
//! or a library that cannot reach its server is part of the setup of the run, not an effect of the
//! storm.

use std::{collections::BTreeMap, time::Duration};

use lockstorm_world::time::True;

use crate::judge::{
    checker::{
        Checker,
        decision::{Case, Decided, Decision},
        evidence::{
            Asked, Evidence,
            promise::Promise,
            wants::{Want, wants},
        },
        up_to_progress,
    },
    history::{EventKind, History, Host, Lock, Outcome},
    verdict::{Finding, Measure},
};

pub(in crate::judge::checker) const PROGRESS: Checker = Checker {
    name: "progress",
    question: "After the storm, is a lock that no owner believes it holds granted to a waiter within the bound?",
    measures: &[
        (
            "stalled",
            "how long after the storm it kept waiters waiting although no owner believed it held the lock",
        ),
        ("stalled_in_storm", "the same, in the whole run"),
    ],
    bound: Some(|bounds| up_to_progress("stalled", bounds)),
    check,
};

/// The reason of a verdict.
pub(in crate::judge::checker) enum Because {
    NoCalm,
    /// This lock never worked.
    SetUp(Lock),
    NotWanted,
    /// This stall, which lasted for this time after the storm, shows nothing.
    Open(Stall, Duration),
    /// The longest time that a waiter waited for a free lock.
    Served(Duration),
}

/// A stall that lasted too long.
pub(in crate::judge::checker) struct TooLong<'a> {
    pub(in crate::judge::checker) stall: Stall,
    /// The latest promise of the lock before the violation.
    pub(in crate::judge::checker) last: Option<&'a Promise>,
}

/// A period in which an owner wanted a lock and no owner believed it held it.
#[derive(Debug, Clone, Copy)]
pub(in crate::judge::checker) struct Stall {
    pub(in crate::judge::checker) lock: Lock,
    pub(in crate::judge::checker) from: True,
    pub(in crate::judge::checker) until: True,
}

fn stalls(evidence: &Evidence<'_>, wants: &[Want]) -> Vec<Stall> {
    let mut edges: Vec<(Lock, True, i32, i32)> = Vec::new();
    for want in wants {
        edges.push((want.lock, want.from, 1, 0));
        edges.push((want.lock, want.until, -1, 0));
    }
    for belief in &evidence.beliefs {
        edges.push((belief.lock, belief.from, 0, 1));
        edges.push((belief.lock, belief.until, 0, -1));
    }
    edges.sort_unstable();
    let (mut all, mut since, mut wanting, mut believing) = (Vec::new(), None, 0, 0);
    for (at, (lock, now, wants, believes)) in edges.iter().enumerate() {
        wanting += wants;
        believing += believes;
        // Events of one instant count together: a grant whose call returns in that instant is not a
        // stall.
        if edges.get(at + 1).is_some_and(|next| (next.0, next.1) == (*lock, *now)) {
            continue;
        }
        match since {
            None if wanting > 0 && believing == 0 => since = Some(*now),
            Some(from) if wanting == 0 || believing > 0 => {
                all.push(Stall { lock: *lock, from, until: *now });
                since = None;
            }
            _ => {}
        }
    }
    all
}

/// Returns the length of the part of a stall that counts, which is the part after the storm.
fn after(stall: &Stall, calm: True) -> Duration {
    stall.until.since(stall.from.max(calm))
}

pub(in crate::judge::checker) fn acquisitions<'e>(
    evidence: &'e Evidence<'_>,
    lock: Lock,
) -> impl Iterator<Item = &'e Asked<'e>> {
    evidence.calls.iter().filter(move |call| call.lock == lock && call.is_acquire())
}

/// Returns the locks that could not be acquired because of the setup of the run, whatever the later
/// faults.
pub(in crate::judge::checker) fn broken(evidence: &Evidence<'_>) -> Vec<Lock> {
    evidence.history.header.locks().filter(|lock| never_worked(evidence, *lock)).collect()
}

fn never_worked(evidence: &Evidence<'_>, lock: Lock) -> bool {
    let history = evidence.history;
    let believes = |kind: &EventKind| matches!(kind, EventKind::Believes { lock: of, .. } if *of == lock);
    if history.events.iter().any(|event| believes(&event.kind)) {
        return false;
    }
    let returned = || acquisitions(evidence, lock).filter_map(|call| Some((call.host, call.returned?)));
    let all_failed = returned().all(|(_, (_, outcome))| matches!(outcome, Outcome::Failed { .. }));
    let is_later = |(client, (at, _)): (Host, (True, &Outcome))| {
        history.faults.iter().all(|fault| fault.from > at || !history.may_concern(fault, client))
    };
    all_failed && returned().any(is_later)
}

/// Returns true if the call overlaps the stall, which may have begun in the storm.
pub(in crate::judge::checker) fn is_within(call: &Asked<'_>, stall: &Stall) -> bool {
    call.over.is_some_and(|over| over >= stall.from) && call.from <= stall.until
}

/// Returns for each lock the last instant at which an owner recorded that it believes it holds it.
fn last_beliefs(history: &History) -> BTreeMap<Lock, True> {
    let believes = history.events.iter().filter_map(|event| match event.kind {
        EventKind::Believes { lock, .. } => Some((lock, event.at)),
        _ => None,
    });
    believes.collect()
}

fn check(evidence: &Evidence<'_>) -> Finding {
    decide(evidence).worded(&PROGRESS, evidence)
}

fn decide<'e>(evidence: &'e Evidence<'_>) -> Decided<Because, TooLong<'e>> {
    let header = &evidence.history.header;
    let wants = wants(evidence);
    let stalls = stalls(evidence, &wants);
    let calm = header.calm.unwrap_or(True::MAX);
    let length = |stall: &Stall| after(stall, calm);
    let whole = |stall: &Stall| stall.until.since(stall.from);
    let stalled = stalls.iter().map(length).max().unwrap_or_default();
    let in_storm = stalls.iter().map(whole).max().unwrap_or_default();
    let bound = header.bounds.progress;
    let broken = broken(evidence);
    let judged: Vec<&Stall> = stalls.iter().filter(|stall| !broken.contains(&stall.lock)).collect();
    let is_too_long = |stall: &&&Stall| {
        let length = length(stall);
        length > bound || (length == bound && stall.until >= header.end && !length.is_zero())
    };
    let too_long = judged.iter().filter(is_too_long).max_by_key(|stall| length(stall));
    let wanted = wants.iter().any(|want| want.until > calm);
    // An unanswered stall decides nothing: the lock might have stayed free, or an owner that kept
    // asking might have got it.
    let believed = last_beliefs(evidence.history);
    let is_answered = |stall: &Stall| {
        stall.until < header.end && believed.get(&stall.lock).is_some_and(|last| *last >= stall.until)
    };
    let open = judged.iter().filter(|stall| !length(stall).is_zero() && !is_answered(stall));
    let open = open.max_by_key(|stall| (stall.until >= header.end, length(stall)));
    let verdict = match (too_long, header.calm) {
        (_, None) => Decision::Undecided(Because::NoCalm),
        (Some(stall), Some(_)) => Decision::Violated(case(evidence, stall, &wants, calm)),
        _ if evidence.is_given_up() => Decision::GivenUp,
        _ if let Some(lock) = broken.first() => Decision::Undecided(Because::SetUp(*lock)),
        _ if !wanted => Decision::Undecided(Because::NotWanted),
        _ if let Some(open) = open => Decision::Undecided(Because::Open(**open, length(open))),
        _ => Decision::Holds(Because::Served(stalled)),
    };
    let measures = vec![Measure::time("stalled", stalled), Measure::time("stalled_in_storm", in_storm)];
    Decided { verdict, measures }
}

fn case<'e>(evidence: &'e Evidence<'_>, stall: &Stall, wants: &[Want], calm: True) -> Case<TooLong<'e>> {
    let (lock, from, until) = (stall.lock, stall.from.max(calm), stall.until);
    let waits = |want: &&Want| want.lock == lock && want.from < until && want.until > from;
    let owners = wants.iter().filter(waits).map(|want| want.owner).collect();
    let last = evidence.promises.iter().rfind(|promise| promise.lock == lock && promise.from <= from);
    let wrong = TooLong { stall: *stall, last };
    Case { wrong, from, until, lock: Some(lock), owners }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::judge::{
        checker::tests::{explained, first_line},
        history::{Bounds, Life, Outcome, Probe, Reason, story::Story},
    };

    #[test]
    fn explanations() {
        let bounds = Bounds { progress: Duration::from_secs(5), ..Bounds::default() };
        let lost = || Outcome::Failed { definite: true, message: "timed out".into() };
        let refused = || Outcome::Failed { definite: true, message: "OOM command not allowed".into() };
        let held = || Story::one_node().bounds(bounds).at(0).locks("c1", "m", 30_000).at(10).asks("c2");
        let stories = [
            (
                "the waiter gets it when it is released",
                held()
                    .at(1_000)
                    .calm()
                    .at(3_000)
                    .unlocks("c1", "m")
                    .at(3_001)
                    .granted("m", "c2", 1_000)
                    .returns("c2", Outcome::Ok)
                    .believes("c2", 1_000)
                    .ends(10_000),
            ),
            (
                "a key that no owner believes in keeps all others out",
                held().at(500).life("c1", Life::Crashed).at(1_000).calm().ends(10_000),
            ),
            (
                "one that asks again and again wants it all the time",
                held()
                    .at(500)
                    .disbelieves("c1", Reason::Lost)
                    .at(1_000)
                    .calm()
                    .at(3_000)
                    .returns("c2", lost())
                    .at(4_000)
                    .asks("c2")
                    .at(8_000)
                    .returns("c2", lost())
                    .ends(10_000),
            ),
            ("a long hold is no stall", held().at(1_000).calm().ends(10_000)),
            (
                "too short a calm",
                held().at(500).disbelieves("c1", Reason::Lost).at(9_000).calm().ends(10_000),
            ),
            (
                "what another lock was granted is none of its story",
                held()
                    .at(100)
                    .disbelieves("c1", Reason::Lost)
                    .about("other")
                    .at(200)
                    .locks("c3", "m", 1_000)
                    .at(500)
                    .calm()
                    .ends(10_000),
            ),
            (
                "who waits for another lock meanwhile is none of those who wanted it",
                held()
                    .about("other")
                    .at(20)
                    .locks("c3", "m", 30_000)
                    .at(30)
                    .asks("c4")
                    .at(500)
                    .about("stock")
                    .disbelieves("c1", Reason::Lost)
                    .calm()
                    .ends(10_000),
            ),
            (
                "a server that refuses stalls it as one that does not answer, to the end and for as long as the bound",
                Story::one_node()
                    .bounds(bounds)
                    .at(0)
                    .locks("c1", "m", 1_000)
                    .at(500)
                    .unlocks("c1", "m")
                    .at(1_000)
                    .calm()
                    .asks("c2")
                    .at(1_001)
                    .returns("c2", refused())
                    .at(5_999)
                    .asks("c2")
                    .at(6_000)
                    .returns("c2", refused())
                    .ends(6_000),
            ),
            (
                "who is refused and asks no more shows nothing",
                held()
                    .at(500)
                    .disbelieves("c1", Reason::Lost)
                    .at(1_000)
                    .calm()
                    .at(2_000)
                    .returns("c2", refused())
                    .ends(30_000),
            ),
            (
                "what another owner is granted later shows that it can be had",
                held()
                    .at(500)
                    .disbelieves("c1", Reason::Lost)
                    .at(1_000)
                    .calm()
                    .at(2_000)
                    .returns("c2", refused())
                    .at(3_000)
                    .locks("c3", "m", 1_000)
                    .ends(30_000),
            ),
            (
                "a lock that never worked is no work of the storm",
                Story::one_node()
                    .bounds(bounds)
                    .at(10)
                    .asks("c1")
                    .at(11)
                    .returns("c1", refused())
                    .at(500)
                    .fault("m crashed", &["m"])
                    .at(1_000)
                    .calm()
                    .asks("c1")
                    .ends(30_000),
            ),
            (
                "one that fails from a fault on is",
                Story::one_node()
                    .bounds(bounds)
                    .at(5)
                    .fault("somebody runs CONFIG SET maxmemory 1 on m", &["m"])
                    .at(10)
                    .asks("c1")
                    .at(11)
                    .returns("c1", refused())
                    .at(1_000)
                    .calm()
                    .asks("c1")
                    .ends(30_000),
            ),
            (
                "no owner asks, and the calm is too short for the laboratory to ask",
                Story::one_node()
                    .at(500)
                    .calm()
                    .probe(Probe::TooShort { needs: Duration::from_secs(90) })
                    .ends(10_000),
            ),
            (
                "no owner asks, and who was refused before may be why",
                Story::one_node()
                    .at(10)
                    .locks("c1", "m", 30_000)
                    .asks("c2")
                    .at(11)
                    .returns("c2", refused())
                    .at(500)
                    .calm()
                    .probe(Probe::Off)
                    .ends(10_000),
            ),
            ("no calm", held().ends(10_000)),
            (
                "no owner wants it",
                Story::one_node().at(0).locks("c1", "m", 1_000).at(500).calm().ends(10_000),
            ),
        ];
        insta::assert_snapshot!(explained("progress", &stories));
    }

    /// C2 crashes while it waits, and asks again a minute later: it did not want the lock in
    /// between.
    #[test]
    fn a_crashed_client_wants_nothing_until_it_asks_again() {
        let story = Story::one_node()
            .at(0)
            .locks("c1", "m", 1_000)
            .at(10)
            .asks("c2")
            .at(20)
            .life("c2", Life::Crashed);
        let story = story.calm().at(40_000).life("c2", Life::Started).at(60_000).locks("c2", "m", 1_000);
        assert_eq!(first_line("progress", &story.ends(70_000)), "holds stalled=0ms stalled_in_storm=0ms");
    }

    /// C3 crashes before C1 is refused, which is no reason for the refusal. Regression: any earlier
    /// fault counted as one. A fault on the node may be the reason.
    #[test]
    fn a_fault_on_another_client_is_no_reason_for_a_lock_that_never_works() {
        let refused = |host: &str| {
            let message = "NOAUTH Authentication required.".into();
            let bounds = Bounds { progress: Duration::from_secs(5), ..Bounds::default() };
            let story = Story::one_node().bounds(bounds).at(5).fault("a crash", &[host]);
            let story = story.at(10).asks("c1").at(11);
            let story = story.returns("c1", Outcome::Failed { definite: true, message });
            first_line("progress", &story.at(1_000).calm().asks("c1").ends(30_000))
        };
        assert_eq!(refused("c3"), "undecided stalled=29s stalled_in_storm=29.99s");
        assert_eq!(refused("m"), "violated stalled=29s stalled_in_storm=29.99s");
    }

    /// A stall that is over was longer than the one in which the run ends, which might have
    /// continued. Regression: the latter was overlooked.
    #[test]
    fn a_stall_that_the_run_ends_in_may_have_gone_on() {
        let story = Story::one_node().calm().at(0).asks("c1").at(3_000).granted("m", "c1", 1_000);
        let story = story.returns("c1", Outcome::Ok).believes("c1", 1_000).at(5_000).asks("c2");
        assert_eq!(first_line("progress", &story.ends(6_000)), "undecided stalled=3s stalled_in_storm=3s");
    }
}
