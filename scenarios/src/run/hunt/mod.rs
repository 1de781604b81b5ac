//! Searches for the faults that violate a scenario, instead of waiting for a seed that draws them.
//!
//! A run is a pure function of its plan. So the search plays a run without faults, and then places
//! faults just before and just after its *instants*: each message that is sent or arrives, each
//! recorded event, and each timer. A second fault is placed at the instants of the run with the
//! first. Sizes lie just below and just above the leases and time-outs of the file.
//!
//! Runs can share their beginnings (see [`Search::run_shared`]): a process plays the run without
//! faults, and forks where a fault begins.
//!
//! A placement that cannot differ from another one is left out (see [`LeftOut`]), so that a search
//! to the end shows that no placement within the bound violates anything. Placements in the causal
//! chains of grants and renewals are tried first, spread over kinds and hosts (`order.rs`).

mod crew;
mod found;
mod frame;
mod grid;
mod latencies;
mod moments;
mod order;
mod place;
mod sizes;
#[cfg(test)]
mod tests;
mod tree;

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::ControlFlow,
};

use lockstorm_world::{TraceRetention, time::True};
use serde::{Deserialize, Serialize};

use self::{
    crew::Crew,
    grid::{Bounds, First, Grid},
    latencies::Latencies,
    moments::{CHAIN, Moments, state},
    place::placed,
    sizes::Sizes,
};
use crate::{
    file::{
        plan::{Phases, Plan},
        scenario::{Hunt, HuntedKind, Scenario},
        selector::Selector,
    },
    judge::{
        checker::{self, Checker},
        history::{Ended, HostKind, Lock},
        verdict::Verdict,
    },
    run::{
        Engine, Outcome, run,
        worklist::{work_in_order, work_through},
    },
};

pub use crew::Lost;
pub use found::{End, Found, Hunted};
pub use grid::LeftOut;
pub use place::{Placement, What};

/// The number of runs of a search without a budget of its own.
pub const BUDGET: u64 = 10_000;

/// The number of first faults whose second faults are tried together. It does not depend on the
/// number of threads, so that the order of the runs does not either.
const TOGETHER: usize = 16;

/// The number of runs in the first batch of runs that share their beginnings, and by how much each
/// batch is larger than the one before. The larger a batch, the more its runs share; but the search
/// may end at any of them.
const BATCH: usize = 64;
const BATCH_GROWTH: usize = 4;

/// A search for a violation.
#[derive(Debug, Clone)]
#[must_use = "nothing runs until `run`"]
pub struct Search<'a> {
    scenario: &'a Scenario,
    seed: u64,
    hunt: Hunt,
    jobs: usize,
    budget: u64,
    checkers: Vec<&'static Checker>,
    brute: bool,
    /// True to continue after a violation.
    all: bool,
    keeps_fingerprints: bool,
    /// The locks that never worked in the run without faults.
    broken: Vec<Lock>,
}

/// The result of one run.
#[derive(Debug, Serialize, Deserialize)]
struct Tried {
    /// The violated checkers, by their index in the search, each with its violation in a sentence.
    violated: Vec<(usize, String)>,
    /// For each checker of the search, true if it held.
    held: Vec<bool>,
    is_given_up: bool,
    state: [u8; 32],
    simulated: f64,
    /// The fingerprint, if the search keeps fingerprints.
    fingerprint: Option<String>,
}

/// The counts of a search in progress.
struct Count<'a> {
    told: &'a (dyn Fn(f64) + Sync),
    left: u64,
    hunted: Hunted,
    held: Vec<bool>,
    /// The processes of a search whose runs share their beginnings.
    crew: Option<Crew>,
}

impl<'a> Search<'a> {
    /// Creates a search with the `[hunt]` of the scenario, on one thread. It looks for violations
    /// of the checkers that `[expect]` says hold, or else of those that it says are violated, or of
    /// all if the file expects nothing.
    pub fn new(scenario: &'a Scenario, seed: u64) -> Search<'a> {
        let some_hold = scenario.expect.values().any(|expected| expected.holds);
        let is_hunted = |checker: &&Checker| match scenario.expect.get(checker.name) {
            Some(expected) => expected.holds || !some_hold,
            None => scenario.expect.is_empty(),
        };
        let checkers = checker::LIST.iter().filter(is_hunted).collect();
        let hunt = scenario.hunt.clone().unwrap_or_default();
        let (brute, all, keeps_fingerprints) = Default::default();
        let broken = Vec::new();
        Search {
            scenario,
            seed,
            hunt,
            jobs: 1,
            budget: BUDGET,
            checkers,
            brute,
            all,
            keeps_fingerprints,
            broken,
        }
    }

    /// Sets the most faults of one run: one or two. Other numbers count as the nearer of them.
    pub fn faults(mut self, faults: u32) -> Search<'a> {
        self.hunt.faults = faults.clamp(1, 2);
        self
    }

    /// Sets the kinds of faults.
    pub fn kinds(mut self, kinds: Vec<HuntedKind>) -> Search<'a> {
        self.hunt.kinds = kinds;
        self
    }

    /// Sets the number of runs at a time. 0 is the same as 1.
    pub fn jobs(self, jobs: usize) -> Search<'a> {
        Search { jobs, ..self }
    }

    /// Sets the most runs.
    pub fn budget(self, budget: u64) -> Search<'a> {
        Search { budget, ..self }
    }

    /// Looks for violations of these checkers alone.
    pub fn checkers(self, checkers: Vec<&'static Checker>) -> Search<'a> {
        Search { checkers, ..self }
    }

    /// Runs every placement, also those that equal others: to compare the results.
    pub fn brute_force(self) -> Search<'a> {
        Search { brute: true, ..self }
    }

    /// Continues after a violation, to collect the [verdicts](Hunted::verdicts) of all runs.
    pub fn to_the_end(self) -> Search<'a> {
        Search { all: true, ..self }
    }

    /// Keeps the [fingerprints](Hunted::fingerprints) of all runs: to compare them.
    pub fn keep_fingerprints(self) -> Search<'a> {
        Search { keeps_fingerprints: true, ..self }
    }

    /// Searches until a violation, the end of the placements, or the end of the budget. Calls
    /// `told` with the simulated seconds of each run.
    ///
    /// # Panics
    /// Propagates a panic of any code that ran on a host.
    pub fn run(&self, told: &(dyn Fn(f64) + Sync)) -> Hunted {
        self.searched(None, told).expect("only processes are lost")
    }

    /// Searches like [`Search::run`], with the same result, in processes whose runs share their
    /// beginnings. The calling process must have one thread, because it is forked. On Linux a
    /// process with several threads plays whole runs instead.
    ///
    /// # Errors
    /// If a process dies before it has sent the result of its run.
    pub fn run_shared(&self, told: &(dyn Fn(f64) + Sync)) -> Result<Hunted, Lost> {
        self.searched(Crew::start(self), told)
    }

    fn searched(&self, crew: Option<Crew>, told: &(dyn Fn(f64) + Sync)) -> Result<Hunted, Lost> {
        let bounds = self.bounds();
        let is_shared = crew.is_some();
        let mut count = Count {
            told,
            left: self.budget.saturating_sub(1),
            held: vec![false; self.checkers.len()],
            crew,
            hunted: Hunted {
                checkers: self.checkers.iter().map(|checker| checker.name).collect(),
                faults: self.hunt.faults,
                kinds: self.hunt.kinds.clone(),
                hosts: bounds.hosts.clone(),
                seed: self.seed,
                instants: 0,
                in_chains: 0,
                placements: 0,
                tried: 0,
                left_out: LeftOut::default(),
                runs: 1,
                given_up: 0,
                untested: Vec::new(),
                verdicts: BTreeSet::new(),
                fingerprints: Vec::new(),
                is_shared,
                end: End::HoldsWithin,
            },
        };
        let (base, outcome) = self.play(&[], TraceRetention::All);
        told(base.simulated);
        let moments = Moments::of(&outcome);
        let with_faults = Search { broken: checker::never_worked(&outcome.history), ..self.clone() };
        drop(outcome);
        (count.hunted.instants, count.hunted.in_chains) = moments.count();
        self.note(&base, &mut count);
        count.hunted.end = match base.violated.first().filter(|_| !self.all) {
            Some(violated) => self.found(Vec::new(), violated),
            None => with_faults.search(&bounds, &moments, &base, &mut count)?,
        };
        if matches!(count.hunted.end, End::HoldsWithin) && count.hunted.given_up > 0 {
            count.hunted.end = End::GivenUp;
        }
        let of = self.checkers.iter().zip(&count.held).filter(|(_, held)| !**held);
        count.hunted.untested = of.map(|(checker, _)| checker.name).collect();
        Ok(count.hunted)
    }

    fn search(
        &self,
        bounds: &Bounds,
        moments: &Moments,
        base: &Tried,
        count: &mut Count<'_>,
    ) -> Result<End, Lost> {
        let grid = bounds.grid(moments, None);
        count.hunted.placements += grid.left_out.all();
        count.hunted.left_out.add(&grid.left_out);
        let singles: Vec<Vec<Placement>> = grid.run.iter().map(|one| vec![one.clone()]).collect();
        let keep = if self.hunt.faults > 1 { TraceRetention::All } else { TraceRetention::Nothing };
        let mut states = Vec::new();
        if let Some(end) = self.try_all(&singles, keep, count, &mut |tried| states.push(tried.state))? {
            return Ok(end);
        }
        if self.hunt.faults < 2 {
            return Ok(End::HoldsWithin);
        }
        self.second(bounds, &grid, &until(&grid.run, &states, base), count)
    }

    /// Tries second faults. `until` has for each first fault the latest start of a second one, if
    /// its run is in the state of another one later.
    fn second(
        &self,
        bounds: &Bounds,
        grid: &Grid,
        until: &[Option<True>],
        count: &mut Count<'_>,
    ) -> Result<End, Lost> {
        if !self.brute {
            count.leave_out_after(grid);
        }
        // First those of which both lie in the chains of good outcomes, then all others.
        let both = |first: &Placement, second: &Placement| {
            first.cost.mark.rank == CHAIN && second.cost.mark.rank == CHAIN
        };
        let firsts: Vec<(&Placement, Option<True>)> = grid.run.iter().zip(until.iter().copied()).collect();
        for in_chains in [true, false] {
            let chosen: Vec<_> = firsts
                .iter()
                .filter(|(first, _)| !in_chains || first.cost.mark.rank == CHAIN)
                .copied()
                .collect();
            for together in chosen.chunks(TOGETHER) {
                let together =
                    &together[..together.len().min(usize::try_from(count.left).unwrap_or(TOGETHER))];
                count.repeat(together.len());
                let told = count.told;
                let grids = work_through(together, self.jobs, |(first, until)| {
                    let (tried, outcome) = self.play(&[(*first).clone()], TraceRetention::All);
                    told(tried.simulated);
                    let first = First { placement: first, until: *until, dormant: &grid.dormant };
                    ControlFlow::Continue(bounds.grid(&Moments::of(&outcome), Some(first)))
                });
                let mut pairs = Vec::new();
                for ((first, _), mut second) in together.iter().zip(grids) {
                    second.run.retain(|second| both(first, second) == in_chains);
                    pairs.extend(second.run.into_iter().map(|second| vec![(*first).clone(), second]));
                    if !in_chains {
                        count.hunted.placements += second.left_out.all();
                        count.hunted.left_out.add(&second.left_out);
                    }
                }
                if let Some(end) = self.try_all(&pairs, TraceRetention::Nothing, count, &mut |_| {})? {
                    return Ok(end);
                }
                if count.left == 0 {
                    return Ok(End::OutOfBudget);
                }
            }
        }
        Ok(End::HoldsWithin)
    }

    /// Runs placements in order. Returns the end of the search if there is a violation, or if the
    /// budget does not suffice.
    fn try_all(
        &self,
        all: &[Vec<Placement>],
        keep: TraceRetention,
        count: &mut Count<'_>,
        take: &mut (dyn FnMut(&Tried) + Send),
    ) -> Result<Option<End>, Lost> {
        let within = all.len().min(usize::try_from(count.left).unwrap_or(usize::MAX));
        let (mut done, mut violated) = (0, None);
        let (told, mut crew) = (count.told, count.crew.take());
        let mut taken = |tried: Tried| {
            take(&tried);
            self.note(&tried, count);
            count.hunted.fingerprints.extend(tried.fingerprint);
            if let Some(violation) = tried.violated.first().filter(|_| !self.all) {
                violated = Some(self.found(all[done].clone(), violation));
            }
            done += 1;
            if violated.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let work = |faults: &Vec<Placement>| {
            let (tried, _) = self.play(faults, keep);
            told(tried.simulated);
            let is_last = !self.all && !tried.violated.is_empty();
            if is_last { ControlFlow::Break(tried) } else { ControlFlow::Continue(tried) }
        };
        match &mut crew {
            Some(crew) => self.try_shared(&all[..within], keep, crew, told, &mut taken)?,
            None => work_in_order(&all[..within], self.jobs, work, taken),
        }
        count.crew = crew;
        let done = done as u64;
        count.left -= done;
        count.hunted.runs += done;
        count.hunted.tried += done;
        count.hunted.placements += done;
        Ok(violated.or_else(|| (within < all.len()).then_some(End::OutOfBudget)))
    }

    /// Runs placements in batches that share their beginnings, and passes the results in the order
    /// of the placements.
    fn try_shared(
        &self,
        all: &[Vec<Placement>],
        keep: TraceRetention,
        crew: &mut Crew,
        told: &(dyn Fn(f64) + Sync),
        take: &mut dyn FnMut(Tried) -> ControlFlow<()>,
    ) -> Result<(), Lost> {
        let (mut rest, mut size) = (all, if self.all { all.len() } else { BATCH });
        while !rest.is_empty() {
            let (batch, later) = rest.split_at(rest.len().min(size));
            let (mut waiting, mut next, mut is_over) = (BTreeMap::new(), 0, false);
            crew.play(batch, keep, &self.broken, |run, tried: Tried| {
                told(tried.simulated);
                waiting.insert(run, tried);
                while let Some(tried) = waiting.remove(&next).filter(|_| !is_over) {
                    next += 1;
                    is_over = take(tried).is_break();
                }
                if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })?;
            if is_over {
                break;
            }
            (rest, size) = (later, size.saturating_mul(BATCH_GROWTH));
        }
        Ok(())
    }

    /// Plays the scenario with these faults in place of its own, and judges the run.
    fn play(&self, faults: &[Placement], keep: TraceRetention) -> (Tried, Outcome) {
        let plan = Plan::draw(&placed(self.scenario, faults), self.seed);
        let outcome = run(&plan, "hunt", Engine::Event, keep);
        (self.judge(&outcome, faults, keep), outcome)
    }

    /// Judges a run with these faults.
    fn judge(&self, outcome: &Outcome, faults: &[Placement], keep: TraceRetention) -> Tried {
        let findings = checker::check(&outcome.history);
        let verdict = |checker: &&Checker| {
            let found = findings.iter().find(|finding| finding.checker == checker.name);
            found.filter(|found| !checker::is_of_setup(found, &self.broken)).map(|found| &found.verdict)
        };
        let violated = self.checkers.iter().enumerate().filter_map(|(at, checker)| match verdict(checker) {
            Some(Verdict::Violated { witness }) => Some((at, witness.summary.clone())),
            _ => None,
        });
        let violated = violated.collect();
        let held = self.checkers.iter().map(|one| matches!(verdict(one), Some(Verdict::Holds { .. })));
        let held = held.collect();
        let is_given_up = outcome.history.header.ended != Ended::Complete;
        let simulated = outcome.history.header.end.as_nanos() as f64 / 1e9;
        let state = if keep == TraceRetention::All { state(outcome, faults) } else { [0; 32] };
        let fingerprint = self.keeps_fingerprints.then(|| outcome.fingerprint.clone());
        Tried { violated, held, is_given_up, state, simulated, fingerprint }
    }

    /// Counts a run.
    fn note(&self, tried: &Tried, count: &mut Count<'_>) {
        count.held.iter_mut().zip(&tried.held).for_each(|(held, now)| *held |= now);
        count.hunted.given_up += u64::from(tried.is_given_up);
        let names = tried.violated.iter().map(|(checker, _)| self.checkers[*checker].name);
        count.hunted.verdicts.insert(names.collect());
    }

    fn found(&self, placed_at: Vec<Placement>, (checker, summary): &(usize, String)) -> End {
        let scenario = Box::new(placed(self.scenario, &placed_at));
        let (checker, summary) = (self.checkers[*checker].name, summary.clone());
        End::Violated(Box::new(Found { placed: placed_at, checker, summary, scenario }))
    }

    fn bounds(&self) -> Bounds {
        let plan = Plan::draw(&placed(self.scenario, &[]), self.seed);
        let names = |is_meant: &dyn Fn(HostKind) -> bool| {
            let hosts = plan.hosts.iter().filter(|host| is_meant(host.software.kind()));
            hosts.map(|host| host.name.clone()).collect::<Vec<_>>()
        };
        let is_server = |kind| matches!(kind, HostKind::Node | HostKind::Sentinel);
        let hosts = match &self.hunt.of {
            None => names(&|kind| is_server(kind) || kind == HostKind::Client),
            Some(of) => {
                let selectors = of.names().iter().filter_map(|name| name.as_str().parse().ok());
                let mut all: Vec<String> = Vec::new();
                for selector in selectors {
                    let hosts = match selector {
                        Selector::Nodes => names(&|kind| kind == HostKind::Node),
                        Selector::Clients => names(&|kind| kind == HostKind::Client),
                        Selector::Sentinels => names(&|kind| kind == HostKind::Sentinel),
                        Selector::Named(name) => self.scenario.members(&name),
                        // A valid file has no other selector here.
                        _ => Vec::new(),
                    };
                    all.extend(hosts.into_iter().filter(|host| !all.contains(host)).collect::<Vec<_>>());
                }
                all
            }
        };
        let replicas = self.scenario.replicas_to_promote();
        let replicas = hosts.iter().filter(|host| replicas.contains(host)).cloned().collect();
        let (servers, sizes) = (names(&is_server), Sizes::of(self.scenario));
        let (latencies, phases): (Latencies, Phases) = (Latencies::of(&plan), plan.phases);
        let (hunt, brute) = (self.hunt.clone(), self.brute);
        Bounds { hunt, hosts, servers, replicas, sizes, latencies, phases, brute }
    }
}

/// Returns for each run the latest start of a second fault that could lead to a new state: `None`
/// for no limit. If the hosts of an earlier run had the same inputs at the same instants, both runs
/// are in the same state once the faults of both are over.
fn until(all: &[Placement], states: &[[u8; 32]], base: &Tried) -> Vec<Option<True>> {
    let mut seen = BTreeMap::from([(base.state, True::ZERO)]);
    let mut limits = Vec::new();
    for (placement, state) in all.iter().zip(states) {
        limits.push(seen.get(state).map(|ends| placement.ends.max(*ends)));
        seen.entry(*state).or_insert(placement.ends);
    }
    limits
}

impl Count<'_> {
    /// Counts runs that are repeated for their instants.
    fn repeat(&mut self, runs: usize) {
        self.left = self.left.saturating_sub(runs as u64);
        self.hunted.runs += runs as u64;
    }

    /// Counts the pairs whose first fault is left out: each equals the second fault alone, or a
    /// pair with the fault that equals the first.
    fn leave_out_after(&mut self, grid: &Grid) {
        let all = || grid.run.iter().chain(&grid.dormant).chain(&grid.twins);
        let mut sorted: Vec<&Placement> = all().collect();
        sorted.sort_by(|one, other| one.key().cmp(&other.key()));
        let before = |first: &Placement| sorted.partition_point(|one| one.key() <= first.key());
        let after = |first: &Placement| (sorted.len() - before(first)) as u64;
        let unseen: u64 = grid.dormant.iter().map(after).sum();
        let same_gap: u64 = grid.twins.iter().map(after).sum();
        self.hunted.placements += unseen + same_gap;
        self.hunted.left_out.unseen += unseen;
        self.hunted.left_out.same_gap += same_gap;
    }
}
