//! The words of `read-write`: grants beside a hold that they exclude.

use crate::judge::{
    checker::{
        decision::Case,
        evidence::{Evidence, words},
        questions::read_write::{Because, LetIn},
        wording::{Explain, Reason},
    },
    history::Mode,
};

impl Reason for Because {
    fn sentence(&self, _evidence: &Evidence<'_>) -> String {
        match self {
            Self::NoReadWriteLock => "No read-write lock is on trial.".to_owned(),
            Self::NoWriter => "No grant to write was seen.".to_owned(),
            Self::Grants([write, read]) => format!("Grants to write: {write}; to read: {read}."),
        }
    }
}

impl Explain for Case<LetIn> {
    fn summary(&self, evidence: &Evidence<'_>) -> String {
        let LetIn { node, owner, other, mode } = self.wrong;
        let history = evidence.history;
        format!(
            "{} let {} in to {} at {} while {} was in.",
            history.host_name(node),
            history.owner_name(owner),
            if mode == Mode::Exclusive { "write" } else { "read" },
            words::instant(self.from),
            history.owner_name(other)
        )
    }
}
