//! Reports for people: verdicts in words, a timeline, JSON and one page of HTML about a run, and a
//! page about all claims.
//!
//! A report shows the contents of a history and of the findings about it, and decides nothing.

mod chain;
mod drawing;
pub(crate) mod escape;
mod failed;
mod html;
mod json;
mod lanes;
mod messages;
mod scoreboard;
mod site;
mod text;
mod timeline;

use std::collections::BTreeMap;

use lockstorm_world::Record;

use crate::judge::{
    history::History,
    verdict::{Counterfactual, Expectation, Finding, Match},
};

pub use chain::{ChainShown, Link};
pub use failed::{FailedInRuns, failed_calls};
pub use scoreboard::{BoardClaim, CameOut, Cell, Runs, Scoreboard, Tried};
pub use site::{ClaimRow, Condition, FormulaRow, Mark, Site};
pub use timeline::timeline;

/// A finding with the scenario's expectation, as a report shows them together.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The finding of a checker.
    pub finding: Finding,
    /// The scenario's expectation of this checker; `None` if there is none.
    pub expected: Option<Expectation>,
    /// A line for each measure with a formula in the scenario: the measured value and the
    /// formula's.
    pub formulas: Vec<String>,
    /// The first measure that differs from its formula, and the difference; `None` if all agree.
    pub off: Option<String>,
}

impl Entry {
    /// Compares the finding with its expectation; `None` if there is no expectation.
    pub fn matched(&self) -> Option<Match> {
        self.expected.as_ref().map(|expected| match (expected.matches(&self.finding), &self.off) {
            (Match::AsExpected, Some(off)) => Match::Otherwise(off.clone()),
            (matched, _) => matched,
        })
    }
}

/// Adds to each finding the expectation of its checker, which `expected` finds by the checker's
/// name.
pub fn entries(findings: Vec<Finding>, expected: impl Fn(&str) -> Option<Expectation>) -> Vec<Entry> {
    let entry = |finding: Finding| {
        let expected = expected(finding.checker);
        Entry { finding, expected, formulas: Vec::new(), off: None }
    };
    findings.into_iter().map(entry).collect()
}

/// Returns the chain of each violation among these findings, by checker.
pub fn chains(history: &History, findings: &[Finding]) -> BTreeMap<&'static str, Vec<Link>> {
    let violated = findings.iter().filter_map(|finding| Some((finding, finding.verdict.witness()?)));
    let chains = violated.map(|(finding, witness)| (finding.checker, chain::lines(history, witness)));
    chains.filter(|(_, links)| !links.is_empty()).collect()
}

/// Adds the expectations that the history itself contains to the findings, like [`entries`].
///
/// # Errors
/// If an expectation cannot be read, or names an unknown checker.
pub fn own_entries(history: &History, findings: Vec<Finding>) -> Result<Vec<Entry>, String> {
    let read = |(checker, value): (&String, &serde_json::Value)| match serde_json::from_value(value.clone()) {
        Ok(expected) => Ok((checker.clone(), expected)),
        Err(error) => Err(format!("what is expected of `{checker}`: {error}")),
    };
    let expected: BTreeMap<String, Expectation> =
        history.header.expect.iter().map(read).collect::<Result<_, _>>()?;
    let known = |checker: &str| findings.iter().any(|finding| finding.checker == checker);
    if let Some(unknown) = expected.keys().find(|checker| !known(checker)) {
        return Err(format!("something is expected of `{unknown}`, which is no checker"));
    }
    Ok(entries(findings, |checker| expected.get(checker).cloned()))
}

/// A run with the findings of its checkers, to print as text or as a page.
#[derive(Debug, Clone, Copy)]
pub struct Report<'a> {
    /// The history of the run.
    pub history: &'a History,
    /// The findings, in the order to show them.
    pub entries: &'a [Entry],
    /// Every record of the run, packets included, from which the page draws messages; empty if the
    /// records were not kept.
    pub records: &'a [Record],
}

/// The causes of a violation, found by repeating the run without each candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Causes {
    /// The checker that found the violation.
    pub checker: &'static str,
    /// The verdict without each fault, clock error and delay.
    pub lines: Vec<Counterfactual>,
}

/// A picture of many runs, including this one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// The title, shown above the picture.
    pub title: String,
    /// The picture as an SVG element.
    pub svg: String,
}

/// Parts of a page besides the run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Besides<'a> {
    /// The plan of the run in words, with the values that the seed has drawn; empty if only the
    /// history is known.
    pub plan: &'a str,
    /// The causes of a violation; `None` if they were not searched for.
    pub causes: Option<&'a Causes>,
    /// The pictures of all the runs.
    pub pictures: &'a [Picture],
}

/// The outcome of a run as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// All expectations were met, and there was at least one.
    AsExpected,
    /// An expectation was not met.
    Otherwise,
    /// No expectation was missed, but one could not be decided.
    Undecided,
    /// There was no expectation.
    NothingExpected,
}

impl Report<'_> {
    /// Returns the outcome of the run as a whole.
    pub fn standing(&self) -> Standing {
        let matches: Vec<Match> = self.entries.iter().filter_map(Entry::matched).collect();
        if matches.is_empty() {
            Standing::NothingExpected
        } else if matches.iter().any(|one| matches!(one, Match::Otherwise(_))) {
            Standing::Otherwise
        } else if matches.iter().any(|one| matches!(one, Match::Undecided(_))) {
            Standing::Undecided
        } else {
            Standing::AsExpected
        }
    }
}

#[cfg(test)]
mod tests;
