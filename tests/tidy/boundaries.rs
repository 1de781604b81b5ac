//! Each claim has a boundary with a formula, or a reason why it has none.

use std::collections::BTreeSet;

use lockstorm::{library, scenario};

/// Claims without a boundary, by the reason: no value of any key is one at which their verdict changes, or another claim has it.
const WITHOUT: &[(&str, &[&str])] = &[
    (
        "The number is how long a lock is not to be had. That is a measure, which [expect] bounds; the lock is safe at any value.",
        &[
            "fair/clock_behind.toml",
            "fair/dead_head.toml",
            "multi/extension_lost.toml",
            "multi/release_reaches_all.toml",
            "permits/handed_over.toml",
            "permits/holder_dies.toml",
            "read_write/downgrade_is_announced.toml",
            "read_write/leases_of_nested_writes.toml",
            "read_write/readers_that_died.toml",
            "read_write/upgrade_waits_for_itself.toml",
            "read_write/writer_among_readers.toml",
            "redlock/cut_off_after_each_grant.toml",
            "redlock/one_way_partition.toml",
            "redlock/refused_by_its_own_keys.toml",
            "redlock/restart_availability.toml",
            "sentinel/long_retry.toml",
            "sentinel/two_sentinels.toml",
            "single/leaked_hold.toml",
            "single/lost_acquire_reply.toml",
            "single/zombie_request.toml",
            "wake/key_events.toml",
            "wake/lost_message.toml",
            "wake/spin_needs_no_message.toml",
            "wake/subscriptions_end_in_failover.toml",
            "watchdog/lease_is_not_remembered.toml",
        ],
    ),
    (
        "The number is how many commands a hand-off costs: a measure, which grows with the clients and crosses nothing.",
        &["wake/herd.toml"],
    ),
    (
        "An algorithm does a thing or leaves it out (a second request after a lost reply, a look at the other keys, an end of the renewal): \
         each is a variant, and there is nothing between them.",
        &[
            "faster_multi/values_in_common.toml",
            "latch/lost_count_down_reply.toml",
            "latch/set_while_counted_down.toml",
            "latch/vanished.toml",
            "permits/lost_acquire_reply.toml",
            "rate/per_client.toml",
            "semaphore/holder_dies.toml",
            "semaphore/lost_acquire_reply.toml",
            "semaphore/lost_release_reply.toml",
            "semaphore/refused_without_replica.toml",
            "single/leaked_hold_of_other_kinds.toml",
            "single/script_replicates_whole.toml",
            "watchdog/outlives_release.toml",
        ],
    ),
    (
        "A setting decides (a quorum, a priority, durability, coverage, how many masters or acknowledgements there are), and the variants \
         have the whole numbers or words on both sides.",
        &[
            "cluster/full_coverage.toml",
            "cluster/two_masters.toml",
            "redlock/fsync_always.toml",
            "redlock/half_quorum.toml",
            "redlock/tokens_of_a_majority.toml",
            "sentinel/priority_beats_data.toml",
            "sentinel/priority_zero.toml",
            "sentinel/quorum_of_one.toml",
            "single/one_of_two_replicas.toml",
            "single/wait_for_replicas.toml",
        ],
    ),
    (
        "Which nodes see each other decides, or which of two events comes first; how far apart they are does not matter.",
        &[
            "cluster/slot_migration.toml",
            "sentinel/acknowledged_but_unseen.toml",
            "sentinel/leader_crashes_after_promotion.toml",
        ],
    ),
    (
        "The seed draws what happens, and [expect] has the share of the seeds, or the claim is that there is none.",
        &[
            "multi/opposite_orders.toml",
            "redlock/flapping_partitions.toml",
            "redlock/how_often.toml",
            "redlock/split_vote.toml",
        ],
    ),
    (
        "The claim is that it holds, whatever the values are.",
        &[
            "fair/crowd.toml",
            "fair/leases_that_end_by_themselves.toml",
            "fair/live_waiter.toml",
            "multi/one_limit_for_all.toml",
        ],
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
        &["fair/queue_lost_on_failover.toml", "redlock/failed_over_nodes.toml", "trial/failover.toml"],
    ),
    (
        "From which delay on a restart is harmless is the boundary of R9 (redlock/delayed_restart.toml).",
        &["redlock/restart.toml", "redlock/watchdog_without_quorum.toml"],
    ),
    (
        "From which step on a Sentinel distrusts its clock is a boundary of SN4 (sentinel/clock_steps_start_failover.toml); what that \
         costs is a measure, which [expect] bounds.",
        &["sentinel/tilt_delays_failover.toml"],
    ),
    (
        "How long an old master takes writes has its boundaries in SN1 and SN3 (sentinel/split_brain.toml, sentinel/healed_master.toml); for \
         how long a holder there is one of two is a measure, which [expect] bounds.",
        &["sentinel/holder_cut_off.toml"],
    ),
    (
        "An owner that asks the nodes is behind by as long as the answers take: any delay deceives it, and 10 s for longer.",
        &["redlock/validity_of_the_nodes.toml"],
    ),
    (
        "How many bytes a key takes decides when memory is used up, which says something of the allocator and nothing of locks.",
        &["single/eviction.toml"],
    ),
    (
        "The limiter keeps its rate by its own clock at any step; how many grants that is in true time is a measure, which [expect] has.",
        &["rate/server_clock_step.toml"],
    ),
];

/// What is wrong with a file of which this is known.
fn wrong(boundaries: usize, formulas: usize, reasons: usize) -> Option<&'static str> {
    match (boundaries, formulas, reasons) {
        (0, _, 0) => Some("has neither a boundary nor a reason in WITHOUT"),
        (0, _, 1) => None,
        (_, _, 2..) => Some("has two reasons in WITHOUT"),
        (_, _, 1) => Some("has a boundary, and is in WITHOUT"),
        (boundaries, formulas, 0) if formulas < boundaries => Some("has a boundary without a formula"),
        (_, _, 0) => None,
    }
}

#[test]
fn each_claim_has_a_boundary_with_a_formula_or_a_reason_for_none() {
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
        let reasons =
            WITHOUT.iter().flat_map(|(_, paths)| *paths).filter(|path| **path == stock.path).count();
        failed.extend(
            wrong(boundaries.len(), formulas, reasons).map(|wrong| format!("{} {wrong}", stock.path)),
        );
    }
    let unknown = WITHOUT.iter().flat_map(|(_, paths)| *paths).filter(|path| !claims.contains(**path));
    failed.extend(unknown.map(|path| format!("{path} is no stock scenario with a claim")));
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn a_claim_has_one_of_the_two_and_not_both() {
    for (boundaries, formulas, reasons, is_wrong) in [
        (0, 0, 0, true),
        (0, 0, 1, false),
        (0, 0, 2, true),
        (1, 0, 0, true),
        (1, 1, 0, false),
        (2, 1, 0, true),
        (2, 2, 0, false),
        (1, 1, 1, true),
    ] {
        let wrong = wrong(boundaries, formulas, reasons);
        assert_eq!(wrong.is_some(), is_wrong, "{boundaries} {formulas} {reasons}: {wrong:?}");
    }
}

#[test]
fn reasons_and_their_claims_are_sorted_and_read_as_sentences() {
    for (reason, paths) in WITHOUT {
        assert!(reason.ends_with('.') && paths.is_sorted() && !paths.is_empty(), "{reason}: {paths:?}");
    }
}
