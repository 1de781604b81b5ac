//! Counts the violations of each checker over many runs under each condition, with the interval
//! that this number of runs allows.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{
    file::scenario::Variant,
    judge::verdict::{CONFIDENCE, Count, Interval, Match},
    run::runner::{Case, Judged, Runner},
};

/// The counts of the runs of one variant.
#[derive(Debug, Clone)]
pub struct Tally<'a> {
    /// The index of the scenario file in [`Runner::sources`].
    pub source: usize,
    /// The variant, or point of a sweep, of all counted runs.
    pub variant: &'a Variant,
    /// The number of runs.
    pub runs: usize,
    /// A row for each checker with an expectation, in the order of the file, one for the checker
    /// that the scenario plots, and one for each other checker that was violated under any
    /// condition of the same source.
    pub rows: Vec<Row>,
}

/// The counts of one checker under one condition.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The name of the checker, as in `[expect]`.
    pub checker: String,
    /// The number of violations among the runs that the checker decided.
    pub violated: Count,
    /// The interval of the share of violations.
    pub interval: Interval,
    /// The confidence of the interval, from 0.5 to 1.
    pub confidence: f64,
    /// The comparison with the share that the scenario expects. `None` if it expects no share.
    pub share: Option<Match>,
}

/// Counts results, which must be in the order in which a trial returns them.
pub fn tally<'a>(trial: &'a Runner<'_>, judged: &[Judged]) -> Vec<Tally<'a>> {
    let mut counter = Counter::default();
    for run in judged {
        for finding in &run.findings {
            counter.add(run.case, finding.checker, Count::of([finding]));
        }
    }
    counter.tallies(trial)
}

/// Counts runs one by one, without keeping them.
#[derive(Debug, Clone, Default)]
pub struct Counter {
    /// By source and variant.
    variants: BTreeMap<(usize, usize), Counted>,
}

#[derive(Debug, Clone, Default)]
struct Counted {
    /// The seed of the run that was added last. Findings about one run must be adjacent.
    seed: Option<u64>,
    runs: usize,
    checkers: BTreeMap<&'static str, Count>,
}

impl Counter {
    /// Counts a checker's finding in a run. All findings of one run must be added before those of
    /// the next.
    pub fn add(&mut self, case: Case, checker: &'static str, found: Count) {
        let counted = self.variants.entry((case.source, case.variant)).or_default();
        if counted.seed != Some(case.seed) {
            counted.seed = Some(case.seed);
            counted.runs += 1;
        }
        *counted.checkers.entry(checker).or_default() += found;
    }

    /// Returns the counts of each variant.
    pub fn tallies<'a>(&self, trial: &'a Runner<'_>) -> Vec<Tally<'a>> {
        let mut violated: Vec<(usize, &'static str)> = Vec::new();
        for ((source, _), counted) in &self.variants {
            let of = counted.checkers.iter().filter(|(_, count)| count.yes > 0);
            violated.extend(of.map(|(checker, _)| (*source, *checker)));
        }
        violated.sort_unstable();
        violated.dedup();
        let tallies = self.variants.iter().map(|(&(source, variant), counted)| {
            let others = violated.iter().filter(|(of, _)| *of == source).map(|(_, checker)| *checker);
            of(source, &trial.sources()[source].variants[variant], counted, others)
        });
        tallies.collect()
    }
}

fn of<'a>(
    source: usize,
    variant: &'a Variant,
    counted: &Counted,
    violated: impl Iterator<Item = &'a str>,
) -> Tally<'a> {
    let expect = &variant.scenario.expect;
    let expected = expect.iter().map(|(checker, expected)| (checker.as_str(), Some(expected)));
    // The plotted checker has a row even if it was never violated.
    let plotted = variant.scenario.plot.as_deref().filter(|checker| !expect.contains_key(*checker));
    let violated = violated.filter(|checker| !expect.contains_key(*checker) && Some(*checker) != plotted);
    let others = plotted.into_iter().chain(violated).map(|checker| (checker, None));
    let rows = expected.chain(others).map(|(checker, expected)| {
        let violated = counted.checkers.get(checker).copied().unwrap_or_default();
        let share = expected.and_then(|expected| expected.share_of(violated));
        let confidence = share.map_or(CONFIDENCE, |(share, _)| share.confidence);
        let judged = share.map(|(share, count)| share.judge(count));
        let checker = checker.to_owned();
        Row { checker, violated, interval: violated.interval(confidence), confidence, share: judged }
    });
    Tally { source, variant, runs: counted.runs, rows: rows.collect() }
}

impl Tally<'_> {
    /// Returns the worst comparison of all expected shares.
    pub fn verdict(&self) -> Match {
        let shares = || self.rows.iter().filter_map(|row| row.share.as_ref().map(|share| (row, share)));
        let named = |row: &Row, because: &str| format!("{}: {because}", row.checker);
        let otherwise = shares().find_map(|(row, share)| match share {
            Match::Otherwise(because) => Some(Match::Otherwise(named(row, because))),
            _ => None,
        });
        let undecided = || {
            shares().find_map(|(row, share)| match share {
                Match::Undecided(because) => Some(Match::Undecided(named(row, because))),
                _ => None,
            })
        };
        otherwise.or_else(undecided).unwrap_or(Match::AsExpected)
    }
}
