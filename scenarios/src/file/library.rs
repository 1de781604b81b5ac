//! The stock scenarios, embedded in the binary, so that an installed `lockstorm claims` works in
//! any folder.

use std::path::Path;

use crate::file::scenario::{self, ScenarioError, Source, parse};

/// A scenario file that is embedded in the binary.
#[derive(Debug, Clone, Copy)]
pub struct Stock {
    /// The path below `scenarios/files/`, such as `redlock/restart.toml`.
    pub path: &'static str,
    /// The whole file as TOML, unparsed.
    pub text: &'static str,
}

macro_rules! stock {
    ($($path:literal,)*) => {
        &[$(Stock { path: $path, text: include_str!(concat!("../../files/", $path)) }),*]
    };
}

/// All stock scenarios, sorted by path.
pub const ALL: &[Stock] = stock![
    "cluster/crash_of_master.toml",
    "cluster/failed_election.toml",
    "cluster/full_coverage.toml",
    "cluster/manual_failover.toml",
    "cluster/minority_master.toml",
    "cluster/old_replica.toml",
    "cluster/returning_master.toml",
    "cluster/slot_migration.toml",
    "cluster/two_masters.toml",
    "fair/clock_ahead.toml",
    "fair/clock_behind.toml",
    "fair/crowd.toml",
    "fair/dead_head.toml",
    "fair/dead_together.toml",
    "fair/leases_that_end_by_themselves.toml",
    "fair/live_waiter.toml",
    "fair/queue_lost_on_failover.toml",
    "faster_multi/client_clock.toml",
    "faster_multi/values_in_common.toml",
    "generation/born_dead.toml",
    "generation/compare_commands.toml",
    "generation/durable_grant.toml",
    "generation/field_lease.toml",
    "generation/planned_failover.toml",
    "generation/rolling_upgrade.toml",
    "generation/script_eviction.toml",
    "generation/slot_migration.toml",
    "generation/wait_in_script.toml",
    "latch/lost_count_down_reply.toml",
    "latch/set_while_counted_down.toml",
    "latch/vanished.toml",
    "multi/extension_lost.toml",
    "multi/hand_over_hand.toml",
    "multi/mixed_kinds.toml",
    "multi/one_limit_for_all.toml",
    "multi/opposite_orders.toml",
    "multi/release_reaches_all.toml",
    "permits/client_clock.toml",
    "permits/handed_over.toml",
    "permits/holder_dies.toml",
    "permits/lost_acquire_reply.toml",
    "permits/server_clock_step.toml",
    "rate/client_clock.toml",
    "rate/fixed_windows.toml",
    "rate/per_client.toml",
    "rate/server_clock_step.toml",
    "read_write/downgrade_is_announced.toml",
    "read_write/leases_of_nested_writes.toml",
    "read_write/read_release_keeps_renewal.toml",
    "read_write/read_release_keeps_write_lease.toml",
    "read_write/readers_come_and_go.toml",
    "read_write/readers_that_died.toml",
    "read_write/upgrade_waits_for_itself.toml",
    "read_write/writer_among_readers.toml",
    "read_write/writer_wait_by_rounds.toml",
    "redlock/clock_drift.toml",
    "redlock/clock_jump.toml",
    "redlock/cut_off_after_each_grant.toml",
    "redlock/delayed_restart.toml",
    "redlock/extension_of_a_lost_lock.toml",
    "redlock/failed_over_nodes.toml",
    "redlock/flapping_partitions.toml",
    "redlock/fsync_always.toml",
    "redlock/fsync_everysec.toml",
    "redlock/half_quorum.toml",
    "redlock/how_often.toml",
    "redlock/jump_and_latency.toml",
    "redlock/jump_and_pause.toml",
    "redlock/jump_by_latency.toml",
    "redlock/late_extension_replies.toml",
    "redlock/lease_of_the_try.toml",
    "redlock/no_validity.toml",
    "redlock/one_way_partition.toml",
    "redlock/over_on_arrival.toml",
    "redlock/pause_after_check.toml",
    "redlock/pause_in_flight.toml",
    "redlock/refused_by_its_own_keys.toml",
    "redlock/restart.toml",
    "redlock/restart_availability.toml",
    "redlock/rolling_restart.toml",
    "redlock/split_vote.toml",
    "redlock/split_vote_in_time.toml",
    "redlock/suspend.toml",
    "redlock/tokens_of_a_majority.toml",
    "redlock/validity_of_the_nodes.toml",
    "redlock/watchdog_without_quorum.toml",
    "semaphore/holder_dies.toml",
    "semaphore/lost_acquire_reply.toml",
    "semaphore/lost_release_reply.toml",
    "semaphore/refused_without_replica.toml",
    "sentinel/acknowledged_but_unseen.toml",
    "sentinel/clock_steps_start_failover.toml",
    "sentinel/frozen_master.toml",
    "sentinel/healed_master.toml",
    "sentinel/holder_cut_off.toml",
    "sentinel/leader_crashes_after_promotion.toml",
    "sentinel/long_retry.toml",
    "sentinel/manual_failover.toml",
    "sentinel/priority_beats_data.toml",
    "sentinel/priority_zero.toml",
    "sentinel/quorum_of_one.toml",
    "sentinel/split_brain.toml",
    "sentinel/tilt_delays_failover.toml",
    "sentinel/two_sentinels.toml",
    "single/async_failover.toml",
    "single/del_without_token.toml",
    "single/eviction.toml",
    "single/fencing_token_regresses.toml",
    "single/fencing_tokens_run_back.toml",
    "single/given_up_while_granted.toml",
    "single/giving_back_one_level.toml",
    "single/grant_that_is_nearly_over_on_arrival.toml",
    "single/grant_that_is_over_on_arrival.toml",
    "single/granted_again.toml",
    "single/late_duplicate_release.toml",
    "single/late_grant_reply.toml",
    "single/late_request_of_a_crashed_client.toml",
    "single/late_write.toml",
    "single/late_write_by_delay.toml",
    "single/leaked_hold.toml",
    "single/leaked_hold_of_other_kinds.toml",
    "single/lock_delay.toml",
    "single/lost_acquire_reply.toml",
    "single/lost_release_reply.toml",
    "single/minority_master.toml",
    "single/nested_holds.toml",
    "single/one_of_two_replicas.toml",
    "single/pause_beyond_lease.toml",
    "single/replica_clock_skew.toml",
    "single/script_replicates_whole.toml",
    "single/stalled_server.toml",
    "single/string_lock.toml",
    "single/threads_of_one_client.toml",
    "single/tokens_of_many_grants.toml",
    "single/wait_for_replicas.toml",
    "single/wall_clock_step.toml",
    "single/zombie_request.toml",
    "storm/cluster.toml",
    "storm/fair_crashes.toml",
    "storm/fair_queue.toml",
    "storm/faster_multi.toml",
    "storm/fenced.toml",
    "storm/fenced_failover.toml",
    "storm/latch.toml",
    "storm/lease.toml",
    "storm/multi.toml",
    "storm/nested_holds.toml",
    "storm/permits.toml",
    "storm/rate.toml",
    "storm/read_write.toml",
    "storm/redlock.toml",
    "storm/refusals.toml",
    "storm/refusals_of_a_disk.toml",
    "storm/refusals_of_a_majority.toml",
    "storm/semaphore.toml",
    "storm/sentinel.toml",
    "storm/spin.toml",
    "storm/string.toml",
    "storm/two_locks.toml",
    "storm/watchdog.toml",
    "trial/crashed_holder.toml",
    "trial/cut_off_holder_knows.toml",
    "trial/extend_after_loss.toml",
    "trial/failover.toml",
    "trial/late_release.toml",
    "trial/lost_acquire_reply.toml",
    "trial/lost_extend_reply.toml",
    "trial/lost_release_reply.toml",
    "trial/one_at_a_time.toml",
    "trial/paused_holder_knows.toml",
    "trial/paused_release.toml",
    "trial/quorum.toml",
    "trial/quorum_pause.toml",
    "trial/watchdog.toml",
    "wake/herd.toml",
    "wake/key_events.toml",
    "wake/lost_message.toml",
    "wake/spin_needs_no_message.toml",
    "wake/subscribe_race.toml",
    "wake/subscriptions_end_in_failover.toml",
    "watchdog/blocked_runtime.toml",
    "watchdog/late_renewal_reply.toml",
    "watchdog/lease_is_not_remembered.toml",
    "watchdog/one_failed_renewal.toml",
    "watchdog/outlives_release.toml",
    "watchdog/partition_outlives_lease.toml",
    "watchdog/renewal_at_expiry.toml",
    "watchdog/told_of_loss.toml",
];

impl Stock {
    /// Returns the claim that it decides, or else the first line about it.
    pub fn title(&self) -> String {
        let Ok(source) = parse(self.path, self.text) else {
            return "(not a scenario)".to_owned();
        };
        let Some(variant) = source.variants.first() else { return String::new() };
        match &variant.scenario.claim {
            Some(claim) => format!("{}: {}", claim.id, claim.says),
            None => variant.scenario.about.lines().next().unwrap_or_default().to_owned(),
        }
    }
}

/// Returns the stock scenario with this path.
pub fn find(path: &str) -> Option<&'static Stock> {
    ALL.iter().find(|stock| stock.path == path)
}

/// Returns the stock scenarios in this folder.
pub fn below(folder: &Path) -> impl Iterator<Item = &'static Stock> + '_ {
    ALL.iter().filter(move |stock| Path::new(stock.path).parent() == Some(folder))
}

/// Reads a scenario file. If no file has this path, it reads the stock scenario with this path.
///
/// # Errors
/// When neither exists, or when it is not a scenario.
pub fn load(path: &Path) -> Result<Source, Box<ScenarioError>> {
    if path.exists() {
        return scenario::load(path);
    }
    let name = path.to_string_lossy();
    match find(&name) {
        Some(stock) => parse(stock.path, stock.text),
        None => {
            let folder = |stock: &Stock| stock.path.split('/').next().unwrap_or_default();
            let known = ALL.iter().map(folder).chain(ALL.iter().map(|stock| stock.path));
            Err(Box::new(ScenarioError::absent(&name, known)))
        }
    }
}
