//! The words of `permits`: the promises of more permits than exist.

use crate::judge::checker::{
    decision::Case,
    evidence::{Evidence, words},
    questions::permits::{Because, TooMany},
    wording::{Explain, Reason},
};

/// The most promises that a story lists.
const LISTED_MAX: usize = 6;

impl Reason for Because {
    fn sentence(&self, evidence: &Evidence<'_>) -> String {
        match self {
            Self::NoSemaphore => "No semaphore is on trial.".to_owned(),
            Self::NoGrant => evidence.no_owner("No permit was ever granted."),
            Self::AtMost(most) => format!("{most} promised at once at most."),
        }
    }
}

impl Explain for Case<TooMany<'_>> {
    fn summary(&self, evidence: &Evidence<'_>) -> String {
        let TooMany { lock, out, allowed, .. } = self.wrong;
        format!(
            "{out} permits of `{}` were promised at {}, of {allowed} that there are.",
            evidence.history.lock(lock).name,
            words::instant(self.from)
        )
    }

    fn story(&self, evidence: &Evidence<'_>) -> Vec<String> {
        let listed = self.wrong.holding.iter().take(LISTED_MAX);
        listed.map(|promise| words::promise(evidence.history, promise)).collect()
    }
}
