//! The words of `commands`: the busiest second of a waiter.

use crate::judge::checker::{
    decision::Case,
    evidence::{Evidence, words},
    questions::commands::{Because, Burst},
    wording::{Explain, Reason},
};

impl Reason for Because {
    fn sentence(&self, evidence: &Evidence<'_>) -> String {
        match self {
            Self::NoTry => "No attempt to acquire a lock was seen.".to_owned(),
            Self::Busiest(burst) => format!(
                "The busiest second had {} by {}.",
                words::many(burst.tries, "try").replace("trys", "tries"),
                evidence.history.owner_name(burst.owner)
            ),
        }
    }
}

impl Explain for Case<Burst> {
    fn summary(&self, evidence: &Evidence<'_>) -> String {
        let history = evidence.history;
        let Burst { lock, owner, from, tries, .. } = self.wrong;
        format!(
            "{} asked {tries} times for `{}` within one second from {}; {} are allowed.",
            history.owner_name(owner),
            history.lock(lock).name,
            words::instant(from),
            history.header.bounds.attempts_per_second
        )
    }
}
