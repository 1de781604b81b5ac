//! The reductions are sound, the results do not depend on threads, and violations are found again.

use lockstorm_world::{TraceRetention, time::True};

use super::{
    End, Hunted, Moments, Placement, Search, Tried, What,
    place::{BESIDE, Cost},
    until,
};
use crate::{
    file::{
        plan::Plan,
        scenario::{Scenario, parse},
    },
    judge::{checker, verdict::Match},
    run::{Engine, run},
};

/// Three clients. The second asks while the first holds the lock, and the third right after the
/// first one's lease.
const THREE: &str = r#"
[node.m]
[network]
latency = "1ms"
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

/// The same with a replica, which the second client asks.
fn replicated() -> String {
    let nodes = "[node.m]\nconfig.repl-diskless-sync-delay = \"0\"\n[node.r]\nreplica_of = \"m\"";
    THREE.replace("[node.m]", nodes).replace("[client.c2]", "[client.c2]\nnodes = [\"r\"]")
}

fn scenario(text: &str) -> Scenario {
    let source = parse("hunt.toml", text).unwrap_or_else(|error| panic!("{error}"));
    source.variants[0].scenario.clone()
}

fn stock(path: &str, variant: &str) -> Scenario {
    let source = crate::file::library::load(path.as_ref()).unwrap_or_else(|error| panic!("{error}"));
    let found = source.variants.iter().find(|one| one.name == variant);
    found.unwrap_or_else(|| panic!("{path} has no variant {variant:?}")).scenario.clone()
}

fn quiet(search: Search<'_>) -> Hunted {
    search.run(&|_| {})
}

/// Every placement of up to two faults, with and without the reductions. The limits leave one size
/// of each kind.
#[test]
fn what_is_left_out_changes_no_verdict() {
    for hunt in [
        "kinds = [\"pause\", \"clock_step\"]\nof = [\"c1\", \"m\"]\nlatest = \"1.5s\"",
        "kinds = [\"crash\", \"restart\"]\nof = [\"c1\", \"m\"]\nlatest = \"1.5s\"",
        "kinds = [\"cut\", \"clock_step\"]\nof = \"m\"\nlatest = \"1.01s\"",
        "kinds = [\"reorder\", \"clock_step\"]\nof = [\"c1\", \"m\"]\nlatest = \"1.7s\"",
        "kinds = [\"promote\", \"pause\"]\nof = [\"r\", \"c1\"]\nlatest = \"1.1s\"",
    ] {
        let sizes = "pause = \"..999ms\"\ncrash = \"..500ms\"\ncut = \"..999ms\"\nclock_step = \"..999ms\"";
        let hosts = if hunt.contains("promote") { replicated() } else { THREE.to_owned() };
        let scenario = scenario(&format!("{hosts}\n[hunt]\nfaults = 2\n{hunt}\n{sizes}"));
        let search = || Search::new(&scenario, 0).jobs(2).budget(1_000_000).to_the_end();
        let (reduced, whole) = (quiet(search()), quiet(search().brute_force()));
        assert_eq!(reduced.verdicts, whole.verdicts, "{hunt}");
        assert!(matches!(whole.end, End::HoldsWithin), "{hunt}: {}", whole.sentence());
        // No crash and no restart equals another one.
        let leaves_out = !hunt.contains("restart");
        let is_less = reduced.tried < whole.tried;
        assert!(is_less || !leaves_out, "{hunt}: {} of {}", reduced.tried, whole.tried);
        assert!(whole.verdicts.len() > 1, "{hunt}: faults change something: {:?}", whole.verdicts);
        assert_eq!(whole.left_out.all(), whole.left_out.same_end);
    }
}

#[test]
fn the_result_does_not_depend_on_the_number_of_threads() {
    let scenario = scenario(&format!("{THREE}\n[hunt]\nfaults = 2\nkinds = [\"clock_step\", \"cut\"]"));
    for checkers in [&["l1", "l2"][..], &["permits"]] {
        let checkers = checkers.iter().filter_map(|name| crate::judge::checker::Checker::named(name));
        let checkers: Vec<_> = checkers.collect();
        let of = |jobs| {
            let search = Search::new(&scenario, 3).checkers(checkers.clone()).budget(150).jobs(jobs);
            serde_json::to_string(&quiet(search)).expect("it is JSON")
        };
        assert_eq!(of(1), of(4));
    }
}

#[test]
fn a_search_says_what_it_excluded() {
    let text = format!("{THREE}\n[hunt]\nkinds = [\"cut\"]\ncut = \"..100ms\"");
    let hunted = quiet(Search::new(&scenario(&text), 0));
    assert_eq!(hunted.placements, hunted.tried + hunted.left_out.all());
    assert_eq!(hunted.runs, hunted.tried + 1);
    let sentence = hunted.sentence();
    assert!(sentence.starts_with("holds within: one fault (cut) of m, c1, c2, c3, "), "{sentence}");
    let few = quiet(Search::new(&scenario(&text), 0).budget(3));
    assert!(matches!(few.end, End::OutOfBudget) && few.runs == 3, "{}", few.sentence());
}

/// The same violation is as expected, or not, as the file says.
#[test]
fn a_violation_is_compared_with_what_the_file_expects() {
    let hunt = "[hunt]\nkinds = [\"pause\"]\nof = \"c1\"\npause = \"..2s\"";
    let expected = THREE.replace("l3 = \"holds\"", "l3 = \"violated\"");
    for (text, is_expected) in [(expected.as_str(), true), (THREE, false)] {
        let scenario = scenario(&format!("{text}\n{hunt}"));
        let l3 = crate::judge::checker::Checker::named("l3").expect("a checker");
        let hunted = quiet(Search::new(&scenario, 0).checkers(vec![l3]));
        assert_eq!(hunted.word(), "violated");
        assert!(0 < hunted.in_chains && hunted.in_chains < hunted.instants, "{}", hunted.in_chains);
        let otherwise = Match::Otherwise(hunted.sentence());
        let is = if is_expected { Match::AsExpected } else { otherwise };
        assert_eq!(hunted.verdict(&scenario), is);
    }
}

/// A search that found no violation holds only if it tried everything and each checker was put to
/// the test.
#[test]
fn a_search_without_a_violation_holds_if_it_was_complete() {
    let expects_l3 = scenario(&THREE.replace("l3 = \"holds\"", "l3 = \"violated\""));
    let scenario = scenario(THREE);
    let short = quiet(Search::new(&scenario, 0).budget(1));
    assert!(matches!(short.end, End::OutOfBudget), "{}", short.sentence());
    let untested = || vec!["l2", "l3"];
    let no_test = || Match::Undecided("no run put l2, l3 to the test".into());
    for (end, untested, word, is) in [
        (End::HoldsWithin, vec![], "holds", Some(Match::AsExpected)),
        (End::HoldsWithin, untested(), "undecided", Some(no_test())),
        (End::GivenUp, vec![], "undecided", None),
        (End::OutOfBudget, vec![], "undecided", None),
    ] {
        let hunted = Hunted { end, untested, given_up: 1, ..short.clone() };
        assert_eq!(hunted.word(), word);
        let is = is.unwrap_or_else(|| Match::Undecided(hunted.sentence()));
        assert_eq!(hunted.verdict(&scenario), is);
        if matches!(hunted.end, End::HoldsWithin) {
            let missing = format!("l3 was expected to be violated; {}", hunted.sentence());
            assert_eq!(hunted.verdict(&expects_l3), Match::Otherwise(missing));
        }
    }
}

/// With one fault in each run, each placement is tried or has its reason not to be.
#[test]
fn the_placements_left_out_are_those_that_are_not_tried() {
    for kind in ["pause", "clock_step", "cut"] {
        let text = format!("{THREE}\n[hunt]\nkinds = [\"{kind}\"]\nlatest = \"1.7s\"");
        let scenario = scenario(&text);
        let search = || Search::new(&scenario, 0).checkers(Vec::new()).jobs(2).to_the_end();
        let (reduced, whole) = (quiet(search()), quiet(search().brute_force()));
        assert_eq!(reduced.placements, whole.placements, "{kind}");
        assert_eq!(reduced.placements, reduced.tried + reduced.left_out.all(), "{kind}");
    }
}

/// A second fault comes before both runs of one state are alike again, or it equals one of the
/// other run.
#[test]
fn a_run_in_the_state_of_an_earlier_one_needs_no_second_fault_after_both() {
    let seconds = True::from_secs;
    let tried = |state| Tried {
        violated: Vec::new(),
        held: Vec::new(),
        is_given_up: false,
        state: [state; 32],
        simulated: 0.0,
        fingerprint: None,
    };
    let pause = |ends| Placement {
        at: seconds(1),
        what: What::Pause { host: "m".into() },
        ends: seconds(ends),
        cost: Cost::default(),
    };
    let all = [pause(4), pause(9), pause(5), pause(3), pause(6)];
    let states = [1, 2, 0, 1, 2].map(|state| [state; 32]);
    // The third run is in the state of the run without faults, the fourth in that of the first, and
    // the fifth in that of the second.
    let limits = [None, None, Some(seconds(5)), Some(seconds(4)), Some(seconds(9))];
    assert_eq!(until(&all, &states, &tried(0)), limits);
}

/// A step of a clock leaves no record, and yet no other run is in the same state.
#[test]
fn no_pair_with_a_step_of_a_clock_equals_another_one() {
    let hunt =
        "faults = 2\nkinds = [\"clock_step\"]\nof = \"m\"\nlatest = \"1.01s\"\nclock_step = \"..999ms\"";
    let scenario = scenario(&format!("{THREE}\n[hunt]\n{hunt}"));
    let hunted = quiet(Search::new(&scenario, 0).checkers(Vec::new()).jobs(2).budget(1_000_000));
    assert!(matches!(hunted.end, End::HoldsWithin), "{}", hunted.sentence());
    assert_eq!(hunted.left_out.same_state, 0);
}

/// Violated claims, from their files without faults: the checker that is violated, and the most
/// runs until then.
#[test]
fn violated_claims_are_found_without_the_faults_of_their_files() {
    for (path, variant, name, budget) in [
        ("single/wall_clock_step.toml", "one-try-half-a-second-before-the-end", "l1", 600),
        ("single/pause_beyond_lease.toml", "unfenced", "l3", 600),
        ("single/stalled_server.toml", "never-told", "l2", 600),
        ("redlock/pause_after_check.toml", "write-at-once", "l3", 1_500),
        ("permits/server_clock_step.toml", "ahead", "permits", 600),
    ] {
        let scenario = stock(path, variant);
        let checker = crate::judge::checker::Checker::named(name).expect("a checker");
        let search = Search::new(&scenario, 0).checkers(vec![checker]).jobs(2).budget(budget);
        let hunted = quiet(search);
        let found = hunted.found().unwrap_or_else(|| panic!("{path}: {}", hunted.sentence()));
        assert_eq!((found.checker, found.placed.len()), (name, 1), "{path}");
        assert_eq!(found.scenario.fault.len(), 1, "{path}: the faults of the file are left out");
    }
}

/// A promotion before the grant has reached the replica gives the lock to two owners, with one
/// fault instead of the two of the file.
#[test]
fn a_failover_that_loses_a_grant_is_found_by_a_promotion() {
    use crate::file::scenario::HuntedKind;
    let scenario = stock("single/async_failover.toml", "lag-of-50ms");
    let l1 = crate::judge::checker::Checker::named("l1").expect("a checker");
    let search = Search::new(&scenario, 0).checkers(vec![l1]).kinds(vec![HuntedKind::Promote]).budget(200);
    let hunted = quiet(search);
    let found = hunted.found().unwrap_or_else(|| panic!("{}", hunted.sentence()));
    assert!(found.placed[0].to_string().starts_with("promotion of r at "), "{}", found.placed[0]);
    assert!(found.scenario.fault.values().all(|fault| fault.promote.is_some()));
}

/// The first client gives its lock back at the end of the lease: it reads the key, and deletes it
/// if the token is its own. The deletion arrives half a millisecond before the request of the next
/// owner.
const RACE: &str = r#"
[node.m]
[network]
latency = "1ms"
[lock]
subject = "token-lock"
lease = "1s"
traits = { release = "get-then-delete" }
[client.c1]
steps = [{ at = "1s", try_acquire = {} }, { at = "1.9985s", release = {} }]
[client.c2]
steps = [{ at = "2.001s", try_acquire = {} }]
[run]
storm = "4s"
probe = false
[expect]
owner-safety = "holds"
"#;

/// The deletion comes after the request of the next owner, whose lock it deletes. No storm of
/// faults is needed: the network is as late as it may be.
#[test]
fn a_message_that_another_one_overtakes_is_found() {
    let hunt = |text: &str, keys: &str| {
        let scenario = scenario(&format!("{text}\n[hunt]\nkinds = [\"reorder\"]\n{keys}"));
        quiet(Search::new(&scenario, 0).jobs(2))
    };
    let hunted = hunt(RACE, "");
    let found = hunted.found().unwrap_or_else(|| panic!("{}", hunted.sentence()));
    let placed: Vec<String> = found.placed.iter().map(ToString::to_string).collect();
    assert_eq!(placed, ["message from c1 to m, sent at 2.0005s, 500.001us later"]);
    let plan = Plan::draw(&found.scenario, 0);
    let outcome = run(&plan, "replay", Engine::Event, TraceRetention::Nothing);
    let findings = checker::check(&outcome.history);
    let verdict = findings.iter().find(|found| found.checker == "owner-safety").map(|one| one.verdict.word());
    assert_eq!(verdict, Some("violated"), "the scenario that is printed is violated");
    for (keys, verdict) in [
        // No message may come so late.
        ("reorder = \"..500us\"", "holds"),
        ("reorder = \"..501us\"", "violated"),
        // The deletion is none of its messages, or begins too late.
        ("of = \"c2\"", "holds"),
        ("latest = \"2s\"", "holds"),
    ] {
        assert_eq!(hunt(RACE, keys).word(), verdict, "{keys}");
    }
    let right = RACE.replace("get-then-delete", "compare");
    assert_eq!(hunt(&right, "").word(), "holds", "one script reads and deletes");
}

/// A message arrives a nanosecond after the event that it is placed behind, also where an earlier
/// packet of its link holds it up. Regression: it came earlier by as much as it was held up.
#[test]
fn a_late_message_arrives_when_it_is_placed() {
    let text = "[node.m]\n[network]\nlatency = \"100us..5ms\"\n[lock]\nlease = \"2s\"\n[client.c]\ncount = 8\n\
                steps = [{ at = \"1s\", acquire = { wait = \"3s\" } }, { sleep = \"1ms\" }, { release = {} }]\n\
                [run]\nstorm = \"3s\"\nprobe = false\n[hunt]\nkinds = [\"reorder\"]\n";
    let scenario = scenario(text);
    let (mut placed, mut held_up) = (0, 0);
    for seed in 0..2 {
        let search = Search::new(&scenario, seed);
        let (_, base) = search.play(&[], TraceRetention::All);
        let moments = Moments::of(&base);
        let drawn = |of: &Placement| {
            let What::Reorder { from, to, .. } = &of.what else { panic!("{of}") };
            let mut messages = moments.messages();
            let message = messages.find(|one| (one.from, one.to, one.sent) == (from, to, of.at + BESIDE));
            message.expect("it is in the run").arrival
        };
        for placement in search.bounds().grid(&moments, None).run {
            let What::Reorder { from, to, by } = placement.what.clone() else { panic!("{placement}") };
            let arrival = drawn(&placement);
            let expected = arrival.drawn + std::time::Duration::from_nanos(by.unsigned_abs());
            let (_, outcome) = search.play(std::slice::from_ref(&placement), TraceRetention::All);
            let delayed = Moments::of(&outcome);
            let mut all = delayed.messages().filter(|one| one.from == from && one.to == to);
            let due = all.find(|one| one.sent == placement.at + BESIDE).map(|one| one.arrival.due);
            assert_eq!(due, Some(expected), "seed {seed}: {placement}");
            assert!(
                expected > arrival.due && expected <= placement.at + std::time::Duration::from_micros(5_001)
            );
            placed += 1;
            held_up += usize::from(arrival.due != arrival.drawn);
        }
    }
    assert!(placed > 20 && held_up > 0, "{held_up} of {placed}");
}

/// The same message is not late twice, so that two faults keep to the limit of one.
#[test]
fn two_faults_do_not_delay_one_message_beyond_its_limit() {
    let hunt = |limit: &str| {
        let keys = format!("faults = 2\nkinds = [\"reorder\"]\nof = \"c1\"\nreorder = \"{limit}\"");
        quiet(Search::new(&scenario(&format!("{RACE}\n[hunt]\n{keys}")), 0)).word()
    };
    assert_eq!((hunt("..300us"), hunt("..501us")), ("holds", "violated"));
}

/// Each placement is another order, and a right lock withstands all of them.
#[test]
fn messages_come_later_within_the_range_of_the_network() {
    let text = RACE.replace("\"1ms\"", "\"500us..3ms\"").replace("get-then-delete", "compare");
    let scenario = scenario(&format!("{text}\n[hunt]\nkinds = [\"reorder\"]"));
    for seed in 0..20 {
        let search = Search::new(&scenario, seed).jobs(2).to_the_end().keep_fingerprints();
        let hunted = quiet(search);
        assert!(matches!(hunted.end, End::HoldsWithin), "{}", hunted.sentence());
        assert_eq!(hunted.left_out.all(), 0);
        let distinct: std::collections::BTreeSet<_> = hunted.fingerprints.iter().collect();
        assert_eq!(distinct.len(), hunted.fingerprints.len(), "each order is another run");
    }
}

/// The node has no memory for a key, with or without a fault. Regression: a pause before the first
/// acquisition, without an effect, counted as the reason why no owner ever got the lock.
#[test]
fn faults_are_no_reason_for_a_lock_that_never_works() {
    let text = r#"
[node.m]
config = { maxmemory = "1", maxmemory-policy = "noeviction" }
[network]
latency = "1ms"
[lock]
subject = "token-lock"
lease = "1s"
[client.c1]
steps = [{ at = "1s", try_acquire = {} }, { at = "5s", acquire = { wait = "20s" } }]
[run]
storm = "4s"
calm = "30s"
progress = "2s"
[expect]
progress = "holds"
[hunt]
of = "m"
kinds = ["pause"]
latest = "2s"
"#;
    let scenario = scenario(text);
    let hunted = quiet(Search::new(&scenario, 0));
    assert!(matches!(hunted.end, End::HoldsWithin) && hunted.tried > 0, "{}", hunted.sentence());
    assert_eq!(hunted.untested, ["progress"]);
    assert_eq!(hunted.verdict(&scenario), Match::Undecided("no run put progress to the test".into()));
}
