//! The words of `wake-ups`: releases without a reaction.

use crate::judge::checker::{
    decision::Case,
    evidence::{Evidence, words},
    questions::wake_ups::{Because, Unanswered},
    wording::{Explain, Reason},
};

impl Reason for Because {
    fn sentence(&self, evidence: &Evidence<'_>) -> String {
        match self {
            Self::NoWaiter => evidence.unless_failed("No client waited for a release."),
            Self::Answered { releases, longest } => format!(
                "{} with a waiter, the slowest answered after {}.",
                words::many(*releases as usize, "release"),
                words::length(*longest)
            ),
        }
    }
}

impl Explain for Case<Unanswered> {
    fn summary(&self, evidence: &Evidence<'_>) -> String {
        let Unanswered { lock, released, .. } = self.wrong;
        let name = &evidence.history.lock(lock).name;
        let (released_at, length) = (words::instant(released), words::length(self.until.since(self.from)));
        if self.from == released {
            format!("`{name}` was released at {released_at} and no waiter tried again for {length}.")
        } else {
            let since = words::instant(self.from);
            format!(
                "`{name}` was released at {released_at}, and no waiter tried again for {length} after one that had stood still went on at {since}."
            )
        }
    }

    fn story(&self, _evidence: &Evidence<'_>) -> Vec<String> {
        vec![match self.wrong.message {
            Some((at, receivers)) => {
                format!(
                    "The node sent its message at {} to {}.",
                    words::instant(at),
                    words::many(receivers as usize, "subscriber")
                )
            }
            None => "The node sent no message.".to_owned(),
        }]
    }
}
