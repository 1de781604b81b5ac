//! Many runs counted: under each condition, how often each checker was violated, and what so many runs can say.

use serde::Serialize;

use crate::{
    runner::{Judged, Runner},
    scenario::Variant,
    verdict::{CONFIDENCE, Count, Interval, Match},
};

/// What the runs of one variant came to.
#[derive(Debug, Clone)]
pub struct Tally<'a> {
    /// The number of the source.
    pub source: usize,
    /// The condition.
    pub variant: &'a Variant,
    /// How many runs there were.
    pub runs: usize,
    /// One row for each checker that something is expected of, in the order of the file, and one for each other that was violated
    /// under any condition of the same source.
    pub rows: Vec<Row>,
}

/// How often a checker was violated under one condition.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The checker.
    pub checker: String,
    /// The violations.
    pub violated: Count,
    /// Where the share of violations lies.
    pub interval: Interval,
    /// How sure the interval is, from 0.5 to 1.
    pub confidence: f64,
    /// Whether a share that the scenario expects came out so; `None` where it expects something of every run.
    pub share: Option<Match>,
}

/// Counts results, which are in the order in which a trial returns them.
pub fn tally<'a>(trial: &'a Runner<'_>, judged: &[Judged]) -> Vec<Tally<'a>> {
    let alike = judged.chunk_by(|one, other| one.case.shares_variant(&other.case));
    let mut violated: Vec<(usize, &'static str)> = Vec::new();
    for run in judged {
        let found = run.findings.iter().filter(|finding| finding.verdict.witness().is_some());
        violated.extend(found.map(|finding| (run.case.source, finding.checker)));
    }
    violated.sort_unstable();
    violated.dedup();
    let violated = |source| violated.iter().filter(move |(of, _)| *of == source).map(|(_, checker)| *checker);
    alike.map(|runs| of(trial.variant(runs[0].case), runs, violated(runs[0].case.source))).collect()
}

fn of<'a>(variant: &'a Variant, runs: &[Judged], violated: impl Iterator<Item = &'static str>) -> Tally<'a> {
    let expect = &variant.scenario.expect;
    let expected = expect.iter().map(|(checker, expected)| (checker.as_str(), Some(expected)));
    let violated = violated.filter(|checker| !expect.contains_key(*checker));
    let rows = expected.chain(violated.map(|checker| (checker, None))).map(|(checker, expected)| {
        let violated = Count::of(runs.iter().filter_map(|run| run.finding(checker)));
        let share = expected.and_then(|expected| expected.share_of(violated));
        let confidence = share.map_or(CONFIDENCE, |(share, _)| share.confidence);
        let judged = share.map(|(share, count)| share.judge(count));
        let checker = checker.to_owned();
        Row { checker, violated, interval: violated.interval(confidence), confidence, share: judged }
    });
    Tally { source: runs[0].case.source, variant, runs: runs.len(), rows: rows.collect() }
}

impl Tally<'_> {
    /// Whether every share came out as expected: the worst of the answers.
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
