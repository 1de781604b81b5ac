//! The finding of a checker about a history: holds, violated or undecided, in words and in numbers.
//!
//! Undecided is never a pass: a property that nothing put to the test was not shown.

mod counterfactual;
mod expectation;
mod quantity;
mod share;

use std::time::Duration;

use lockstorm_world::time::True;
use serde::Serialize;

use crate::judge::history::{Lock, Owner};

pub use counterfactual::Counterfactual;
pub use expectation::{Expectation, Match};
pub use quantity::{Measure, Quantity, Range};
pub use share::{CONFIDENCE, Count, Interval, Share, percent};

/// The answer to one question about one run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// The checker's name.
    pub checker: &'static str,
    /// The question that the checker decides.
    pub question: &'static str,
    /// *Holds*, *violated* or *undecided*, with its evidence.
    pub verdict: Verdict,
    /// The numbers that the checker measured.
    pub measures: Vec<Measure>,
    /// The largest possible error of the times in the history; zero in virtual time.
    #[serde(skip)]
    pub tolerance: Duration,
}

/// One of three answers.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub enum Verdict {
    /// The property was put to the test and held.
    Holds {
        /// The evidence, in a sentence.
        because: String,
    },
    /// The property did not hold.
    Violated {
        /// The worst case.
        witness: Witness,
    },
    /// The history does not decide the question.
    Undecided {
        /// The reason, in a sentence.
        because: String,
    },
}

/// A counterexample: a case that proves a violation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Witness {
    /// The violation, in one sentence.
    pub summary: String,
    /// The course of events, in reading order: the holders, the start and end of each hold and the
    /// clock that measured them, the end of a hold, and the faults of the causal chain.
    pub story: Vec<String>,
    /// The start of the violation, in nanoseconds of true time.
    #[serde(serialize_with = "nanos")]
    pub from: True,
    /// The end of the violation, in nanoseconds of true time.
    #[serde(serialize_with = "nanos")]
    pub until: True,
    /// The lock, if the violation is about one.
    pub lock: Option<Lock>,
    /// The owners involved.
    pub owners: Vec<Owner>,
}

pub(crate) fn nanos<S: serde::Serializer>(at: &True, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_i64(at.as_nanos())
}

impl Verdict {
    /// Returns the verdict *holds*; `because` is a sentence with the evidence.
    pub fn holds(because: impl Into<String>) -> Self {
        Self::Holds { because: because.into() }
    }

    /// Returns the verdict *undecided*; `because` is a sentence with the reason.
    pub fn undecided(because: impl Into<String>) -> Self {
        Self::Undecided { because: because.into() }
    }

    /// Returns the verdict as one word: `holds`, `violated` or `undecided`.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Holds { .. } => "holds",
            Self::Violated { .. } => "violated",
            Self::Undecided { .. } => "undecided",
        }
    }

    /// Returns the evidence, the reason, or the summary of the witness, by the verdict.
    pub fn sentence(&self) -> &str {
        match self {
            Self::Holds { because } | Self::Undecided { because } => because,
            Self::Violated { witness } => &witness.summary,
        }
    }

    /// Returns the counterexample, or `None` if nothing is violated.
    pub fn witness(&self) -> Option<&Witness> {
        if let Self::Violated { witness } = self { Some(witness) } else { None }
    }
}

impl Finding {
    /// Returns the measure of this name, or `None` if the checker has none.
    pub fn measure(&self, name: &str) -> Option<Quantity> {
        self.measures.iter().find(|measure| measure.name == name).map(|measure| measure.quantity)
    }
}

/// Describes the tolerance, the time by which a busy machine may be late.
pub(crate) fn lateness(tolerance: Duration) -> String {
    format!("the {} ms that a busy machine may be late", tolerance.as_millis())
}
