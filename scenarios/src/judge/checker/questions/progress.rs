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
        evidence::{
            Asked, Evidence, turned_away,
            wants::{Want, wants},
            words,
        },
        up_to_progress,
    },
    history::{EventKind, History, Host, Lock, Outcome, Owner, Probe},
    verdict::{Finding, Measure, Verdict, Witness},
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

/// A period in which an owner wanted a lock and no owner believed it held it.
#[derive(Debug, Clone, Copy)]
struct Stall {
    lock: Lock,
    from: True,
    until: True,
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

fn acquisitions<'e>(evidence: &'e Evidence<'_>, lock: Lock) -> impl Iterator<Item = &'e Asked<'e>> {
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
fn is_within(call: &Asked<'_>, stall: &Stall) -> bool {
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
        (_, None) => Verdict::undecided("The storm never ended."),
        (Some(stall), Some(_)) => Verdict::Violated { witness: witness(evidence, stall, &wants, calm) },
        _ if evidence.given_up().is_some() => Verdict::undecided(evidence.given_up().unwrap_or_default()),
        _ if let Some(lock) = broken.first() => Verdict::undecided(set_up(evidence, *lock)),
        _ if !wanted => Verdict::undecided(no_owner_wanted(evidence, calm)),
        _ if let Some(open) = open => Verdict::undecided(not_granted(evidence, open, calm)),
        _ => Verdict::holds(format!(
            "No waiter waited longer than {} for a free lock.{}",
            words::length(stalled),
            asked_by_probe(evidence)
        )),
    };
    let measures = vec![Measure::time("stalled", stalled), Measure::time("stalled_in_storm", in_storm)];
    PROGRESS.finding(verdict, measures)
}

/// Returns a sentence saying that lockstorm itself asked, if it did; otherwise an empty text.
fn asked_by_probe(evidence: &Evidence<'_>) -> String {
    let history = evidence.history;
    let Some(probe) = history.probe() else { return String::new() };
    let name = history.host_name(probe);
    format!(
        " {name} is lockstorm's own client, which asked as no other owner was granted it after the storm."
    )
}

/// Returns a sentence saying that the setup of the run prevented the lock from working.
fn set_up(evidence: &Evidence<'_>, lock: Lock) -> String {
    let history = evidence.history;
    let first = acquisitions(evidence, lock).filter_map(|call| call.returned).map(|(at, _)| at).min();
    let is_first = first.is_some_and(|first| history.faults.iter().all(|fault| fault.from > first));
    format!(
        "`{}` never worked, whatever the storm did: no acquisition succeeded, and {}. {}",
        history.lock(lock).name,
        if is_first {
            "the first one failed before any fault"
        } else {
            "one failed before any fault that could concern it"
        },
        turned_away(history, acquisitions(evidence, lock)).unwrap_or_default()
    )
}

/// Returns sentences saying that no owner asked, why lockstorm did not either, and which calls had
/// failed before.
fn no_owner_wanted(evidence: &Evidence<'_>, calm: True) -> String {
    let history = evidence.history;
    let header = &history.header;
    let wanted = "No owner wanted the lock after the storm";
    let said = match header.probe {
        None => format!("{wanted}."),
        Some(Probe::Off) => format!("{wanted}, and by `run.probe = false` lockstorm asks for none itself."),
        Some(Probe::TooShort { needs }) => format!(
            "{wanted}, and its calm of {} is too short for lockstorm to ask for it: set `run.calm` to {} or more.",
            words::length(header.end.since(calm)),
            words::length(needs)
        ),
        Some(Probe::NotOurs) => format!(
            "{wanted}, and lockstorm does not ask for it itself where the clients are a library on trial or code of their own."
        ),
        Some(Probe::From { .. }) => {
            format!("{wanted}, and lockstorm asks for none that an owner still has.")
        }
    };
    evidence.unless_failed(&said)
}

/// Returns sentences saying that a lock was free and wanted, but not for long enough to decide.
fn not_granted(evidence: &Evidence<'_>, stall: &Stall, calm: True) -> String {
    let history = evidence.history;
    let (length, bound) = (words::length(after(stall, calm)), words::length(history.header.bounds.progress));
    let said = if stall.until >= history.header.end {
        format!(
            "When the run ended the lock had been free and wanted for {length}, less than the bound of {bound}."
        )
    } else {
        format!(
            "After the storm `{}` was free and wanted for {length}, less than the bound of {bound}: from {} on no owner asked for it any more, and \
             no owner has had it since.",
            history.lock(stall.lock).name,
            words::instant(stall.until)
        )
    };
    let asked = acquisitions(evidence, stall.lock).filter(|call| is_within(call, stall));
    turned_away(history, asked).map_or_else(|| said.clone(), |failed| format!("{said} {failed}"))
}

fn witness(evidence: &Evidence<'_>, stall: &Stall, wants: &[Want], calm: True) -> Witness {
    let history = evidence.history;
    let from = stall.from.max(calm);
    let owners: Vec<Owner> = wants
        .iter()
        .filter(|want| want.lock == stall.lock && want.from < stall.until && want.until > from)
        .map(|want| want.owner)
        .collect();
    let names: Vec<String> = owners.iter().take(4).map(|owner| history.owner_name(*owner)).collect();
    let summary = format!(
        "`{}` was wanted, and no owner believed it held the lock, for {}, from {} to {}.",
        history.lock(stall.lock).name,
        words::length(stall.until.since(from)),
        words::instant(from),
        words::instant(stall.until)
    );
    let mut story = vec![format!(
        "Who wanted it: {}{}.",
        names.join(", "),
        if owners.len() > 4 { " and more" } else { "" }
    )];
    if owners.iter().any(|owner| Some(history.client_of(*owner)) == history.probe()) {
        story.push(asked_by_probe(evidence).trim_start().to_owned());
    }
    let asked = acquisitions(evidence, stall.lock).filter(|call| is_within(call, stall));
    story.extend(turned_away(history, asked));
    if let Some(last) =
        evidence.promises.iter().rfind(|promise| promise.lock == stall.lock && promise.from <= from)
    {
        story.push(words::promise(history, last));
    }
    Witness { summary, story, from, until: stall.until, lock: Some(stall.lock), owners }
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
