//! Scenarios that once ended wrongly. Each expects a result that was found to be right since; this
//! file lists the results that none of their runs may have any more.
//!
//! Other defects have their tests elsewhere: a short fault within a long one, on a link, a host and
//! a clock (`--test faults`); the release of one level of a hold
//! (`single/giving_back_one_level.toml`); a write by a user's own code with a Redlock (`--test
//! library`); phases without bounds (`--test mistakes`); drawn values that no report showed
//! (`--test cli`).

use std::collections::BTreeSet;

use lockstorm::{
    file::{
        library,
        scenario::{Source, parse},
    },
    judge::{
        history::{EventKind, Outcome},
        verdict::{Finding, Match},
    },
    run::runner::{self, Runner},
};
use lockstorm_world::TraceRetention;

/// A file of `tests/defects/`, its text, and the checkers that falsely found a violation, besides
/// those that the file has expectations for. Expected violations were missed.
type Row = (&'static str, &'static str, &'static [&'static str]);

macro_rules! row {
    ($name:literal, $checkers:expr) => {
        ($name, include_str!(concat!("defects/", $name, ".toml")), &$checkers)
    };
}

const ROWS: [Row; 23] = [
    // L1 took the drift of a Redlock from the lock's lease, not from the grant's.
    row!("a_lease_below_the_drift_of_the_watchdog", []),
    row!("drift_of_the_lease_of_the_try", []),
    // The first copy of a release arrived after the second, and freed the next hold.
    row!("a_late_duplicate_release", ["owner-safety"]),
    row!("a_late_reply", ["l1", "l3"]),
    row!("paused_while_the_reply_is_under_way", ["l1"]),
    // The place of a live waiter was never refreshed.
    row!("a_place_that_is_over", ["l1", "l2"]),
    // The checkers did not count a released hold that came back with its node, however often its
    // owner renewed it.
    row!("a_released_hold_that_a_restart_brings_back", []),
    row!("a_released_hold_that_a_failover_brings_back", []),
    row!("a_count_of_a_hold_that_came_back", []),
    // The newer of two holds of one owner was taken for the older one.
    row!("a_fenced_node_whose_clock_steps", []),
    row!("failovers_right_after_grants", []),
    row!("granted_again_after_a_clock_jump", ["l3"]),
    row!("granted_again_after_a_failover", ["l3"]),
    // The end of one crash started a client, and the end of another silently killed it. Wake-ups
    // are not expected: a crashed head is notified in vain, and the waiters behind it ask within
    // half of their wait (seeds 2, 16 and 19).
    row!("clients_of_a_fair_lock_crash", ["lease", "reentrancy"]),
    row!("crashes_that_overlap", []),
    // An abandoned request was executed after all: the client and the checkers disagreed about the
    // hold. Wake-ups are not expected: a head that lost a reply neither listens nor asks until it
    // has connected again, and is notified in vain (seed 16).
    row!("one_client_of_a_fair_lock_crashes", ["lease", "reentrancy"]),
    row!("renewed_holds_over_failovers", ["reentrancy"]),
    // Two kinds of lock share a key, which no file could express.
    row!("two_kinds_under_one_name", ["l2", "owner-safety", "progress"]),
    // On a real server a reader seemed to extend the holds of others; see also `--test real`.
    row!("readers_and_writers", []),
    // Two readers; each released its own hold.
    row!("two_readers", ["reentrancy"]),
    // An owner that was refused with an error counted as one that did not want the lock.
    row!("refused_to_the_end", []),
    row!("refused_after_a_command", []),
    // All work was over before the calm, so no owner asked if the lock was available.
    row!("acquisition_without_channels", []),
];

/// Runs each file with its first twenty seeds.
#[test]
fn no_defect_comes_back() {
    let source = |(name, text, _): &Row| parse(name, text).unwrap_or_else(|error| panic!("{error}"));
    let sources: Vec<Source> = ROWS.iter().map(source).collect();
    let trial = Runner::new(&sources)
        .seeds(Some(0..20))
        .jobs(std::thread::available_parallelism().map_or(1, usize::from));
    let mut wrong = Vec::new();
    for one in trial.run(&|_| {}) {
        let (name, _, checkers) = ROWS[one.case.source];
        let is_asked = |checker: &str| checkers.contains(&checker);
        let violated =
            one.findings.iter().filter(|found| is_asked(found.checker) && found.verdict.witness().is_some());
        wrong
            .extend(violated.map(|found| format!("{name}: {}: {}", found.checker, found.verdict.sentence())));
        let expected = &sources[one.case.source].variants[one.case.variant].scenario.expect;
        for (checker, expected) in expected {
            let found = one.findings.iter().find(|found| found.checker == checker).expect("a checker");
            match expected.matches(found) {
                Match::AsExpected => {}
                Match::Otherwise(why) | Match::Undecided(why) => {
                    wrong.push(format!("{}: {checker}: {why}", trial.token(one.case)));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Files in which a server refuses commands, and the error with which calls fail, if any does.
const REFUSALS: [(Row, Option<&str>); 3] = [
    // A user with the right to its own key only could acquire a lock, but not release it.
    (row!("release_needs_more_keys_than_acquire", []), None),
    // The caller of a release got the error that there was no reply, although each reply gave the
    // reason of the refusal.
    (row!("refusal_is_called_no_reply", []), Some("NOREPLICAS")),
    // An acquisition without a limit ended after three seconds, with the connection that the crash
    // had broken. Once that was mended, it ended soon after the server answered questions again.
    (row!("acquire_gives_up_while_loading", []), None),
];

#[test]
fn who_was_refused_for_a_while_was_left_alone_or_told_otherwise() {
    let mut wrong = Vec::new();
    for ((name, text, _), told) in &REFUSALS {
        let sources = [parse(name, text).unwrap_or_else(|error| panic!("{error}"))];
        let trial = Runner::new(&sources).seeds(Some(0..30));
        for case in trial.cases() {
            let outcome = trial.outcome(case, TraceRetention::Nothing);
            let failures = outcome.history.events.iter().filter_map(|event| match &event.kind {
                EventKind::Return { outcome: Outcome::Failed { message, .. }, .. } => Some(&**message),
                _ => None,
            });
            let failures: Vec<_> = failures.collect();
            let is_right = match told {
                Some(told) => failures.len() == 1 && failures[0].contains(told),
                None => failures.is_empty(),
            };
            if !is_right {
                wrong.push(format!("{}: failed with {failures:?}", trial.token(case)));
            }
            let judged = runner::judge(trial.variant(case), case, &outcome);
            if judged.verdict() != Match::AsExpected {
                wrong.push(format!("{}: {:?}", trial.token(case), judged.verdict()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Regression: a node that loaded its data answered nothing, so no client got LOADING.
#[test]
fn a_node_sends_each_refusal_of_which_a_file_speaks() {
    let stock = |path| library::find(path).expect("a stock file").text;
    let (_, loading, _) =
        REFUSALS.iter().map(|(row, _)| row).find(|row| row.0.contains("loading")).expect("a row");
    for (text, codes) in [
        (*loading, &["LOADING"][..]),
        (stock("storm/refusals.toml"), &["OOM", "NOREPLICAS", "READONLY", "MASTERDOWN", "LOADING"]),
        (stock("storm/refusals_of_a_disk.toml"), &["MISCONF"]),
        (stock("storm/refusals_of_a_majority.toml"), &["OOM", "NOREPLICAS", "READONLY"]),
    ] {
        let sources = [parse("refusals.toml", text).unwrap_or_else(|error| panic!("{error}"))];
        let trial = Runner::new(&sources).seeds(Some(0..3));
        let mut missing: BTreeSet<&str> = codes.iter().copied().collect();
        for case in trial.cases() {
            let outcome = trial.outcome(case, TraceRetention::Events);
            let lines: Vec<String> = outcome.records.iter().map(ToString::to_string).collect();
            missing.retain(|code| !lines.iter().any(|line| line.contains(&format!(" -{code} "))));
        }
        assert!(missing.is_empty(), "never sent: {missing:?}");
    }
}

/// The finding of `progress` in a defect's first run, with `of_run` added to `[run]`.
fn progress_of(name: &str, of_run: &str) -> Finding {
    let (_, text, _) = ROWS.iter().find(|(row, ..)| *row == name).expect("it is a row");
    let text = text.replace("[run]\n", &format!("[run]\n{of_run}\n"));
    let source = parse(name, &text).unwrap_or_else(|error| panic!("{error}"));
    let sources = [source];
    let mut found = Runner::new(&sources).run(&|_| {}).remove(0).findings;
    found.retain(|found| found.checker == "progress");
    found.remove(0)
}

/// Regression: the verdict reported no fault in its chain, and the counterfactual that it held
/// without the command.
#[test]
fn a_command_after_which_a_node_refuses_is_in_the_chain_of_what_it_refused() {
    for name in ["refused_after_a_command", "refused_to_the_end"] {
        let found = progress_of(name, "");
        let story = &found.verdict.witness().expect("it is violated").story;
        let says = |text: &str| story.iter().any(|line| line.contains(text));
        assert!(
            says("The faults in its chain of events: somebody runs CONFIG SET maxmemory 1 on m at"),
            "{story:?}"
        );
        assert!(says("OOM command not allowed"), "{story:?}");
    }
}

#[test]
fn a_verdict_for_which_no_owner_asked_names_the_calls_that_failed() {
    let found = progress_of("acquisition_without_channels", "probe = false");
    assert_eq!(found.verdict.word(), "undecided");
    let sentence = found.verdict.sentence();
    assert!(
        sentence.contains("No owner wanted the lock after the storm, and by `run.probe = false`"),
        "{sentence}"
    );
    assert!(
        sentence.contains("1 call for it ended with an error, of c2 at 6.") && sentence.contains("NOPERM"),
        "{sentence}"
    );
}

/// Files whose expectations are all right.
const AS_STATED: [(&str, &str); 2] = [
    // Regression: with a fixed latency ties always ended the same way, so two of five clients got
    // the lock 278 times each and three never; no report showed it.
    ("starved_waiters", include_str!("defects/starved_waiters.toml")),
    // Regression: progress held while a waiter waited for five minutes, and nothing was violated.
    ("hold_that_nobody_gives_back", include_str!("defects/hold_that_nobody_gives_back.toml")),
];

/// Runs each file with its first twenty seeds.
#[test]
fn each_comes_out_as_stated() {
    let source = |(name, text): &(&str, &str)| parse(name, text).unwrap_or_else(|error| panic!("{error}"));
    let sources: Vec<Source> = AS_STATED.iter().map(source).collect();
    let trial = Runner::new(&sources)
        .seeds(Some(0..20))
        .jobs(std::thread::available_parallelism().map_or(1, usize::from));
    let runs = trial.run(&|_| {});
    let wrong = runs.iter().filter(|one| one.verdict() != Match::AsExpected);
    let wrong: Vec<String> =
        wrong.map(|one| format!("{}: {:?}", trial.token(one.case), one.matches)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
