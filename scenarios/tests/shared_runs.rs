//! Runs of a search that share their beginnings are the runs that do not: each has the same
//! fingerprint and the same verdicts, whatever the faults are and how many run at a time.
//!
//! These tests fork this process, so they run in its one thread, one after the other.

use std::sync::atomic::{AtomicUsize, Ordering};

use libtest_mimic::{Arguments, Trial};
use lockstorm::{
    file::scenario::{Scenario, parse},
    run::hunt::{Hunted, Lost, Search},
};

/// Three clients. The second asks while the first holds the lock, and the third right after the
/// first one's lease.
const THREE: &str = r#"
[node.m]
[network]
latency = "0.5ms..1.5ms"
[resource]
[lock]
subject = "token-lock"
lease = "1s"
[client.c1]
steps = [{ at = "1s", try_acquire = {} }, { at = "1.7s", write = {} }, { release = {} }]
[client.c2]
steps = [{ at = "1.6s", try_acquire = {} }]
[client.c3]
steps = [{ at = "2.0012s", try_acquire = {} }, { write = {} }]
[run]
storm = "4s"
probe = false
[expect]
l1 = "holds"
l2 = "holds"
l3 = "holds"
"#;

/// Our client with a fair lock, whose waiters have timers of their own.
const FAIR: &str = r#"
[node.m]
[network]
latency = "0.5ms..1.5ms"
[lock]
kind = "fair"
lease = "2s"
fair_wait = "1s"
[client.c]
count = 3
steps = [{ at = "1s", acquire = { wait = "3s" } }, { work = { for = "0.5s" } }, { release = {} }]
[run]
storm = "5s"
[expect]
l1 = "holds"
"#;

/// A Redlock with faults of its own: some at an instant of the hunted ones, some by a trigger.
const REDLOCK: &str = r#"
[node.n]
count = 3
[network]
latency = "0.5ms..1.5ms"
[lock]
kind = "redlock"
lease = "2s"
[client.c1]
steps = [{ at = "1s", try_acquire = {} }, { at = "2s", extend = { lease = "2s" } }, { release = {} }]
[client.c2]
steps = [{ at = "2.5s", acquire = { wait = "2s" } }, { release = {} }]
[fault.own]
at = "1.5s"
for = "2s"
crash = "n1"
[fault.again]
at = "1s"
every = "700ms"
for = "300ms"
cut = { from = "c1", to = "n2" }
[fault.after]
on = { event = "acquired" }
for = "500ms"
pause = "n3"
[run]
storm = "5s"
probe = false
[expect]
l1 = "holds"
"#;

const SIZES: &str = "pause = \"..1.1s\"\ncrash = \"..500ms\"\ncut = \"..999ms\"\nclock_step = \"..999ms\"";

fn scenario(text: &str, hunt: &str) -> Scenario {
    let text = format!("{text}\n[hunt]\n{hunt}\n{SIZES}");
    let source = parse("shared.toml", &text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    source.variants[0].scenario.clone()
}

fn shared(search: &Search<'_>) -> Hunted {
    let hunted = search.run_shared(&|_| {}).unwrap_or_else(|error| panic!("{error}"));
    assert!(hunted.is_shared, "the process has one thread");
    hunted
}

/// Asserts that two searches have the same result.
fn assert_same(one: &Hunted, other: &Hunted, of: &str) {
    let json = |hunted| serde_json::to_string(hunted).expect("it is JSON");
    assert_eq!(one.fingerprints.len(), other.fingerprints.len(), "{of}");
    for (at, (one, other)) in one.fingerprints.iter().zip(&other.fingerprints).enumerate() {
        assert_eq!(one, other, "{of}: run {at}");
    }
    assert_eq!(json(one), json(other), "{of}");
    assert_eq!(one.verdicts, other.verdicts, "{of}");
}

/// The runs of each search. Pairs of faults come after all single ones.
const RUNS: u64 = 200;
const RUNS_OF_PAIRS: u64 = 500;

const ALL: &str =
    "kinds = [\"pause\", \"suspend\", \"crash\", \"restart\", \"cut\", \"clock_step\", \"reorder\"]";

/// The searches whose runs are compared, by name: the scenario and its `[hunt]`.
fn searches() -> [(&'static str, &'static str, String); 9] {
    let pairs = |rest: &str| format!("faults = 2\n{rest}");
    let of_all = |rest: &str| format!("{ALL}\n{rest}");
    [
        ("one fault of any kind", THREE, of_all("latest = \"1.8s\"")),
        (
            "pauses and clock steps",
            THREE,
            pairs("kinds = [\"pause\", \"clock_step\"]\nof = [\"c1\", \"m\"]\nlatest = \"1.002s\""),
        ),
        (
            "crashes and restarts",
            THREE,
            pairs("kinds = [\"crash\", \"restart\"]\nof = \"m\"\nlatest = \"1.01s\""),
        ),
        (
            "cuts and suspensions",
            THREE,
            pairs("kinds = [\"cut\", \"suspend\"]\nof = \"m\"\nlatest = \"1.002s\""),
        ),
        (
            "late messages and pauses",
            THREE,
            pairs("kinds = [\"reorder\", \"pause\"]\nof = \"m\"\nlatest = \"1.01s\""),
        ),
        ("message orders of a fair lock", FAIR, "kinds = [\"reorder\"]".into()),
        ("a fair lock", FAIR, of_all("of = [\"m\", \"c1\"]\nlatest = \"1.02s\"")),
        (
            "a Redlock and three faults of its own",
            REDLOCK,
            of_all("of = [\"n1\", \"c1\"]\nlatest = \"1.01s\"\nkeep = [\"own\", \"again\", \"after\"]"),
        ),
        ("a Redlock and a trigger", REDLOCK, of_all("of = \"n3\"\nlatest = \"1.01s\"\nkeep = [\"after\"]")),
    ]
}

fn every_run_has_the_fingerprint_of_the_whole_run(text: &str, hunt: &str) {
    let scenario = scenario(text, hunt);
    let budget =
        if scenario.hunt.as_ref().is_some_and(|hunt| hunt.faults > 1) { RUNS_OF_PAIRS } else { RUNS };
    let search = || {
        let search = Search::new(&scenario, 7).budget(budget);
        search.brute_force().to_the_end().keep_fingerprints()
    };
    let whole = search().jobs(2).run(&|_| {});
    assert!(!whole.is_shared);
    for jobs in [1, 3] {
        assert_same(&shared(&search().jobs(jobs)), &whole, hunt);
    }
}

fn a_search_ends_at_the_same_violation() {
    let one = scenario(THREE, "faults = 2");
    for (budget, seed) in [(10_000, 0), (10_000, 1), (70, 0), (1, 0)] {
        let search = || Search::new(&one, seed).budget(budget).keep_fingerprints();
        let whole = search().run(&|_| {});
        for jobs in [1, 4] {
            assert_same(&shared(&search().jobs(jobs)), &whole, &whole.sentence());
        }
    }
}

/// Returns the children of a process.
#[cfg(target_os = "linux")]
fn children(of: u32) -> Vec<u32> {
    let all = std::fs::read_dir("/proc").expect("the processes").filter_map(|entry| {
        let process: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        // After the name in brackets: the state and the parent.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        let (state, parent) = (fields.next()?, fields.next()?);
        (state != "Z" && parent == of.to_string()).then_some(process)
    });
    all.collect()
}

/// Kills the descendants of this process in one generation.
#[cfg(target_os = "linux")]
fn kill(generation: usize) {
    let mut processes = vec![std::process::id()];
    for _ in 0..generation {
        processes = processes.into_iter().flat_map(children).collect();
    }
    for process in processes {
        let process = rustix::process::Pid::from_raw(process as i32).expect("the number of a process");
        // It may have ended in between.
        let _ = rustix::process::kill_process(process, rustix::process::Signal::KILL);
    }
}

/// A process of a search that is killed is an error that names a run, and ends the others.
#[cfg(target_os = "linux")]
fn a_dead_process_is_an_error() {
    let scenario = scenario(FAIR, "");
    // The second generation plays the run without faults, the third one the runs with faults.
    for generation in [1, 2, 3] {
        let told = AtomicUsize::new(0);
        let search = Search::new(&scenario, 0).brute_force().to_the_end();
        let result = search.run_shared(&|_| {
            if told.fetch_add(1, Ordering::Relaxed) > 5 {
                kill(generation);
            }
        });
        let error = match result {
            Err(error) => error,
            // The runs of the batch do not need the root any more.
            Ok(hunted) if generation == 1 => {
                let whole = search.run(&|_| {});
                assert_eq!((hunted.tried, hunted.verdicts), (whole.tried, whole.verdicts));
                continue;
            }
            Ok(_) => panic!("generation {generation} was killed"),
        };
        let Lost { placement, why } = &error;
        assert!(placement.contains(" at "), "{error}");
        assert!(why.contains("its process ended") || why.contains("signal 9"), "{error}");
        assert!(children(std::process::id()).is_empty(), "no process is left");
    }
}

fn main() {
    let arguments = Arguments { test_threads: Some(1), ..Arguments::from_args() };
    let of_search = |(name, text, hunt): (&str, &'static str, String)| {
        Trial::test(format!("every run has the fingerprint of the whole run: {name}"), move || {
            every_run_has_the_fingerprint_of_the_whole_run(text, &hunt);
            Ok(())
        })
    };
    let mut tests: Vec<Trial> = searches().into_iter().map(of_search).collect();
    let test = |name: &str, run: fn()| {
        let run = move || {
            run();
            Ok(())
        };
        Trial::test(name, run)
    };
    tests.push(test("a search ends at the same violation", a_search_ends_at_the_same_violation));
    #[cfg(target_os = "linux")]
    tests.push(test("a dead process is an error", a_dead_process_is_an_error));
    libtest_mimic::run(&arguments, tests).exit();
}
