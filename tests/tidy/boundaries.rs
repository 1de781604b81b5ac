//! Each claim has a boundary or a measure, with a formula, or a reason why it has none; and each claim of a trial has a control.

use std::collections::BTreeSet;

use lockstorm::{
    library, scenario,
    verdict::{Quantity, Range},
};

/// Claims without a boundary or a measure that has a formula, by the reason: no value of any key is one at which their verdict changes, or
/// another claim has it.
const WITHOUT: &[(&str, &[&str])] = &[
    (
        "The number is how long a lock is not to be had, which comes to nothing or lasts to the end of the run: [expect] bounds it.",
        &["redlock/refused_by_its_own_keys.toml"],
    ),
    (
        "An algorithm does a thing or leaves it out (a second request after a lost reply, a look at the other keys, an end of the renewal): \
         each is a variant, and there is nothing between them.",
        &[
            "faster_multi/values_in_common.toml",
            "latch/lost_count_down_reply.toml",
            "latch/set_while_counted_down.toml",
            "semaphore/lost_acquire_reply.toml",
            "semaphore/lost_release_reply.toml",
            "semaphore/refused_without_replica.toml",
            "single/script_replicates_whole.toml",
            "watchdog/outlives_release.toml",
        ],
    ),
    (
        "A setting decides (durability, how many acknowledgements there are), and the variants have the whole numbers or words on both \
         sides.",
        &[
            "redlock/fsync_always.toml",
            "redlock/tokens_of_a_majority.toml",
            "single/one_of_two_replicas.toml",
            "single/wait_for_replicas.toml",
        ],
    ),
    (
        "The seed draws what happens, and [expect] has the share of the seeds, or the claim is that there is none.",
        &["multi/opposite_orders.toml", "redlock/flapping_partitions.toml", "redlock/how_often.toml"],
    ),
    (
        "The claim is that it holds, whatever the values are.",
        &["fair/crowd.toml", "fair/leases_that_end_by_themselves.toml", "fair/live_waiter.toml"],
    ),
    (
        "What is on trial is a library, in real time, and a right one keeps the claim at any value.",
        &[
            "trial/crashed_holder.toml",
            "trial/cut_off_holder_knows.toml",
            "trial/extend_after_loss.toml",
            "trial/late_release.toml",
            "trial/lost_acquire_reply.toml",
            "trial/lost_release_reply.toml",
            "trial/one_at_a_time.toml",
            "trial/paused_holder_knows.toml",
            "trial/paused_release.toml",
            "trial/quorum.toml",
            "trial/quorum_pause.toml",
            "trial/watchdog.toml",
        ],
    ),
    (
        "A write that has not reached the replica when that is promoted is lost: the boundary is that of S4 (single/async_failover.toml).",
        &["fair/queue_lost_on_failover.toml", "trial/failover.toml"],
    ),
    (
        "From which delay on a restart is harmless is the boundary of R9 (redlock/delayed_restart.toml).",
        &["redlock/restart.toml"],
    ),
    (
        "How many bytes a key takes decides when memory is used up, which says something of the allocator and nothing of locks.",
        &["single/eviction.toml"],
    ),
];

/// What is wrong with a file of which this is known.
fn wrong(boundaries: usize, formulas: usize, measures: usize, reasons: usize) -> Option<&'static str> {
    match (boundaries + measures, reasons) {
        (0, 0) => Some("has neither a boundary nor a measure with a formula nor a reason in WITHOUT"),
        (0, 1) => None,
        (_, 2..) => Some("has two reasons in WITHOUT"),
        (_, 1) => Some("has a boundary or a measure with a formula, and is in WITHOUT"),
        (_, 0) if formulas < boundaries => Some("has a boundary without a formula"),
        (_, 0) => None,
    }
}

#[test]
fn each_claim_has_a_number_with_a_formula_or_a_reason_for_none() {
    let mut failed = Vec::new();
    let mut claims = BTreeSet::new();
    for stock in library::ALL {
        let source = scenario::parse(stock.path, stock.text).expect(stock.path);
        if source.claim().is_none() {
            continue;
        }
        claims.insert(stock.path);
        let boundaries: Vec<_> =
            source.conditions().into_iter().filter_map(|one| one.scenario.boundary.as_ref()).collect();
        let formulas = boundaries.iter().filter(|boundary| boundary.formula.is_some()).count();
        let measures = source.conditions().into_iter().map(|one| one.scenario.measure.len()).sum();
        let reasons =
            WITHOUT.iter().flat_map(|(_, paths)| *paths).filter(|path| **path == stock.path).count();
        failed.extend(
            wrong(boundaries.len(), formulas, measures, reasons)
                .map(|wrong| format!("{} {wrong}", stock.path)),
        );
    }
    let unknown = WITHOUT.iter().flat_map(|(_, paths)| *paths).filter(|path| !claims.contains(**path));
    failed.extend(unknown.map(|path| format!("{path} is no stock scenario with a claim")));
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// Whether a range says what a time comes to: it lies between two, and it is not nothing.
fn is_number(range: &Range) -> bool {
    let ends = (range.least, range.most);
    matches!(ends, (Some(Quantity::Time(least)), Some(Quantity::Time(_))) if !least.is_zero())
}

/// A time that a file knows on both sides follows from something, and that is its formula.
#[test]
fn no_claim_without_a_formula_knows_a_time() {
    let mut failed = Vec::new();
    for path in WITHOUT.iter().flat_map(|(_, paths)| *paths) {
        let Some(stock) = library::ALL.iter().find(|stock| stock.path == *path) else { continue };
        let source = scenario::parse(stock.path, stock.text).expect(stock.path);
        for condition in source.conditions() {
            for (checker, expected) in &condition.scenario.expect {
                let known = expected.measures.iter().filter(|(_, range)| is_number(range));
                failed.extend(known.map(|(measure, range)| {
                    format!("{path} expects {checker}.{measure} {range}: state its formula in [measure]")
                }));
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn a_time_is_known_between_two_that_are_not_nothing() {
    for (range, is_known) in [
        ("27s..28s", true),
        ("5s", true),
        ("0s..6s", false),
        ("0s", false),
        ("..6s", false),
        ("60s..", false),
        ("2..3", false),
    ] {
        assert_eq!(is_number(&range.parse().expect(range)), is_known, "{range}");
    }
}

#[test]
fn a_claim_has_one_of_the_two_and_not_both() {
    for (boundaries, formulas, measures, reasons, is_wrong) in [
        (0, 0, 0, 0, true),
        (0, 0, 0, 1, false),
        (0, 0, 0, 2, true),
        (1, 0, 0, 0, true),
        (1, 1, 0, 0, false),
        (2, 1, 0, 0, true),
        (2, 2, 0, 0, false),
        (1, 1, 0, 1, true),
        (0, 0, 1, 0, false),
        (0, 0, 1, 1, true),
        // A measure does not excuse a boundary without a formula.
        (1, 0, 1, 0, true),
    ] {
        let wrong = wrong(boundaries, formulas, measures, reasons);
        assert_eq!(wrong.is_some(), is_wrong, "{boundaries} {formulas} {measures} {reasons}: {wrong:?}");
    }
}

#[test]
fn reasons_and_their_claims_are_sorted_and_read_as_sentences() {
    for (reason, paths) in WITHOUT {
        assert!(reason.ends_with('.') && paths.is_sorted() && !paths.is_empty(), "{reason}: {paths:?}");
    }
}

/// A trial that no broken lock fails may be blind: a watchdog that never renews once kept T9, whose second client held the lock for no time.
#[test]
fn each_claim_of_a_trial_has_a_control() {
    // That every lock on one node is lost is the claim itself: it is found in each.
    const FOUND_IN_ALL: &[&str] = &["T11"];
    let listed = std::fs::read_to_string("trials/peers.toml").expect("the list of peers");
    let lines = listed.lines().filter_map(|line| line.strip_prefix("control = "));
    let controls: BTreeSet<&str> = lines.flat_map(|ids| ids.split('"').skip(1).step_by(2)).collect();
    let trials = library::ALL.iter().filter(|stock| stock.path.starts_with("trial/"));
    let sources: Vec<_> =
        trials.map(|stock| scenario::parse(stock.path, stock.text).expect(stock.path)).collect();
    let claims: BTreeSet<&str> =
        sources.iter().filter_map(|source| source.claim()).map(|claim| claim.id.as_str()).collect();
    let expected: BTreeSet<&str> = claims.into_iter().filter(|id| !FOUND_IN_ALL.contains(id)).collect();
    assert_eq!(controls, expected);
}
