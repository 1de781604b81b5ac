//! The ruler of hunts: the number of runs until a hunt finds a mistake, beside that of a storm.
//!
//! Both place faults of the same kinds on the same hosts, of up to the same sizes. A hunt plays one
//! seed and places its faults at events. Each seed of a storm draws kind, hosts, start and length
//! of its faults. Starts lie between a second before the first call and the last event of the run
//! without faults, so a storm loses no faults to idle time.
//!
//! A violation counts only if the right lock withstands the same faults. A kind of fault that the
//! right lock does not withstand is left out of both.

use std::{collections::BTreeSet, ops::ControlFlow, time::Duration};

use lockstorm::{
    file::{
        fault::{ClockStep, Crash, Cut, Fault, Pause, Promote, Restart, Slow, Suspend},
        name::Name,
        plan::Plan,
        scenario::{Hunt, HuntedKind, Scenario},
    },
    judge::{
        checker::{Checker, check},
        history::EventKind,
        verdict::Verdict,
    },
    run::{
        Engine,
        hunt::{End, Hunted, Search, What},
        run,
        worklist::work_through,
    },
    units::{Draw, Span, Step},
};
use lockstorm_world::{Event, TraceRetention, time::True};

use crate::list::Bug;

/// The seed of a hunt.
const SEED: u64 = 0;

/// The kinds of faults that both may place.
const KINDS: [HuntedKind; 6] = [
    HuntedKind::Pause,
    HuntedKind::Suspend,
    HuntedKind::Crash,
    HuntedKind::Restart,
    HuntedKind::Cut,
    HuntedKind::ClockStep,
];

/// A storm's faults begin up to this long before the first call.
const BEFORE: Duration = Duration::from_secs(1);

/// The faults of scenarios that stay: circumstances without which a mistake shows in no run. Each
/// with the mistake and its checker.
const CIRCUMSTANCES: &[(&str, &str, &[&str])] = &[
    ("no-drift", "l2", &["c1-reaches-abc", "c2-reaches-cde"]),
    ("renew-without-quorum", "l2", &["c1-reaches-abc", "c2-reaches-cde"]),
    ("wait-result-ignored", "l1", &["failover"]),
    ("replicate_in_part", "progress", &["owner", "failover"]),
];

/// A mistake with the faults among which it is sought.
pub(crate) struct Ruled {
    pub(crate) checker: &'static Checker,
    broken: Scenario,
    right: Scenario,
    kinds: Vec<HuntedKind>,
    storm: Option<Storm>,
}

/// The limits of the faults that a storm draws.
struct Storm {
    hosts: Vec<String>,
    pairs: Vec<(String, String)>,
    /// The earliest and the latest start.
    starts: (Duration, Duration),
    longest: Duration,
}

impl Ruled {
    /// Returns `None` if the mistake needs no fault, or shows only in a measure, which a hunt does
    /// not read.
    pub(crate) fn of(bug: &Bug, case: &str) -> Option<Ruled> {
        if bug.expect.contains('{') {
            return None;
        }
        let scenario = |is_broken| {
            let mut scenario = bug.source(is_broken, case).variants[0].scenario.clone();
            let kept = |(broken, checker, _): &&(&str, &str, &[&str])| {
                (*broken, *checker) == (bug.broken.name(), bug.checker())
            };
            let kept = CIRCUMSTANCES.iter().find(kept).map_or(&[][..], |(.., names)| *names);
            let hunt = scenario.hunt.get_or_insert_with(|| Hunt { kinds: KINDS.to_vec(), ..Hunt::default() });
            hunt.keep.extend(kept.iter().map(|name| Name::new(*name)));
            // The other faults of the scenario are the decisive event, which both must find.
            let keep: BTreeSet<String> = hunt.keep.iter().map(|name| name.as_str().to_owned()).collect();
            scenario.fault.retain(|name, _| keep.contains(name));
            scenario
        };
        let checker = Checker::named(bug.checker())?;
        let (broken, right) = (scenario(true), scenario(false));
        let kinds = broken.hunt.as_ref().map_or(Vec::new(), |hunt| hunt.kinds.clone());
        let ruled = Ruled { checker, broken, right, kinds, storm: None };
        (!ruled.is_violated(&ruled.broken, SEED)).then_some(ruled)
    }

    /// Restricts both to some kinds of faults.
    pub(crate) fn among(self, kinds: &[HuntedKind]) -> Ruled {
        Ruled { kinds: kinds.to_vec(), ..self }
    }

    /// The most faults of one run.
    pub(crate) fn faults(&self) -> u32 {
        self.broken.hunt.as_ref().map_or(1, |hunt| hunt.faults)
    }

    /// Searches until a violation that the right lock does not share, and leaves out the kinds of
    /// faults of the others.
    pub(crate) fn hunt(&mut self, budget: u64, jobs: usize) -> Hunted {
        loop {
            let mut hunted = self.search(&self.broken, budget, jobs);
            let Some(found) = hunted.found() else { return hunted };
            let same = Scenario { fault: found.scenario.fault.clone(), ..self.right.clone() };
            let Some(last) = found.placed.last().filter(|_| self.is_violated(&same, SEED)) else {
                return hunted;
            };
            let kind = kind(&last.what);
            self.kinds.retain(|one| *one != kind);
            if self.kinds.is_empty() {
                hunted.end = End::HoldsWithin;
                return hunted;
            }
        }
    }

    /// Hunts for a violation by the right lock, among the kinds that are left.
    pub(crate) fn hunt_the_right_one(&self, budget: u64, jobs: usize) -> Hunted {
        self.search(&self.right, budget, jobs)
    }

    /// The kinds of faults that are left.
    pub(crate) fn kinds(&self) -> &[HuntedKind] {
        &self.kinds
    }

    fn search(&self, scenario: &Scenario, budget: u64, jobs: usize) -> Hunted {
        let mut scenario = scenario.clone();
        if let Some(hunt) = &mut scenario.hunt {
            hunt.kinds.clone_from(&self.kinds);
        }
        let search = Search::new(&scenario, SEED).checkers(vec![self.checker]);
        search.budget(budget).jobs(jobs).run(&|_| {})
    }

    /// Returns the number of seeds until one with this many faults is violated, and the right lock
    /// withstands them; `None` if none of the budget is.
    pub(crate) fn storm(&mut self, faults: u32, budget: u64, jobs: usize) -> Option<u64> {
        if self.storm.is_none() {
            self.storm = Some(self.limits());
        }
        let storm = self.storm.as_ref().filter(|_| !self.kinds.is_empty())?;
        let seeds: Vec<u64> = (0..budget).collect();
        let results = work_through(&seeds, jobs, |seed| {
            let mut dice = Dice(*seed);
            let drawn: Vec<Fault> = (0..faults).map(|_| storm.draw(&self.kinds, &mut dice)).collect();
            let under = |scenario: &Scenario| {
                let mut scenario = scenario.clone();
                for (number, fault) in drawn.iter().enumerate() {
                    scenario.fault.insert(format!("drawn{number}"), fault.clone());
                }
                self.is_violated(&scenario, *seed)
            };
            let is_found = under(&self.broken) && !under(&self.right);
            if is_found { ControlFlow::Break(true) } else { ControlFlow::Continue(false) }
        });
        results.last().copied().unwrap_or(false).then_some(results.len() as u64)
    }

    /// Reads the limits of a storm from a hunt of one run and from that run.
    fn limits(&self) -> Storm {
        let hosts = self.search(&self.broken, 1, 1).hosts;
        let plan = Plan::draw(&self.broken, SEED);
        let outcome = run(&plan, "ruler", Engine::Event, TraceRetention::All);
        let is_called = |kind: &EventKind| matches!(kind, EventKind::Invoke { .. });
        let events = &outcome.history.events;
        let first = events.iter().find(|event| is_called(&event.kind)).map(|event| event.at);
        let is_lived = |kind: &EventKind| matches!(kind, EventKind::Life { .. });
        let last = events.iter().filter(|event| !is_lived(&event.kind)).map(|event| event.at).max();
        let storm = self.broken.run.storm.0;
        let latest = last.map_or(storm, |last| last.since(True::ZERO).min(storm));
        let earliest = first.map_or(Duration::ZERO, |first| first.since(True::ZERO).saturating_sub(BEFORE));
        let mut pairs = BTreeSet::new();
        for record in &outcome.records {
            if let (Some((from, _)), Event::Packet { to, .. }) = (&record.host, &record.event)
                && [from, to].iter().any(|host| hosts.iter().any(|one| one.as_str() == &***host))
            {
                let (one, other) = if from < to { (from, to) } else { (to, from) };
                pairs.insert((one.to_string(), other.to_string()));
            }
        }
        let leases = self.broken.lock.values().map(|lock| lock.lease.unwrap_or(lock.watchdog).0);
        let longest = 2 * leases.max().unwrap_or_default();
        Storm { hosts, pairs: pairs.into_iter().collect(), starts: (earliest.min(latest), latest), longest }
    }

    /// Returns true if the checker is violated.
    fn is_violated(&self, scenario: &Scenario, seed: u64) -> bool {
        let plan = Plan::draw(scenario, seed);
        let history = run(&plan, "ruler", Engine::Event, TraceRetention::Nothing).history;
        let findings = check(&history);
        let mut of = findings.iter().filter(|finding| finding.checker == self.checker.name);
        of.any(|finding| matches!(finding.verdict, Verdict::Violated { .. }))
    }
}

impl Storm {
    /// Draws the kind and the hosts of a fault. The seed of the run draws its start and length.
    fn draw(&self, kinds: &[HuntedKind], dice: &mut Dice) -> Fault {
        let kind = *dice.one_of(kinds);
        let host = dice.one_of(&self.hosts).as_str();
        let longest = i64::try_from(self.longest.as_nanos()).unwrap_or(i64::MAX);
        let fault: Fault = match kind {
            HuntedKind::Pause => Pause(host.into()).into(),
            HuntedKind::Suspend => Suspend(host.into()).into(),
            HuntedKind::Crash => Crash(host.into()).into(),
            HuntedKind::Restart => Restart(host.into()).into(),
            // Of a host that is no replica it changes nothing.
            HuntedKind::Promote => Promote(host.into()).into(),
            HuntedKind::Cut => {
                let (one, other) = dice.one_of(&self.pairs);
                let (from, to, one_way) =
                    *dice.one_of(&[(one, other, false), (one, other, true), (other, one, true)]);
                Cut { from: from.as_str().into(), to: to.as_str().into(), one_way }.into()
            }
            HuntedKind::Reorder => {
                let (one, other) = dice.one_of(&self.pairs);
                let (from, to) = *dice.one_of(&[(one, other), (other, one)]);
                let by = Draw::Range(Span::millis(1), Span(self.longest));
                Slow { from: from.as_str().into(), to: to.as_str().into(), by }.into()
            }
            HuntedKind::ClockStep => {
                ClockStep { host: host.into(), by: Draw::Range(Step(-longest), Step(longest)) }.into()
            }
        };
        let is_of_a_moment =
            matches!(kind, HuntedKind::Restart | HuntedKind::ClockStep | HuntedKind::Promote);
        let length = Draw::Range(Span::millis(1), Span(self.longest));
        let (from, until) = self.starts;
        Fault {
            at: Some(Draw::Range(Span(from), Span(until))),
            length: (!is_of_a_moment).then_some(length),
            ..fault
        }
    }
}

fn kind(what: &What) -> HuntedKind {
    match what {
        What::Pause { .. } => HuntedKind::Pause,
        What::Suspend { .. } => HuntedKind::Suspend,
        What::Crash { .. } => HuntedKind::Crash,
        What::Restart { .. } => HuntedKind::Restart,
        What::Cut { .. } => HuntedKind::Cut,
        What::ClockStep { .. } => HuntedKind::ClockStep,
        What::Promote { .. } => HuntedKind::Promote,
        What::Reorder { .. } => HuntedKind::Reorder,
    }
}

/// Draws from a seed (SplitMix64).
struct Dice(u64);

impl Dice {
    /// # Panics
    /// If there is nothing to draw from.
    fn one_of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let number = mixed ^ (mixed >> 31);
        &all[(number % all.len() as u64) as usize]
    }
}
