//! Progress in the calm: is a lock that no owner believes it holds granted to one of its waiters within a bound?
//!
//! Safety is judged throughout; progress only once the storm is over. A lock that is never wrong but never granted again
//! is broken, too. It is stalled while an owner wants it and no owner believes it holds it. An owner wants it from its first
//! acquire until one succeeds, through refusals and failures after which it tries again.

use std::{collections::BTreeMap, time::Duration};

use lockstorm_sim::time::True;

use super::{Checker, evidence::Evidence, words};
use crate::{
    history::{Lock, Outcome, Owner},
    verdict::{Finding, Measure, Verdict, Witness},
};

/// The checker.
pub(super) const PROGRESS: Checker = Checker {
    name: "progress",
    question: "After the storm, is a lock that no owner believes it holds granted to a waiter within the bound?",
    measures: &[
        (
            "stalled",
            "how long after the storm it kept waiters waiting although no owner believed it held the lock",
        ),
        ("stalled_in_storm", "the same, in the whole run"),
    ],
    bound: Some(|bounds| super::up_to_progress("stalled", bounds)),
    check,
};

/// The time in which an owner wanted a lock and did not have it.
struct Want {
    lock: Lock,
    owner: Owner,
    from: True,
    until: True,
}

fn wants(evidence: &Evidence<'_>) -> Vec<Want> {
    let history = evidence.history;
    let mut open: BTreeMap<(Lock, Owner), (True, True)> = BTreeMap::new();
    let mut all = Vec::new();
    for call in evidence.calls.iter().filter(|call| call.is_acquire()) {
        let key = (call.lock, call.owner);
        let from = open.remove(&key).map_or(call.from, |(from, _)| from);
        let until = call.over.unwrap_or(history.header.end);
        match call.returned {
            // After a failure it asks again, after a success or a crash it wants the lock anew.
            Some((_, outcome)) if *outcome != Outcome::Ok => {
                open.insert(key, (from, until));
            }
            _ => all.push(Want { lock: call.lock, owner: call.owner, from, until }),
        }
    }
    all.extend(open.into_iter().map(|((lock, owner), (from, until))| Want { lock, owner, from, until }));
    all
}

/// A stretch in which an owner wanted a lock and no owner believed it held it.
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
        // What happens at one instant happens at once: a grant that comes back is not a stall.
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

fn check(evidence: &Evidence<'_>) -> Finding {
    let header = &evidence.history.header;
    let wants = wants(evidence);
    let stalls = stalls(evidence, &wants);
    let calm = header.calm.unwrap_or(True::MAX);
    let after = |stall: &Stall| stall.until.since(stall.from.max(calm));
    let whole = |stall: &Stall| stall.until.since(stall.from);
    let worst = stalls.iter().max_by_key(|stall| after(stall));
    let stalled = worst.map_or(Duration::ZERO, after);
    let in_storm = stalls.iter().map(whole).max().unwrap_or_default();
    let bound = header.bounds.progress;
    let wanted = wants.iter().any(|want| want.until > calm);
    // The lock that is free and wanted when the run ends might have stayed so.
    let mut ends = stalls.iter().filter(|stall| stall.until >= header.end).map(after);
    let open = ends.find(|length| !length.is_zero());
    let verdict = match (worst, header.calm) {
        (_, None) => Verdict::undecided("The storm never ended."),
        (Some(stall), Some(_)) if stalled > bound => {
            Verdict::Violated { witness: witness(evidence, stall, &wants, calm) }
        }
        _ if evidence.given_up().is_some() => Verdict::undecided(evidence.given_up().unwrap_or_default()),
        _ if !wanted => Verdict::undecided("No owner wanted the lock after the storm."),
        _ if let Some(open) = open => Verdict::undecided(format!(
            "When the run ended the lock had been free and wanted for {}, less than the bound of {}.",
            words::length(open),
            words::length(bound)
        )),
        _ => Verdict::holds(format!(
            "No waiter waited longer than {} for a free lock.",
            words::length(stalled)
        )),
    };
    let measures = vec![Measure::time("stalled", stalled), Measure::time("stalled_in_storm", in_storm)];
    PROGRESS.finding(verdict, measures)
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

    use crate::{
        checker::tests::{explained, first_line},
        history::{Bounds, Life, Outcome, Reason, story::Story},
    };

    #[test]
    fn explanations() {
        let bounds = Bounds { progress: Duration::from_secs(5), ..Bounds::default() };
        let lost = || Outcome::Failed { definite: true, message: "timed out".into() };
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
            ("no calm", held().ends(10_000)),
            (
                "no owner wants it",
                Story::one_node().at(0).locks("c1", "m", 1_000).at(500).calm().ends(10_000),
            ),
        ];
        insta::assert_snapshot!(explained("progress", &stories));
    }

    /// C2 crashes while it waits, and asks again a minute later: it did not want the lock in between.
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

    /// A stall that is over was longer than the one the run ends in, which might have gone on: that was once overlooked.
    #[test]
    fn a_stall_that_the_run_ends_in_may_have_gone_on() {
        let story = Story::one_node().calm().at(0).asks("c1").at(3_000).granted("m", "c1", 1_000);
        let story = story.returns("c1", Outcome::Ok).believes("c1", 1_000).at(5_000).asks("c2");
        assert_eq!(first_line("progress", &story.ends(6_000)), "undecided stalled=3s stalled_in_storm=3s");
    }
}
