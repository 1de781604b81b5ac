//! Counts of the runs of `lockstorm run`, as a table with a row for each condition.

use miette::{IntoDiagnostic, Result};
use serde::Serialize;

use super::out::outln;
use lockstorm::{
    file::scenario::{Coordinate, Source, Variant},
    judge::{checker::many, verdict::Match},
    run::{
        runner::{Runner, Stop},
        tally::{Row, Tally},
    },
};

/// Returns true if a table of counts helps: a sweep compares conditions, and a share needs many
/// runs.
pub(super) fn are_worth_counting(trial: &Runner<'_>) -> bool {
    let mut variants = trial.sources().iter().flat_map(|source| &source.variants);
    variants.any(|variant| !variant.point.is_empty() || has_share(variant))
}

pub(super) fn has_share(variant: &Variant) -> bool {
    variant.scenario.expect.values().any(|expected| expected.share.is_some())
}

/// Prints the table of each source, and the shares that are undecided or not as expected.
pub(super) fn print(trial: &Runner<'_>, tallies: &[Tally<'_>]) {
    for of_source in tallies.chunk_by(|one, other| one.source == other.source) {
        table(&trial.sources()[of_source[0].source], of_source);
        for tally in of_source {
            let name = tally.variant.title();
            let (ran, wanted) = (tally.runs as u64, trial.seeds_of(tally.variant));
            let wanted = wanted.end - wanted.start;
            if trial.stops() == Stop::WhenDecided && ran < wanted {
                outln!("  {name}: decided after {ran} of {wanted} seeds");
            }
            let (word, because) = match tally.verdict() {
                Match::AsExpected => continue,
                Match::Otherwise(because) => ("NOT AS EXPECTED", because),
                Match::Undecided(because) => ("UNDECIDED", because),
            };
            outln!("  {name}: {word}: {because}");
        }
    }
}

/// Prints a line of JSON for each condition and checker: the counts, the interval, and the verdict
/// about the expected share.
pub(super) fn print_json(trial: &Runner<'_>, tallies: &[Tally<'_>]) -> Result<()> {
    #[derive(Serialize)]
    struct Line<'a> {
        condition: String,
        #[serde(skip_serializing_if = "<[_]>::is_empty")]
        point: &'a [Coordinate],
        runs: usize,
        #[serde(flatten)]
        row: &'a Row,
    }
    for tally in tallies {
        for row in &tally.rows {
            let condition = trial.condition(tally.source, tally.variant);
            let line = Line { condition, point: &tally.variant.point, runs: tally.runs, row };
            outln!("{}", serde_json::to_string(&line).into_diagnostic()?);
        }
    }
    Ok(())
}

/// Summarizes the expected shares, to follow the summary of the runs. Empty if no share is
/// expected.
pub(super) fn shares(tallies: &[Tally<'_>]) -> String {
    let all: Vec<&Match> =
        tallies.iter().flat_map(|tally| &tally.rows).filter_map(|row| row.share.as_ref()).collect();
    let count = |is: fn(&Match) -> bool| all.iter().filter(|one| is(one)).count();
    if all.is_empty() {
        return String::new();
    }
    format!(
        "; of {} {} as expected, {} not, {} undecided",
        many(all.len(), "share"),
        count(|one| matches!(one, Match::AsExpected)),
        count(|one| matches!(one, Match::Otherwise(_))),
        count(|one| matches!(one, Match::Undecided(_))),
    )
}

fn table(source: &Source, tallies: &[Tally<'_>]) {
    let first = &tallies[0];
    let mut checkers: Vec<&str> = Vec::new();
    for row in tallies.iter().flat_map(|tally| &tally.rows) {
        if !checkers.contains(&&*row.checker) {
            checkers.push(&row.checker);
        }
    }
    let has_variants = tallies.iter().any(|tally| !tally.variant.of.is_empty());
    let axes = first.variant.point.iter().map(|at| at.axis.as_str());
    let head = has_variants.then_some("variant").into_iter().chain(axes);
    let head = head.map(str::to_owned).chain(checkers.iter().map(|checker| format!("{checker} violated")));
    let mut rows: Vec<Vec<String>> = vec![head.collect()];
    for tally in tallies {
        let variant = has_variants.then(|| tally.variant.of.clone());
        let at = tally.variant.point.iter().map(|at| at.value.clone());
        let counted = checkers.iter().map(|checker| cell(tally, checker));
        rows.push(variant.into_iter().chain(at).chain(counted).collect());
    }
    outln!("{}", source.file);
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    for row in &rows {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        outln!("  {}", cells.join("  ").trim_end());
    }
}

/// Formats the number of a checker's violations, and the interval of their share.
fn cell(tally: &Tally<'_>, checker: &str) -> String {
    let Some(row) = tally.rows.iter().find(|row| row.checker == checker) else { return "-".to_owned() };
    format!("{} ({})", counted(row.violated.yes, row), row.interval)
}

/// Returns the verdict that a share stands for, and its counts in words.
pub(super) fn share(row: &Row) -> (&'static str, String) {
    if row.violated.yes > 0 {
        ("violated", format!("in {}: {}", counted(row.violated.yes, row), row.interval))
    } else {
        ("holds", format!("in {}: violated in {}", counted(row.violated.no, row), row.interval))
    }
}

fn counted(yes: u64, row: &Row) -> String {
    let undecided = match row.violated.undecided {
        0 => String::new(),
        runs => format!(", {runs} undecided"),
    };
    format!("{yes} of {}{undecided}", row.violated.runs())
}
