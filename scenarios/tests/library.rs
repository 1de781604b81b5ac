//! The library as a user's own test calls it.

use std::{fs, path::PathBuf, time::Duration};

use lockstorm::{
    file::scenario::{Lock, LockKind, Resource, Scenario},
    judge::{
        history::{EventKind, Outcome},
        verdict::Expectation,
    },
    run::{
        code::{Code, CodeHost},
        experiment::Failed,
    },
    units::Span,
};
use lockstorm_client::Redlock;

/// Two clients with this code, on one node, for ten seconds.
fn two<F: Future<Output = ()> + 'static>(
    code: impl Fn(CodeHost) -> F + Clone + Send + Sync + 'static,
    checker: &str,
    expected: Expectation,
) -> Scenario {
    Scenario::builder("two clients of one's own")
        .node("redis", Default::default())
        .client_code("c1", code.clone())
        .client_code("c2", code)
        .resource(Resource::default())
        .lasting(Span::secs(10), Span::default())
        .expect(checker, expected)
        .build()
}

/// Uses the lock correctly.
async fn careful(host: CodeHost) {
    let client = host.client().build().expect("it knows a node");
    let lock = client.lock(host.lock_name());
    for _ in 0..5 {
        let guard = host.acquiring(None, lock.acquire()).await.expect("nothing goes wrong");
        host.sleep(Duration::from_millis(50)).await;
        host.write(None).await;
        host.releasing(guard.release()).await.expect("nothing goes wrong");
    }
}

/// Releases the lock before it writes.
async fn careless(host: CodeHost) {
    let client = host.client().build().expect("it knows a node");
    let lock = client.lock(host.lock_name());
    for _ in 0..5 {
        let guard = host.acquiring(None, lock.acquire()).await.expect("nothing goes wrong");
        host.sleep(Duration::from_millis(10)).await;
        host.releasing(guard.release()).await.expect("nothing goes wrong");
        host.sleep(Duration::from_millis(50)).await;
        host.write(None).await;
    }
}

#[test]
fn code_of_ones_own_is_judged_by_how_it_uses_the_lock() {
    for checker in ["l1", "l2", "l3"] {
        lockstorm::experiment(two(careful, checker, Expectation::holds())).seeds(0..3).check();
    }
    // The lock and the beliefs are right, but the writes come at any time.
    for checker in ["l1", "l2"] {
        lockstorm::experiment(two(careless, checker, Expectation::holds())).seeds(0..3).check();
    }
    lockstorm::experiment(two(careless, "l3", Expectation::violated())).seeds(0..3).check();
}

/// Holds a Redlock of three masters; each acquisition is another owner in Redis.
async fn careful_with_redlock(host: CodeHost) {
    let clients = host.clients().into_iter().map(|client| client.build().expect("it knows a node"));
    let lock = Redlock::builder(clients).build(host.lock_name()).expect("three masters");
    for _ in 0..3 {
        let wanted = lock.acquire().lease(Duration::from_secs(5));
        let Ok(guard) = host.acquiring(None, wanted).await else { continue };
        host.sleep(Duration::from_millis(50)).await;
        host.write(None).await;
        let _ = host.releasing(guard.release()).await;
        host.sleep(Duration::from_millis(50)).await;
    }
}

/// Like `careful_with_redlock`, but writes after the release.
async fn careless_with_redlock(host: CodeHost) {
    let clients = host.clients().into_iter().map(|client| client.build().expect("it knows a node"));
    let lock = Redlock::builder(clients).build(host.lock_name()).expect("three masters");
    for _ in 0..3 {
        let wanted = lock.acquire().lease(Duration::from_secs(5));
        let Ok(guard) = host.acquiring(None, wanted).await else { continue };
        let _ = host.releasing(guard.release()).await;
        host.sleep(Duration::from_millis(200)).await;
        host.write(None).await;
    }
}

/// The write names no owner; it belongs to the acquisition, under whose name the masters have
/// granted the lock.
#[test]
fn a_write_of_ones_own_code_is_of_the_redlock_that_it_holds() {
    let of = |code: Code, expected: Expectation| {
        let lock = Lock { kind: LockKind::Redlock, ..Lock::default() };
        let scenario = Scenario::builder("a Redlock of one's own").lock(lock);
        ["a", "b", "c"]
            .into_iter()
            .fold(scenario, |scenario, name| scenario.node(name, Default::default()))
            .client_code("c1", code.clone())
            .client_code("c2", code)
            .resource(Resource::default())
            .lasting(Span::secs(20), Span::default())
            .expect("l3", expected)
            .build()
    };
    let judged = lockstorm::experiment(of(careful_with_redlock.into(), Expectation::holds())).seeds(0..3);
    judged.check();
    let judged = lockstorm::experiment(of(careless_with_redlock.into(), Expectation::violated())).seeds(0..3);
    judged.check();
}

#[test]
fn what_code_of_ones_own_does_is_in_the_history() {
    let scenario = two(careful, "l1", Expectation::holds());
    let outcome = lockstorm::experiment(scenario).outcome(1).expect("it runs");
    let count = |wanted: fn(&EventKind) -> bool| {
        outcome.history.events.iter().filter(|one| wanted(&one.kind)).count()
    };
    // Five rounds of two clients: calls and returns of the lock and of its release, grants of the
    // node, beliefs, writes.
    assert_eq!(count(|what| matches!(what, EventKind::Invoke { .. })), 20);
    assert_eq!(count(|what| matches!(what, EventKind::Return { outcome: Outcome::Ok, .. })), 20);
    assert_eq!(count(|what| matches!(what, EventKind::Granted { .. })), 10);
    assert_eq!(count(|what| matches!(what, EventKind::Disbelieves { .. })), 10);
    assert_eq!(count(|what| matches!(what, EventKind::Write { .. })), 10);
}

#[test]
fn code_can_take_the_place_of_a_files_steps() {
    let file = lockstorm::scenario("single/pause_beyond_lease.toml");
    let failed = file.client_code("c9", careful).try_check().expect_err("there is no such client");
    assert!(failed.to_string().contains("has no client \"c9\""), "{failed}");
}

#[test]
fn an_unexpected_result_ends_in_the_line_that_replays_it() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("library");
    let _ = fs::remove_dir_all(&folder);
    let wrong = two(careful, "l1", Expectation::violated());
    let failed = lockstorm::experiment(wrong).seeds(5..9).report_dir(&folder).try_check();
    let Err(Failed::Verdict { report, judged }) = failed else { panic!("it is not violated: {failed:?}") };
    let test = "an_unexpected_result_ends_in_the_line_that_replays_it";
    assert!(report.ends_with(&format!("LOCKSTORM_SEED={} cargo test {test}", judged.case.seed)), "{report}");
    assert!(report.contains("expected violated, found holds"), "{report}");
    let pages: Vec<_> = fs::read_dir(&folder).expect("a folder of reports").collect();
    assert_eq!(pages.len(), 1, "one page about one failure");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let row = |failed: Result<Vec<lockstorm::run::runner::Judged>, Failed>, says: &str| {
        let failed = failed.expect_err(says);
        assert!(failed.to_string().contains(says), "{failed}");
    };
    row(lockstorm::scenario("absent.toml").try_check(), "absent.toml: there is no such file");
    row(lockstorm::scenario("single/eviction.toml").variant("none").try_check(), "no variant \"none\"");
    let mut silent = two(careful, "l1", Expectation::holds());
    silent.expect.clear();
    row(lockstorm::experiment(silent).try_check(), "expects nothing");
    row(lockstorm::experiment(Scenario::default()).try_check(), "has no Redis node");
}

#[test]
fn check_panics_with_a_report_that_names_the_file() {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("turned_round.toml");
    let text = "[node.m]\n[client.c]\nsteps = [{ acquire = {} }]\n[run]\nstorm = \"2s\"\n[expect]\nl1 = \"violated\"\n";
    fs::write(&path, text).expect("a file");
    let panicked =
        std::panic::catch_unwind(|| lockstorm::scenario(&path).check()).expect_err("it is not violated");
    let report = panicked.downcast_ref::<String>().expect("a panic with words");
    let last = report.lines().last().expect("it says something");
    assert!(last.contains("lockstorm replay '") && last.contains("turned_round.toml@0~"), "{report}");
}
