//! The runs of `lockstorm run` counted, as a table with a row for each condition.

use super::out::outln;
use crate::{
    runner::{Runner, Stop},
    scenario::{Source, Variant},
    tally::{Row, Tally},
    verdict::Match,
};

/// Whether counting tells more than the runs one by one: a sweep compares conditions, and a share is of many runs.
pub(super) fn are_worth_counting(trial: &Runner<'_>) -> bool {
    let mut variants = trial.sources().iter().flat_map(|source| &source.variants);
    variants.any(|variant| !variant.point.is_empty() || has_share(variant))
}

pub(super) fn has_share(variant: &Variant) -> bool {
    variant.scenario.expect.values().any(|expected| expected.share.is_some())
}

/// Prints the table of each source, and says which shares are not as expected.
pub(super) fn print(trial: &Runner<'_>, tallies: &[Tally<'_>]) {
    for of_source in tallies.chunk_by(|one, other| one.source == other.source) {
        table(&trial.sources()[of_source[0].source], of_source);
        for tally in of_source {
            let name = if tally.variant.name.is_empty() { "as described" } else { &tally.variant.name };
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

/// How often a checker was violated, and between which shares that puts it.
fn cell(tally: &Tally<'_>, checker: &str) -> String {
    let Some(row) = tally.rows.iter().find(|row| row.checker == checker) else { return "-".to_owned() };
    format!("{} ({})", counted(row.violated.yes, row), row.interval)
}

/// The verdict that a share is about, and in how many runs it was that.
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
