//! The first promise: a run is a pure function of scenario and seed, in a repetition, in any other
//! process, and on the machine that wrote `fingerprints.txt`. `tests/scenarios.rs` compares the
//! runs of its own process with the same file.

use std::{collections::BTreeMap, process::Command, sync::LazyLock};

use lockstorm::{
    file::{
        library,
        scenario::{Source, parse},
    },
    run::runner::{Case, Runner},
};
use lockstorm_world::{Record, TraceRetention};

/// All stock scenarios.
static STOCK: LazyLock<Vec<Source>> = LazyLock::new(|| {
    let parsed = library::ALL.iter().map(|stock| parse(stock.path, stock.text));
    parsed.map(|source| source.unwrap_or_else(|error| panic!("{error}"))).collect()
});

/// The recorded runs: the line of each, by its token.
static RECORDED: LazyLock<BTreeMap<&str, &str>> = LazyLock::new(|| {
    let lines = include_str!("../../tests/fingerprints.txt").lines();
    lines.filter_map(|line| Some((line.split(' ').nth(2)?, line))).collect()
});

fn trial() -> Runner<'static> {
    Runner::new(&STOCK).jobs(std::thread::available_parallelism().map_or(1, usize::from))
}

/// The fingerprint at the beginning of a line.
fn fingerprint(line: &str) -> &str {
    line.split(' ').next().unwrap_or_default()
}

fn records(trial: &Runner<'_>, case: Case) -> Vec<Record> {
    trial.outcome(case, TraceRetention::All).records
}

/// The other process runs each case twice, and fails if the two differ.
#[test]
fn the_same_seed_gives_the_recorded_run_twice_in_another_process() {
    let trial = trial();
    let cases: BTreeMap<String, Case> =
        trial.cases().into_iter().map(|case| (trial.token(case), case)).collect();
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
        // The very last line is a summary.
        let Some((token, case)) = line.split(' ').nth(2).and_then(|token| cases.get_key_value(token)) else {
            continue;
        };
        let Some(expected) = RECORDED.get(token.as_str()) else {
            panic!("tests/fingerprints.txt does not have {token}");
        };
        let why = || match fingerprint(line) == fingerprint(expected) {
            true => "the same happened, and it was recorded or judged otherwise".to_owned(),
            false => divergence_from_another_process(&trial, *case, token),
        };
        assert!(line == *expected, "{line}\n{expected}\n{}", why());
        compared += 1;
    }
    assert_eq!(compared, cases.len(), "every run has its line:\n{printed}");
}

#[test]
fn another_seed_gives_another_run() {
    let trial = trial().seeds(1..2);
    for one in trial.run(&|_| {}) {
        let zero = trial.token(Case { seed: 0, ..one.case });
        assert_ne!(fingerprint(RECORDED[zero.as_str()]), &one.fingerprint[..16], "{zero} and seed 1");
    }
}

/// The environment variable with the run that a second process of this test prints.
const CASE: &str = "DETERMINISM_PRINTS";

/// Runs a case here and in a second process of this test, and reports the first difference.
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
    let trial = trial();
    let case = trial.cases().into_iter().find(|case| trial.token(*case) == token);
    for record in records(&trial, case.expect("the test above names a case of its own list")) {
        println!("{record:?}");
    }
}
