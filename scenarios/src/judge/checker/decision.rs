//! The decision of a checker as data: which property, in which sense, shown by which events.
//! `wording` puts it in words.

use lockstorm_world::time::True;

use super::{Checker, evidence::Evidence};
use crate::judge::{
    history::{Lock, Owner},
    verdict::{Finding, Measure, Verdict, Witness, lateness},
};

/// The answer of a checker before it is put in words. `B` is why nothing is violated, `W` is a
/// violation.
pub(super) struct Decided<B, W> {
    pub(super) verdict: Decision<B, W>,
    pub(super) measures: Vec<Measure>,
}

/// A verdict as data.
pub(super) enum Decision<B, W> {
    Holds(B),
    Violated(Case<W>),
    Undecided(B),
    /// A violation only if the times of a run in real time are exact, which they may not be.
    Unsure(Case<W>),
    /// No violation, but the run did not reach its end.
    GivenUp,
}

impl<B, W> Decision<B, W> {
    /// Replaces the reason of a verdict without a violation.
    pub(super) fn map<C>(self, of: impl FnOnce(B) -> C) -> Decision<C, W> {
        match self {
            Self::Holds(because) => Decision::Holds(of(because)),
            Self::Undecided(because) => Decision::Undecided(of(because)),
            Self::Violated(case) => Decision::Violated(case),
            Self::Unsure(case) => Decision::Unsure(case),
            Self::GivenUp => Decision::GivenUp,
        }
    }
}

/// A counterexample as data.
pub(super) struct Case<W> {
    pub(super) wrong: W,
    pub(super) from: True,
    pub(super) until: True,
    pub(super) lock: Option<Lock>,
    pub(super) owners: Vec<Owner>,
}

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
