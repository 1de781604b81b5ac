//! The sizes of faults: just below and just above the values that matter in a scenario.

use std::{collections::BTreeSet, time::Duration};

use serde_json::Value;

use crate::{
    file::scenario::{Algorithm, Hunt, HuntedKind, Scenario},
    units::{Draw, Span, UpTo},
};

/// The keys of a scenario whose values are leases and time-outs.
const KEYS: &[&str] = &[
    "lease",
    "wait",
    "response_timeout",
    "node_timeout",
    "sync_timeout",
    "synced_timeout",
    "fair_wait",
    "window",
    "delay",
    "down_after",
    "failover_timeout",
];

/// The time-out of replies of the production client, if the file names none.
const RESPONSE: Duration = Duration::from_secs(3);

/// The window of a rate limiter, if the file names none.
const WINDOW: Duration = Duration::from_secs(1);

/// The time by which a size is below or above a value: clocks of servers show milliseconds.
const MARGIN: Duration = Duration::from_millis(1);

/// The sizes of the faults of a hunt.
#[derive(Debug, Clone)]
pub(super) struct Sizes {
    values: BTreeSet<Duration>,
    longest: Duration,
    above: Duration,
}

impl Sizes {
    /// Reads the leases and time-outs of a scenario.
    pub(super) fn of(scenario: &Scenario) -> Sizes {
        let mut values = BTreeSet::new();
        let written = serde_json::to_value(scenario).unwrap_or_default();
        for group in ["lock", "client", "sentinel"] {
            collect(&written[group], &mut values);
        }
        for lock in scenario.lock.values() {
            if lock.lease.is_none() && lock.has_owners() {
                values.insert(lock.watchdog.0);
            }
            if lock.kind.is_rate() && lock.window.is_none() {
                values.insert(WINDOW);
            }
            if lock.subject.algorithm == Algorithm::Client && lock.response_timeout.is_none() {
                values.insert(RESPONSE);
            }
        }
        for node in scenario.node.values() {
            let timeout = node.config.get("cluster-node-timeout").and_then(|ms| ms.parse().ok());
            values.extend(timeout.map(Duration::from_millis));
        }
        values.retain(|value| !value.is_zero());
        let leases = scenario.lock.values().map(|lock| lock.lease.unwrap_or(lock.watchdog).0);
        let longest = leases.max().unwrap_or_default();
        // A grant needs a few messages after the end of the lease before it.
        let (Draw::Fixed(Span(latency)) | Draw::Range(_, Span(latency))) = scenario.network.latency;
        Sizes { values, longest, above: MARGIN + 4 * latency }
    }

    /// Returns the largest size of a kind.
    pub(super) fn limit(&self, kind: HuntedKind, hunt: &Hunt) -> Duration {
        let limit = match kind {
            HuntedKind::Pause | HuntedKind::Suspend => hunt.pause,
            HuntedKind::Crash => hunt.crash,
            HuntedKind::Cut => hunt.cut,
            HuntedKind::ClockStep => hunt.clock_step,
            HuntedKind::Restart | HuntedKind::Promote | HuntedKind::Reorder => return Duration::ZERO,
        };
        limit.map_or(2 * self.longest, |UpTo(Span(limit))| limit)
    }

    /// Returns the sizes of a kind up to its limit, the largest first; none for a kind without
    /// size.
    pub(super) fn up_to(&self, kind: HuntedKind, hunt: &Hunt) -> Vec<Duration> {
        let limit = self.limit(kind, hunt);
        let around = |value: &Duration| [value.saturating_sub(MARGIN), *value + self.above];
        let mut all: BTreeSet<Duration> = self.values.iter().flat_map(around).collect();
        all.insert(limit);
        all.into_iter().rev().filter(|size| !size.is_zero() && *size <= limit).collect()
    }
}

/// Collects the times at the keys that matter, below a value.
fn collect(value: &Value, times: &mut BTreeSet<Duration>) {
    match value {
        Value::Object(table) => {
            for (key, value) in table {
                match value.as_str().map(str::parse::<Draw<Span>>) {
                    Some(Ok(Draw::Fixed(Span(time)) | Draw::Range(_, Span(time))))
                        if KEYS.contains(&key.as_str()) =>
                    {
                        times.insert(time);
                    }
                    _ => collect(value, times),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, times)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::scenario::parse;

    #[test]
    fn sizes_are_around_leases_and_time_outs() {
        let text = "[node.m]\n[network]\nlatency = \"1ms\"\n[lock]\nlease = \"5s\"\nsubject = \"token-lock\"\n\
                    [client.c]\nsteps = [{ acquire = { wait = \"20s\" } }]\n[hunt]\npause = \"..8s\"";
        let source = parse("sizes.toml", text).unwrap_or_else(|error| panic!("{error}"));
        let scenario = &source.variants[0].scenario;
        let (sizes, hunt) = (Sizes::of(scenario), scenario.hunt.clone().expect("it is written"));
        let millis = |kind| sizes.up_to(kind, &hunt).iter().map(Duration::as_millis).collect::<Vec<_>>();
        assert_eq!(millis(HuntedKind::Pause), [8000, 5005, 4999]);
        assert_eq!(millis(HuntedKind::Cut), [10_000, 5005, 4999], "up to twice the lease");
        assert!(millis(HuntedKind::Restart).is_empty());
    }

    /// The times in milliseconds of a scenario with this lock, written or by default.
    #[test]
    fn a_time_that_the_file_does_not_write_has_its_default() {
        for (lock, times) in [
            ("subject = \"token-lock\"\nlease = \"5s\"", &[5_000][..]),
            ("subject = \"token-lock\"", &[30_000]),
            ("subject = \"token-lock\"\nwatchdog = \"9s\"", &[9_000]),
            ("lease = \"5s\"", &[3_000, 5_000]),
            ("lease = \"5s\"\nresponse_timeout = \"1s\"", &[1_000, 5_000]),
            ("kind = \"rate\"\npermits = 2", &[1_000, 3_000]),
            ("kind = \"rate\"\npermits = 2\nwindow = \"7s\"", &[3_000, 7_000]),
        ] {
            let steps = if lock.contains("rate") { "take = {}" } else { "try_acquire = {}" };
            let text = format!("[node.m]\n[lock]\n{lock}\n[client.c]\nsteps = [{{ {steps} }}]");
            let source = parse("sizes.toml", &text).unwrap_or_else(|error| panic!("{error}"));
            let sizes = Sizes::of(&source.variants[0].scenario);
            let values: Vec<_> = sizes.values.iter().map(Duration::as_millis).collect();
            assert_eq!(values, times, "{lock}");
        }
    }
}
