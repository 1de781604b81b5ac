//! The decision of a checker as data: which property, in which sense, shown by which events.
//! [`worded`](super::worded) puts it in words.

use lockstorm_world::time::True;

use crate::judge::{
    history::{Lock, Owner},
    verdict::Measure,
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
