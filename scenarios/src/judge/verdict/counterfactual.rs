//! The verdict that a changed scenario would have had.

use std::fmt;

/// The verdict after a part of the scenario was removed or weakened: a line of an answer.
///
/// ```
/// use lockstorm::judge::verdict::Counterfactual;
/// let line = Counterfactual::new("without the fault jump", "holds");
/// assert_eq!(line.to_string(), "without the fault jump: holds");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counterfactual {
    /// The change: the part that was removed or weakened.
    pub tried: String,
    /// The verdict after the change.
    pub verdict: String,
}

impl Counterfactual {
    /// Makes the line for a change and the verdict after it.
    pub fn new(tried: impl Into<String>, verdict: impl Into<String>) -> Self {
        Self { tried: tried.into(), verdict: verdict.into() }
    }
}

impl fmt::Display for Counterfactual {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.tried, self.verdict)
    }
}
