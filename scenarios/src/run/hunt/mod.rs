//! Searches for the faults that violate a scenario, instead of waiting for a seed that draws them.
//!
//! A run is a pure function of its plan. So the search plays a run without faults, and then places
//! faults just before and just after its *instants*: each message that is sent or arrives, each
//! recorded event, and each timer. A second fault is placed at the instants of the run with the
//! first. Sizes lie just below and just above the leases and time-outs of the file.
//!
//! A placement that cannot differ from another one is left out (see [`LeftOut`]), so that a search
//! to the end shows that no placement within the bound violates anything. Placements in the causal
//! chains of grants and renewals are tried first.

mod grid;
mod moments;
mod place;
mod sizes;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::ControlFlow,
};

use lockstorm_world::{TraceRetention, time::True};
use serde::Serialize;

use self::{
    grid::{Bounds, First, Grid},
    moments::{CHAIN, Moments, state},
    place::placed,
    sizes::Sizes,
};
use crate::{
    file::{
        plan::{Phases, Plan},
        scenario::{Hunt, HuntedKind, Scenario, word},
        selector::Selector,
    },
    judge::{
        checker::{self, Checker, many},
        history::{Ended, HostKind, Lock},
        verdict::{Expectation, Match, Verdict},
    },
    run::{
        Engine, Outcome, run,
        worklist::{work_in_order, work_through},
    },
};

pub use grid::LeftOut;
pub use place::{Placement, What};

/// The number of runs of a search without a budget of its own.
pub const BUDGET: u64 = 10_000;

/// The number of first faults whose second faults are tried together. It does not depend on the
/// number of threads, so that the order of the runs does not either.
const TOGETHER: usize = 16;

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
    /// The locks that never worked in the run without faults.
    broken: Vec<Lock>,
}

/// The result of a search.
#[derive(Debug, Clone, Serialize)]
pub struct Hunted {
    /// The names of the checkers whose violation was sought.
    pub checkers: Vec<&'static str>,
    /// The most faults of one run.
    pub faults: u32,
    /// The kinds of faults.
    pub kinds: Vec<HuntedKind>,
    /// The hosts that faults could hit.
    pub hosts: Vec<String>,
    /// The seed of all runs.
    pub seed: u64,
    /// The number of instants of all hosts at which something happened in the run without faults.
    pub instants: usize,
    /// The number of those in the causal chains of good outcomes.
    pub in_chains: usize,
    /// The placements considered: those that were run and those left out.
    pub placements: u64,
    /// The placements that were run.
    pub tried: u64,
    /// The placements left out.
    pub left_out: LeftOut,
    /// The number of runs, including the run without faults and those that were repeated for their
    /// instants.
    pub runs: u64,
    /// The runs that were given up, such as one that never came to an end.
    pub given_up: u64,
    /// The checkers that no run put to the test.
    pub untested: Vec<&'static str>,
    /// The violated checkers of each run, each combination once.
    #[serde(skip)]
    pub verdicts: BTreeSet<Vec<&'static str>>,
    /// The outcome.
    #[serde(flatten)]
    pub end: End,
}

/// The outcome of a search.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub enum End {
    /// No placement within the bound violates anything.
    HoldsWithin,
    /// All placements were tried or left out, and none violates anything. But some runs were given
    /// up, and could have been violated later.
    GivenUp,
    /// A placement violates a checker.
    Violated(Box<Found>),
    /// The budget was used up before all placements were tried.
    OutOfBudget,
}

/// A violation.
#[derive(Debug, Clone, Serialize)]
pub struct Found {
    /// The faults; empty if the run without faults is violated.
    pub placed: Vec<Placement>,
    /// The name of the violated checker.
    pub checker: &'static str,
    /// The violation, in a sentence.
    pub summary: String,
    /// The scenario with the faults, which any command can run.
    #[serde(skip)]
    pub scenario: Box<Scenario>,
}

/// The result of one run.
struct Tried {
    /// The violated checkers of the search, each with its violation in a sentence.
    violated: Vec<(&'static str, String)>,
    /// For each checker of the search, true if it held.
    held: Vec<bool>,
    is_given_up: bool,
    state: [u8; 32],
    simulated: f64,
}

/// The counts of a search in progress.
struct Count<'a> {
    told: &'a (dyn Fn(f64) + Sync),
    left: u64,
    hunted: Hunted,
    held: Vec<bool>,
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
        let (brute, all, broken) = (false, false, Vec::new());
        Search { scenario, seed, hunt, jobs: 1, budget: BUDGET, checkers, brute, all, broken }
    }

    /// Sets the most faults of one run: one or two. Other numbers count as the nearer of them.
    pub fn faults(mut self, faults: u32) -> Search<'a> {
        self.hunt.faults = faults.clamp(1, 2);
        self
    }

    /// Sets the number of threads. 0 is the same as 1.
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

    /// Searches until a violation, the end of the placements, or the end of the budget. Calls
    /// `told` with the simulated seconds of each run.
    ///
    /// # Panics
    /// Propagates a panic of any code that ran on a host.
    pub fn run(&self, told: &(dyn Fn(f64) + Sync)) -> Hunted {
        let bounds = self.bounds();
        let mut count = Count {
            told,
            left: self.budget.saturating_sub(1),
            held: vec![false; self.checkers.len()],
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
                end: End::HoldsWithin,
            },
        };
        let (base, outcome) = self.play(&[], TraceRetention::All);
        told(base.simulated);
        let moments = Moments::of(&outcome);
        let with_faults = Search { broken: checker::never_worked(&outcome.history), ..self.clone() };
        drop(outcome);
        (count.hunted.instants, count.hunted.in_chains) = moments.count();
        count.note(&base);
        count.hunted.end = match base.violated.first().filter(|_| !self.all) {
            Some(violated) => self.found(Vec::new(), violated),
            None => with_faults.search(&bounds, &moments, &base, &mut count),
        };
        if matches!(count.hunted.end, End::HoldsWithin) && count.hunted.given_up > 0 {
            count.hunted.end = End::GivenUp;
        }
        let of = self.checkers.iter().zip(&count.held).filter(|(_, held)| !**held);
        count.hunted.untested = of.map(|(checker, _)| checker.name).collect();
        count.hunted
    }

    fn search(&self, bounds: &Bounds, moments: &Moments, base: &Tried, count: &mut Count<'_>) -> End {
        let grid = bounds.grid(moments, None);
        count.hunted.placements += grid.left_out.all();
        count.hunted.left_out.add(&grid.left_out);
        let singles: Vec<Vec<Placement>> = grid.run.iter().map(|one| vec![one.clone()]).collect();
        let keep = if self.hunt.faults > 1 { TraceRetention::All } else { TraceRetention::Nothing };
        let mut states = Vec::new();
        if let Some(end) = self.try_all(&singles, keep, count, &mut |tried| states.push(tried.state)) {
            return end;
        }
        if self.hunt.faults < 2 {
            return End::HoldsWithin;
        }
        self.second(bounds, &grid, &until(&grid.run, &states, base), count)
    }

    /// Tries second faults. `until` has for each first fault the latest start of a second one, if
    /// its run is in the state of another one later.
    fn second(&self, bounds: &Bounds, grid: &Grid, until: &[Option<True>], count: &mut Count<'_>) -> End {
        if !self.brute {
            count.leave_out_after(grid);
        }
        // First those of which both lie in the chains of good outcomes, then all others.
        let both =
            |first: &Placement, second: &Placement| first.cost.rank == CHAIN && second.cost.rank == CHAIN;
        let firsts: Vec<(&Placement, Option<True>)> = grid.run.iter().zip(until.iter().copied()).collect();
        for in_chains in [true, false] {
            let chosen: Vec<_> =
                firsts.iter().filter(|(first, _)| !in_chains || first.cost.rank == CHAIN).copied().collect();
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
                if let Some(end) = self.try_all(&pairs, TraceRetention::Nothing, count, &mut |_| {}) {
                    return end;
                }
                if count.left == 0 {
                    return End::OutOfBudget;
                }
            }
        }
        End::HoldsWithin
    }

    /// Runs placements in order. Returns the end of the search if there is a violation, or if the
    /// budget does not suffice.
    fn try_all(
        &self,
        all: &[Vec<Placement>],
        keep: TraceRetention,
        count: &mut Count<'_>,
        take: &mut (dyn FnMut(&Tried) + Send),
    ) -> Option<End> {
        let within = all.len().min(usize::try_from(count.left).unwrap_or(usize::MAX));
        let (mut done, mut violated) = (0, None);
        let told = count.told;
        let work = |faults: &Vec<Placement>| {
            let (tried, _) = self.play(faults, keep);
            told(tried.simulated);
            let is_last = !self.all && !tried.violated.is_empty();
            if is_last { ControlFlow::Break(tried) } else { ControlFlow::Continue(tried) }
        };
        work_in_order(&all[..within], self.jobs, work, |tried: Tried| {
            take(&tried);
            count.note(&tried);
            if let Some(violation) = tried.violated.first().filter(|_| !self.all) {
                violated = Some(self.found(all[done].clone(), violation));
            }
            done += 1;
            ControlFlow::Continue(())
        });
        let done = done as u64;
        count.left -= done;
        count.hunted.runs += done;
        count.hunted.tried += done;
        count.hunted.placements += done;
        violated.or_else(|| (within < all.len()).then_some(End::OutOfBudget))
    }

    /// Plays the scenario with these faults in place of its own, and judges the run.
    fn play(&self, faults: &[Placement], keep: TraceRetention) -> (Tried, Outcome) {
        let plan = Plan::draw(&placed(self.scenario, faults), self.seed);
        let outcome = run(&plan, "hunt", Engine::Event, keep);
        let findings = checker::check(&outcome.history);
        let verdict = |checker: &&Checker| {
            let found = findings.iter().find(|finding| finding.checker == checker.name);
            found.filter(|found| !checker::is_of_setup(found, &self.broken)).map(|found| &found.verdict)
        };
        let violated = self.checkers.iter().filter_map(|checker| match verdict(checker) {
            Some(Verdict::Violated { witness }) => Some((checker.name, witness.summary.clone())),
            _ => None,
        });
        let violated = violated.collect();
        let held = self.checkers.iter().map(|one| matches!(verdict(one), Some(Verdict::Holds { .. })));
        let held = held.collect();
        let is_given_up = outcome.history.header.ended != Ended::Complete;
        let simulated = outcome.history.header.end.as_nanos() as f64 / 1e9;
        let state = if keep == TraceRetention::All { state(&outcome, faults) } else { [0; 32] };
        (Tried { violated, held, is_given_up, state, simulated }, outcome)
    }

    fn found(&self, placed_at: Vec<Placement>, (checker, summary): &(&'static str, String)) -> End {
        let scenario = Box::new(placed(self.scenario, &placed_at));
        let summary = summary.clone();
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
        let (servers, sizes) = (names(&is_server), Sizes::of(self.scenario));
        let phases: Phases = plan.phases;
        Bounds { hunt: self.hunt.clone(), hosts, servers, sizes, phases, brute: self.brute }
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
    fn note(&mut self, tried: &Tried) {
        self.held.iter_mut().zip(&tried.held).for_each(|(held, now)| *held |= now);
        self.hunted.given_up += u64::from(tried.is_given_up);
        self.hunted.verdicts.insert(tried.violated.iter().map(|(checker, _)| *checker).collect());
    }

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

impl Hunted {
    /// Compares the result with the expectations of the scenario. A search that ended before it
    /// tried everything is undecided, and so is a checker that no run put to the test.
    pub fn verdict(&self, scenario: &Scenario) -> Match {
        let expected = |checker: &str| scenario.expect.get(checker).map(Expectation::word);
        match &self.end {
            End::Violated(found) if expected(found.checker) == Some("violated") => Match::AsExpected,
            End::Violated(_) => Match::Otherwise(self.sentence()),
            End::OutOfBudget | End::GivenUp => Match::Undecided(self.sentence()),
            End::HoldsWithin => {
                let missing = self.checkers.iter().find(|checker| expected(checker) == Some("violated"));
                match (missing, &self.untested[..]) {
                    (Some(checker), _) => Match::Otherwise(format!(
                        "{checker} was expected to be violated; {}",
                        self.sentence()
                    )),
                    (None, []) => Match::AsExpected,
                    (None, untested) => {
                        Match::Undecided(format!("no run put {} to the test", untested.join(", ")))
                    }
                }
            }
        }
    }

    /// Returns the violation, if there is one.
    pub fn found(&self) -> Option<&Found> {
        if let End::Violated(found) = &self.end { Some(found) } else { None }
    }

    /// Returns the bound in words, such as `up to 2 faults (pause, crash) of c1 and m`.
    pub fn bound(&self) -> String {
        let kinds: Vec<String> = self.kinds.iter().map(word).collect();
        let faults = match self.faults {
            1 => "one fault".to_owned(),
            faults => format!("up to {faults} faults"),
        };
        format!("{faults} ({}) of {}", kinds.join(", "), self.hosts.join(", "))
    }

    /// Returns the verdict in a sentence.
    pub fn sentence(&self) -> String {
        let runs = || many(usize::try_from(self.runs).unwrap_or(usize::MAX), "run");
        let placements = || many(usize::try_from(self.placements).unwrap_or(usize::MAX), "placement");
        match &self.end {
            End::HoldsWithin => {
                format!("holds within: {}, {}, of which {} were run", self.bound(), placements(), self.tried)
            }
            End::GivenUp => {
                format!(
                    "not decided: no violation in {}, but {} of them were given up",
                    runs(),
                    self.given_up
                )
            }
            End::Violated(found) => {
                format!("violated after {}: {}: {}", runs(), found.checker, found.summary)
            }
            End::OutOfBudget => format!(
                "not decided: no violation in {}, and the budget is used up: {} of {} so far were run",
                runs(),
                self.tried,
                placements()
            ),
        }
    }
}
