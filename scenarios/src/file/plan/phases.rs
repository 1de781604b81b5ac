//! The phases of a run: first the storm, then the calm.

use std::time::Duration;

use lockstorm_world::time::True;

use crate::{
    file::scenario::{Lock, PHASE_MAX, Scenario, StepEntry},
    judge::history::{Bounds, Probe},
    units::Span,
};

/// The end of the storm and the end of the run, in true time.
///
/// Safety is judged throughout. Progress is judged only after the storm: a lock that no client gets
/// during a partition is right, and a lock that no client gets after it is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Phases {
    /// The end of the storm. By default repeated faults do not begin after it, and faults with a
    /// length end here at the latest.
    pub(crate) storm_ends: True,
    /// The probe, which asks for the locks in the calm: its start, or the reason for its absence.
    /// `None` if no lock has owners.
    pub(crate) probe: Option<Probe>,
    /// The end of the run in true time: storm and calm together.
    pub(crate) ends: True,
}

impl Phases {
    pub(super) fn of(scenario: &Scenario) -> Phases {
        let storm_ends = True::ZERO + scenario.run.storm.0;
        let ends = storm_ends + calm(scenario);
        Phases { storm_ends, probe: probe(scenario, storm_ends, ends), ends }
    }
}

/// Returns the calm of the file, or one in which `progress` can be decided, if it is expected.
fn calm(scenario: &Scenario) -> Duration {
    let is_expected = scenario.expect.contains_key("progress");
    match (scenario.run.calm, longest_hold(scenario)) {
        (Some(Span(calm)), _) => calm,
        (None, Some(longest)) if is_expected => longest.saturating_add(bound(scenario)).min(PHASE_MAX.0),
        (None, _) => Duration::ZERO,
    }
}

/// Returns the longest lease of all locks; `None` if no lock has owners.
fn longest_hold(scenario: &Scenario) -> Option<Duration> {
    let owned = scenario.lock.values().filter(|lock| lock.has_owners());
    owned.map(|lock| longest_lease(scenario, lock)).max()
}

fn bound(scenario: &Scenario) -> Duration {
    scenario.run.progress.map_or(Bounds::default().progress, |Span(progress)| progress)
}

fn probe(scenario: &Scenario, storm_ends: True, ends: True) -> Option<Probe> {
    let longest = longest_hold(scenario)?;
    if !scenario.run.probe {
        return Some(Probe::Off);
    }
    if scenario.client.values().any(|client| client.code.is_some()) {
        return Some(Probe::NotOurs);
    }
    // An owner that is gone holds the lock for a whole lease. Before its end it is no surprise that
    // no other owner is granted the lock.
    let at = storm_ends + longest;
    if at < ends {
        return Some(Probe::From { at });
    }
    Some(Probe::TooShort { needs: longest + bound(scenario) })
}

/// Returns the longest time for which a client of the scenario holds a lock without renewal.
fn longest_lease(scenario: &Scenario, lock: &Lock) -> Duration {
    let scripts = scenario.client.values().flat_map(|client| {
        let lines = client.line.values().map(|line| &line.steps);
        lines.chain([&client.steps]).flatten()
    });
    let leases = scripts.filter_map(|step| lease_by(step, lock));
    let Span(longest) = leases.fold(lock.lease.unwrap_or(lock.watchdog), Span::max);
    longest
}

/// Returns the lease that a step asks for, if it is not the lock's own.
fn lease_by(step: &StepEntry, lock: &Lock) -> Option<Span> {
    let watchdog = |watchdog: bool| watchdog.then_some(lock.watchdog);
    let acquire = step.acquire.as_ref().and_then(|acquire| acquire.lease.or(watchdog(acquire.watchdog)));
    let attempt = step.try_acquire.as_ref().and_then(|attempt| attempt.lease.or(watchdog(attempt.watchdog)));
    let poll = step.poll.as_ref().and_then(|poll| poll.lease);
    acquire.or(attempt).or(poll).or(step.extend.as_ref().map(|extend| extend.lease))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::scenario::parse;

    fn probe_of(text: &str) -> Option<Probe> {
        let source = parse("phases.toml", text).unwrap_or_else(|error| panic!("{error}"));
        Phases::of(&source.variants[0].scenario).probe
    }

    /// The storm lasts ten seconds, and the default bound is sixty.
    #[test]
    fn the_laboratory_asks_when_the_longest_lease_is_over() {
        let at = |secs| Some(Probe::From { at: True::ZERO + Duration::from_secs(secs) });
        let too_short = |secs| Some(Probe::TooShort { needs: Duration::from_secs(secs) });
        let steps = "client.c.steps = [{ acquire = { lease = \"20s\" } }]";
        let watched = "client.c.steps = [{ acquire = { watchdog = true } }]";
        let line = "client.c.line.a.steps = [{ poll = { every = \"1s\", lease = \"7s\" } }, { extend = { lease = \"40s\" } }]";
        let rows = [
            ("", "60s", at(40)),
            ("lock.lease = \"5s\"", "60s", at(15)),
            (&*format!("lock.lease = \"5s\"\n{steps}"), "60s", at(30)),
            (&*format!("lock.lease = \"5s\"\n{watched}"), "60s", at(40)),
            (&*format!("lock.lease = \"5s\"\n{line}"), "60s", at(50)),
            ("", "30s", too_short(90)),
            ("", "0s", too_short(90)),
            ("run.progress = \"5s\"\nlock.lease = \"2s\"", "1s", too_short(7)),
            ("run.probe = false", "60s", Some(Probe::Off)),
            ("lock.kind = \"latch\"", "60s", None),
        ];
        for (text, calm, expected) in rows {
            let all = "node.m.config = {}\nclient.other.steps = []\nrun.storm = \"10s\"";
            let text = format!("{all}\nrun.calm = \"{calm}\"\n{text}");
            assert_eq!(probe_of(&text), expected, "{text}");
        }
    }

    #[test]
    fn the_calm_is_long_enough_for_progress_if_the_file_says_neither() {
        for (text, secs) in [
            ("", 10),
            ("expect.l1 = \"holds\"", 10),
            ("expect.progress = \"holds\"", 100),
            ("expect.progress = \"violated\"\nlock.lease = \"5s\"\nrun.progress = \"20s\"", 35),
            ("expect.progress = \"holds\"\nrun.calm = \"1s\"", 11),
            ("expect.progress = \"holds\"\nlock.lease = \"48h\"", 10 + 24 * 3_600),
            ("expect.progress = \"holds\"\nlock.kind = \"latch\"", 10),
        ] {
            let all = "node.m.config = {}\nclient.c.steps = []\nrun.storm = \"10s\"";
            let text = format!("{all}\n{text}");
            let source = parse("phases.toml", &text).unwrap_or_else(|error| panic!("{error}"));
            let phases = Phases::of(&source.variants[0].scenario);
            assert_eq!(phases.ends, True::ZERO + Duration::from_secs(secs), "{text}");
        }
    }
}
