//! What a checker finds in a history: holds, violated or undecided, in words and in numbers.
//!
//! Undecided is never a pass: a property that nothing put to the test was not shown.

mod counterfactual;
mod expectation;
mod quantity;
mod share;

use std::time::Duration;

use lockstorm_sim::time::True;
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
    /// What it asks.
    pub question: &'static str,
    /// The answer.
    pub verdict: Verdict,
    /// What was measured on the way, by name.
    pub measures: Vec<Measure>,
    /// By how much the times of the history may be off; none in virtual time.
    #[serde(skip)]
    pub tolerance: Duration,
}

/// One of three answers.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub enum Verdict {
    /// It was put to the test and held.
    Holds {
        /// What was seen, in a sentence.
        because: String,
    },
    /// It did not hold.
    Violated {
        /// The worst case.
        witness: Witness,
    },
    /// The history does not say.
    Undecided {
        /// Why not, in a sentence.
        because: String,
    },
}

/// A counterexample: a case that proves a violation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Witness {
    /// What was wrong, in one sentence.
    pub summary: String,
    /// How it came about, in reading order: the holders, from when until when by which clock, how a
    /// hold ended, and the faults of the causal chain.
    pub story: Vec<String>,
    /// When it began to be wrong, in nanoseconds of true time.
    #[serde(serialize_with = "nanos")]
    pub from: True,
    /// When it was over.
    #[serde(serialize_with = "nanos")]
    pub until: True,
    /// The lock.
    pub lock: Option<Lock>,
    /// The owners involved.
    pub owners: Vec<Owner>,
}

pub(crate) fn nanos<S: serde::Serializer>(at: &True, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_i64(at.as_nanos())
}

impl Verdict {
    /// It held, because.
    pub fn holds(because: impl Into<String>) -> Self {
        Self::Holds { because: because.into() }
    }

    /// It cannot be said, because.
    pub fn undecided(because: impl Into<String>) -> Self {
        Self::Undecided { because: because.into() }
    }

    /// The one word for it.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Holds { .. } => "holds",
            Self::Violated { .. } => "violated",
            Self::Undecided { .. } => "undecided",
        }
    }

    /// The sentence that goes with it.
    pub fn sentence(&self) -> &str {
        match self {
            Self::Holds { because } | Self::Undecided { because } => because,
            Self::Violated { witness } => &witness.summary,
        }
    }

    /// The case that shows a violation, if it is one.
    pub fn witness(&self) -> Option<&Witness> {
        if let Self::Violated { witness } = self { Some(witness) } else { None }
    }
}

impl Finding {
    /// What was measured under this name.
    pub fn measure(&self, name: &str) -> Option<Quantity> {
        self.measures.iter().find(|measure| measure.name == name).map(|measure| measure.quantity)
    }
}

/// By how much a machine may be late, in words.
pub(crate) fn lateness(tolerance: Duration) -> String {
    format!("the {} ms that a busy machine may be late", tolerance.as_millis())
}
