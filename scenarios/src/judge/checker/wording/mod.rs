//! The words of verdicts, one file per question. No other module of the checkers writes sentences
//! about a decision; `evidence::words` describes instants, promises, beliefs and faults for all.
//!
//! A question of `questions` decides; its file here implements [`Reason`] and [`Explain`] for the
//! data of the decision.

mod calls;
mod commands;
mod ending;
mod fairness;
mod hygiene;
mod l1_server;
mod l2_belief;
mod l3_effect;
mod l4_fenced;
mod latch;
mod lease;
pub(super) mod overlap;
mod owner_safety;
mod permits;
mod progress;
mod rate;
mod read_write;
mod reentrancy;
mod together;
mod waiting;
mod wake_ups;
mod windows;

use super::{
    Checker,
    decision::{Case, Decided, Decision},
    evidence::Evidence,
};
use crate::judge::verdict::{Finding, Verdict, Witness, lateness};

/// The words for the reason of a verdict without a violation.
pub(super) trait Reason {
    fn sentence(&self, evidence: &Evidence<'_>) -> String;
}

/// The words for a violation.
pub(super) trait Explain {
    fn summary(&self, evidence: &Evidence<'_>) -> String;

    /// Returns the course of events, without the faults, which [`Checker::ask`] adds.
    fn story(&self, _evidence: &Evidence<'_>) -> Vec<String> {
        Vec::new()
    }
}

impl<B: Reason, W> Decided<B, W>
where
    Case<W>: Explain,
{
    /// Puts the answer in words.
    pub(super) fn worded(self, checker: &Checker, evidence: &Evidence<'_>) -> Finding {
        let verdict = match self.verdict {
            Decision::Holds(because) => Verdict::holds(because.sentence(evidence)),
            Decision::Undecided(because) => Verdict::undecided(because.sentence(evidence)),
            Decision::GivenUp => Verdict::undecided(evidence.given_up().unwrap_or_default()),
            Decision::Unsure(case) => Verdict::undecided(format!(
                "{} It would not be so, had one of the two been earlier or later by {}.",
                case.summary(evidence),
                lateness(evidence.history.header.tolerance())
            )),
            Decision::Violated(case) => {
                let (summary, story) = (case.summary(evidence), case.story(evidence));
                let Case { from, until, lock, owners, .. } = case;
                Verdict::Violated { witness: Witness { summary, story, from, until, lock, owners } }
            }
        };
        checker.finding(verdict, self.measures)
    }
}
