//! The words of `fairness`: waiters that were overtaken or thrown out of the queue.

use crate::judge::checker::{
    decision::Case,
    evidence::{Evidence, words},
    questions::fairness::{Because, Unfair},
    wording::{Explain, Reason},
};

impl Reason for Because {
    fn sentence(&self, _evidence: &Evidence<'_>) -> String {
        let sentence = match self {
            Self::NoOrder => "The lock promises no order.",
            Self::NoQueue => "No owner ever queued behind another.",
            Self::InOrder => "Each grant was in the order of the queue.",
        };
        sentence.to_owned()
    }
}

impl Explain for Case<Unfair> {
    fn summary(&self, evidence: &Evidence<'_>) -> String {
        let (name, at) = (evidence.history.owner_name(self.wrong.waiter), words::instant(self.from));
        match self.wrong.by {
            Some(by) => {
                let by = evidence.history.owner_name(by);
                format!("{by} got the lock at {at} although {name} stood before it.")
            }
            None => format!("{name} was thrown out of the queue at {at} although it still waited."),
        }
    }

    fn story(&self, _evidence: &Evidence<'_>) -> Vec<String> {
        let Unfair { overtakes, swept, .. } = self.wrong;
        vec![format!("In all {}; live waiters thrown out: {swept}.", words::many(overtakes, "overtake"))]
    }
}
