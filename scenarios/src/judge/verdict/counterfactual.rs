//! What a verdict would have been otherwise.

use std::fmt;

/// What became of a verdict when something was taken away, or made less: a line of an answer.
///
/// ```
/// use lockstorm::judge::verdict::Counterfactual;
/// let line = Counterfactual::new("without the fault jump", "holds");
/// assert_eq!(line.to_string(), "without the fault jump: holds");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counterfactual {
    /// What was taken away, or made less.
    pub tried: String,
    /// What became of the verdict.
    pub verdict: String,
}

impl Counterfactual {
    /// A line of these two halves.
    pub fn new(tried: impl Into<String>, verdict: impl Into<String>) -> Self {
        Self { tried: tried.into(), verdict: verdict.into() }
    }
}

impl fmt::Display for Counterfactual {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.tried, self.verdict)
    }
}
