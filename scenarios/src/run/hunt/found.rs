//! The result of a search, and its words.

use std::collections::BTreeSet;

use serde::Serialize;

use super::{LeftOut, Placement};
use crate::{
    file::scenario::{HuntedKind, Scenario, word},
    judge::{
        checker::many,
        verdict::{Expectation, Match},
    },
};

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
    /// The fingerprint of each run with faults, if the search
    /// [keeps](super::Search::keep_fingerprints) them.
    #[serde(skip)]
    pub fingerprints: Vec<String>,
    /// True if the runs shared their beginnings.
    #[serde(skip)]
    pub is_shared: bool,
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

    /// Returns `"violated"`, `"holds"` or `"undecided"`. A search is undecided if its budget did
    /// not suffice, if it gave up runs, or if no run put a checker to the test.
    pub fn word(&self) -> &'static str {
        match &self.end {
            End::Violated(_) => "violated",
            End::HoldsWithin if self.untested.is_empty() => "holds",
            End::HoldsWithin | End::GivenUp | End::OutOfBudget => "undecided",
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
