//! What a person gets to read: of a run verdicts in words, a timeline, JSON, and one page of HTML;
//! of all claims one page more.
//!
//! A report shows what is in a history and in the findings about it, and decides nothing.

mod chain;
mod drawing;
mod escape;
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

use lockstorm_sim::world::Record;

use crate::judge::{
    history::History,
    verdict::{Counterfactual, Expectation, Finding, Match},
};

pub use chain::{ChainShown, Link};
pub use failed::{failed_calls, failed_in_runs};
pub use scoreboard::{BoardClaim, CameOut, Cell, Scoreboard, Tried};
pub use site::{ClaimRow, Condition, FormulaRow, Mark, Site};
pub use timeline::timeline;

/// A finding with what was expected of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// What the checker found.
    pub finding: Finding,
    /// What the scenario expects, if it expects anything of this checker.
    pub expected: Option<Expectation>,
    /// Each of its measures that the scenario has a formula for, beside that, in a line.
    pub formulas: Vec<String>,
    /// The first measure that is not what its formula comes to, and in what.
    pub off: Option<String>,
}

impl Entry {
    /// Whether the finding is what was expected; `None` if nothing was.
    pub fn matched(&self) -> Option<Match> {
        self.expected.as_ref().map(|expected| match (expected.matches(&self.finding), &self.off) {
            (Match::AsExpected, Some(off)) => Match::Otherwise(off.clone()),
            (matched, _) => matched,
        })
    }
}

/// Findings with what was expected of each checker, by its name.
pub fn entries(findings: Vec<Finding>, expected: impl Fn(&str) -> Option<Expectation>) -> Vec<Entry> {
    let entry = |finding: Finding| {
        let expected = expected(finding.checker);
        Entry { finding, expected, formulas: Vec::new(), off: None }
    };
    findings.into_iter().map(entry).collect()
}

/// How each violation among these findings came about, by checker.
pub fn chains(history: &History, findings: &[Finding]) -> BTreeMap<&'static str, Vec<Link>> {
    let violated = findings.iter().filter_map(|finding| Some((finding, finding.verdict.witness()?)));
    let chains = violated.map(|(finding, witness)| (finding.checker, chain::lines(history, witness)));
    chains.filter(|(_, links)| !links.is_empty()).collect()
}

/// As [`entries`], with what the history itself says is expected.
///
/// # Errors
/// A description of the expectation that cannot be read or names an unknown checker.
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

/// A run with everything that was found about it.
#[derive(Debug, Clone, Copy)]
pub struct Report<'a> {
    /// What happened.
    pub history: &'a History,
    /// What was found, in the order to show it.
    pub entries: &'a [Entry],
    /// Every record of the run, packets too, from which the page draws messages; empty where they
    /// were not kept.
    pub records: &'a [Record],
}

/// Why a run was violated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Causes {
    /// Whose violation is meant.
    pub checker: &'static str,
    /// What became of the verdict without each fault, clock error and delay.
    pub lines: Vec<Counterfactual>,
}

/// A picture of many runs, this one among them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// What it shows.
    pub title: String,
    /// The picture.
    pub svg: String,
}

/// What a page shows besides the run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Besides<'a> {
    /// The plan of the run in words, with the values that the seed has drawn; empty where only the
    /// history is known.
    pub plan: &'a str,
    /// The causes of a violation, where they were looked for.
    pub causes: Option<&'a Causes>,
    /// What was drawn of all the runs.
    pub pictures: &'a [Picture],
}

/// How a run came out as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Everything that was expected came out so (and something was expected).
    AsExpected,
    /// Something came out otherwise.
    Otherwise,
    /// Nothing came out otherwise, but something expected could not be decided.
    Undecided,
    /// Nothing was expected.
    NothingExpected,
}

impl Report<'_> {
    /// How the run came out as a whole.
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
