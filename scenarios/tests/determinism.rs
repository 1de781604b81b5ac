//! The first promise: a run is a pure function of scenario and seed, in this process, again, and in any other.

use std::{collections::BTreeMap, process::Command};

use lockstorm::{
    library,
    runner::{Case, Judged, Runner},
    scenario::{Source, parse},
};
use lockstorm_sim::world::{Record, TraceRetention, first_divergence};

fn stock() -> Vec<Source> {
    let parsed = library::ALL.iter().map(|stock| parse(stock.path, stock.text));
    parsed.map(|source| source.unwrap_or_else(|error| panic!("{error}"))).collect()
}

fn trial(sources: &[Source]) -> Runner<'_> {
    Runner::new(sources).jobs(std::thread::available_parallelism().map_or(1, usize::from))
}

/// What a run came to, by its token.
fn fingerprints(trial: &Runner<'_>, judged: &[Judged]) -> BTreeMap<String, (Case, String)> {
    judged.iter().map(|one| (trial.token(one.case), (one.case, one.fingerprint.clone()))).collect()
}

fn records(trial: &Runner<'_>, case: Case) -> Vec<Record> {
    trial.outcome(case, TraceRetention::All).records
}

#[test]
fn the_same_seed_gives_the_same_run_twice_in_one_process() {
    let sources = stock();
    let trial = trial(&sources);
    let first = fingerprints(&trial, &trial.run(&|_| {}));
    for one in trial.run(&|_| {}) {
        let token = trial.token(one.case);
        if first[&token].1 != one.fingerprint {
            let (one, other) = (records(&trial, one.case), records(&trial, one.case));
            match first_divergence(&one, &other) {
                Some(divergence) => panic!("{token} differs from itself:\n{divergence}"),
                None => panic!("{token} differed from itself, and did not when it was tried again"),
            }
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_run_in_another_process() {
    let sources = stock();
    let trial = trial(&sources);
    let here = fingerprints(&trial, &trial.run(&|_| {}));
    let there = Command::new(env!("CARGO_BIN_EXE_lockstorm"))
        .args(["twice", "--print"])
        .env_remove("LOCKSTORM_SEED")
        .env_remove("LOCKSTORM_SEEDS")
        .output()
        .expect("the binary was built for this test");
    let printed = String::from_utf8_lossy(&there.stdout);
    assert!(there.status.success(), "{printed}{}", String::from_utf8_lossy(&there.stderr));
    let mut compared = 0;
    for line in printed.lines() {
        // A line is a fingerprint of 64 digits and a token; the last one of all is a summary.
        let Some((fingerprint, token)) = line.split_once("  ").filter(|(digits, _)| digits.len() == 64)
        else {
            continue;
        };
        let (case, expected) = &here[token];
        assert!(
            fingerprint == expected,
            "{token}: {}",
            divergence_from_another_process(&trial, *case, token)
        );
        compared += 1;
    }
    assert_eq!(compared, here.len(), "every run has its line:\n{printed}");
}

#[test]
fn another_seed_gives_another_run() {
    let sources = stock();
    let trial = trial(&sources).seeds(0..2);
    let judged = trial.run(&|_| {});
    for pair in judged.chunks(2) {
        let [zero, one] = pair else { panic!("two seeds for each variant") };
        assert_ne!(zero.fingerprint, one.fingerprint, "{} and seed 1", trial.token(zero.case));
    }
}

/// The environment variable with the run that a second process of this test prints.
const CASE: &str = "DETERMINISM_PRINTS";

/// Runs a case here and in a second process of this test, and says where they part.
fn divergence_from_another_process(trial: &Runner<'_>, case: Case, token: &str) -> String {
    let me = std::env::current_exe().expect("a running test has a file");
    let there = Command::new(me)
        .args(["--exact", "prints_the_run_it_is_asked_for", "--nocapture"])
        .env(CASE, token)
        .output()
        .expect("this test can be started again");
    let there = String::from_utf8_lossy(&there.stdout).into_owned();
    let there: Vec<&str> = there.lines().filter(|line| line.starts_with("Record")).collect();
    let here: Vec<String> = records(trial, case).iter().map(|record| format!("{record:?}")).collect();
    let at = here.iter().zip(&there).position(|(here, there)| here != there);
    let at = at.unwrap_or(here.len().min(there.len()));
    let line = |lines: &[&str]| lines.get(at).map_or("(the run is over)".to_owned(), ToString::to_string);
    let here: Vec<&str> = here.iter().map(String::as_str).collect();
    format!("event {at} is the first to differ\n  here:  {}\n  there: {}", line(&here), line(&there))
}

/// Only for the second process of the test above; does nothing otherwise.
#[test]
fn prints_the_run_it_is_asked_for() {
    let Ok(token) = std::env::var(CASE) else { return };
    let sources = stock();
    let trial = trial(&sources);
    let case = trial.cases().into_iter().find(|case| trial.token(*case) == token);
    for record in records(&trial, case.expect("the test above names a case of its own list")) {
        println!("{record:?}");
    }
}
