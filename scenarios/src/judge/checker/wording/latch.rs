//! The words of `latch`: openings, passages, lost count-downs and waiters that were kept.

use crate::judge::checker::{
    decision::Case,
    evidence::{Evidence, words},
    questions::latch::{Because, Wrong},
    wording::{Explain, Reason},
};

impl Reason for Because {
    fn sentence(&self, _evidence: &Evidence<'_>) -> String {
        match self {
            Self::NoLatch => "No latch is on trial.".to_owned(),
            Self::NoWait => "No owner waited for the latch.".to_owned(),
            Self::NoCalm => "The storm never ended.".to_owned(),
            Self::Waits(waits, longest) => format!(
                "{} for a latch, none longer than {} for one that was open.",
                words::many(*waits, "wait"),
                words::length(*longest)
            ),
        }
    }
}

impl Explain for Case<Wrong> {
    fn summary(&self, evidence: &Evidence<'_>) -> String {
        let history = evidence.history;
        let latch = self.lock.map_or("", |lock| &history.lock(lock).name);
        let waiter = || self.owners.first().map_or_else(String::new, |owner| history.owner_name(*owner));
        let (from, until) = (words::instant(self.from), words::instant(self.until));
        match self.wrong {
            Wrong::Opened { needed, made } => format!(
                "`{latch}` opened at {until}, when of {} that were needed {made} had been asked for since it was set at {from}.",
                words::many(needed as usize, "count-down"),
            ),
            Wrong::Passed { closed } => {
                let closed = words::instant(closed);
                format!("{} went on at {until} although `{latch}` was closed since {closed}.", waiter())
            }
            Wrong::Lost(most) => format!(
                "At {from} the count of `{latch}` was {most} higher than what had been reported as counted down."
            ),
            Wrong::Kept => {
                let length = words::length(self.until.since(self.from));
                format!(
                    "{} was kept waiting for {length} from {from} on, although `{latch}` was open.",
                    waiter()
                )
            }
        }
    }
}
