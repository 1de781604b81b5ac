//! Every checker on small histories: legal ones, and an illegal one for each way to fail.

use std::fmt::Write;

use super::*;
use crate::judge::history::History;

/// Returns a checker's finding about a history: the word of the verdict, the measures, the
/// sentences.
pub(super) fn judged(checker: &str, history: &History) -> String {
    let checker = Checker::named(checker).unwrap_or_else(|| panic!("no checker {checker}"));
    let finding = checker.ask(&Evidence::of(history));
    for measure in &finding.measures {
        assert!(
            checker.measures.iter().any(|(name, _)| *name == measure.name),
            "undeclared: {}",
            measure.name
        );
    }
    let mut text = finding.verdict.word().to_owned();
    for measure in &finding.measures {
        let _ = write!(text, " {}={}", measure.name, measure.quantity);
    }
    let _ = write!(text, "\n  {}", finding.verdict.sentence());
    for line in finding.verdict.witness().iter().flat_map(|witness| &witness.story) {
        let _ = write!(text, "\n    {line}");
    }
    text
}

/// Returns the words `verdict measure=value ...` of a checker's finding.
pub(super) fn first_line(checker: &str, history: &History) -> String {
    judged(checker, history).lines().next().unwrap_or_default().to_owned()
}

/// Returns a checker's findings about several histories, for a snapshot.
pub(super) fn explained(checker: &str, stories: &[(&str, History)]) -> String {
    let parts: Vec<String> = stories
        .iter()
        .map(|(title, history)| format!("## {title}\n{}\n", judged(checker, history)))
        .collect();
    parts.join("\n")
}

#[test]
fn names_are_unique_and_every_question_is_one() {
    for (at, checker) in LIST.iter().enumerate() {
        assert!(LIST[..at].iter().all(|other| other.name != checker.name), "{} twice", checker.name);
        assert!(checker.question.ends_with('?'), "{}", checker.name);
    }
    assert!(LIST[4..].is_sorted_by_key(|checker| checker.name), "after the layers, by name");
}

#[test]
fn bounds_are_of_what_a_checker_measures() {
    let mut bounded = Vec::new();
    for checker in LIST {
        let Some(bound) = checker.bound else { continue };
        let bound = bound(Bounds::default());
        bounded.push(checker.name);
        for named in bound.split('`').skip(1).step_by(2).filter(|named| *named != "run.progress") {
            let has = checker.measures.iter().any(|(measure, _)| *measure == named);
            assert!(has, "{} measures no {named}", checker.name);
        }
    }
    assert_eq!(
        bounded,
        ["commands", "latch", "lease", "progress", "rate", "together", "waiting", "wake-ups", "windows"]
    );
}

#[test]
fn a_run_that_was_given_up_proves_nothing() {
    use crate::judge::history::story::Story;
    let story = || {
        Story::one_node()
            .at(0)
            .locks("c1", "m", 1_000)
            .at(500)
            .unlocks("c1", "m")
            .at(600)
            .locks("c2", "m", 1_000)
    };
    for layer in ["l1", "l2"] {
        assert!(judged(layer, &story().ends(5_000)).starts_with("holds"), "{layer}");
        let given_up = judged(layer, &story().given_up(5_000, "too many events"));
        assert!(given_up.starts_with("undecided") && given_up.contains("too many events"), "{given_up}");
    }
}

/// The page of a run marks mistakes of the server and mistakes of the clients separately.
#[test]
fn what_two_owners_have_at_once_is_told_apart_by_who_is_mistaken() {
    use crate::judge::history::{LockKind, story::Story};
    use lockstorm_world::time::True;
    type AtOnce = &'static [(i64, i64)];
    let held = || Story::one_node().locks("c1", "m", 1_000).at(500);
    let in_turn = held().unlocks("c1", "m").at(600).locks("c2", "m", 1_000);
    let semaphore = Story::of_kind(LockKind::Semaphore { permits: 2 }).locks("c1", "m", 1_000).at(500);
    let rows: [(&str, Story, AtOnce, AtOnce); 6] = [
        ("one after the other", in_turn, &[], &[]),
        ("the node promises it twice", held().granted("m", "c2", 2_000), &[(500, 1_000)], &[]),
        ("a client believes without a promise", held().believes("c2", 300), &[], &[(500, 800)]),
        ("both", held().locks("c2", "m", 1_000), &[(500, 1_000)], &[(500, 1_000)]),
        ("of another lock", held().about("other").locks("c2", "m", 1_000), &[], &[]),
        ("a lock that several may have", semaphore.locks("c2", "m", 1_000), &[], &[]),
    ];
    for (title, story, promised, believed) in rows {
        let history = story.ends(5_000);
        let evidence = Evidence::of(&history);
        let ms = |of: Vec<(True, True)>| -> Vec<(i64, i64)> {
            of.into_iter().map(|(from, until)| (from.as_millis(), until.as_millis())).collect()
        };
        assert_eq!(ms(evidence.promises_at_once()), promised, "promised: {title}");
        assert_eq!(ms(evidence.beliefs_at_once()), believed, "believed: {title}");
    }
}

/// The times of a run in real time may be off by 100 ms, those of virtual time are exact.
#[test]
fn what_a_busy_machine_may_have_been_late_by_is_no_violation() {
    use crate::judge::history::story::Story;
    // C2 gets the lock within C1's second, shortly before its end or shortly after its beginning,
    // and C1 writes last.
    let story = |second: i64, lease: i64| {
        let story = Story::one_node().at(0).granted("m", "c1", 1_000).believes("c1", 1_000);
        let story = story.at(second).granted("m", "c2", lease.unsigned_abs()).believes("c2", lease);
        let story = story.at(second + 1).wrote("c2", None, second).at(1_000).wrote("c1", None, 999);
        story.ends(3_000)
    };
    for (engine, second, lease, word) in [
        ("real", 900, 1_000, "undecided"),
        ("real", 899, 1_000, "violated"),
        // Even if the second hold is short, it was neither before the first one nor after it.
        ("real", 899, 1, "violated"),
        // This second hold may have been before the first one.
        ("real", 50, 20, "undecided"),
        ("event", 901, 1_000, "violated"),
        ("event", 999, 1, "violated"),
        ("event", 50, 20, "violated"),
    ] {
        for checker in ["l1", "l2", "l3"] {
            let mut history = story(second, lease);
            history.header.engine = engine.into();
            let found =
                check(&history).into_iter().find(|found| found.checker == checker).expect("it is a checker");
            let said = format!("{engine}, {second}, {lease}: {checker} {:?}", found.verdict);
            assert_eq!(found.verdict.word(), word, "{said}");
            let why = "earlier or later by the 100 ms that a busy machine may be late.";
            assert_eq!(found.verdict.sentence().ends_with(why), word == "undecided", "{said}");
        }
    }
}
