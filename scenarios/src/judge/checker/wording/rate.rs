//! The words of `rate`: full windows, and requests that were kept waiting.

use crate::judge::checker::{
    decision::Case,
    evidence::{Evidence, words},
    questions::rate::{Because, Wrong},
    wording::{Explain, Reason},
};

/// The most grants of a story; the latest are listed.
const LISTED_MAX: usize = 6;

impl Reason for Because {
    fn sentence(&self, evidence: &Evidence<'_>) -> String {
        match self {
            Self::NoLimiter => "No rate limiter is on trial.".to_owned(),
            Self::NoGrant => evidence.no_owner("No permit was ever granted."),
            Self::NoCalm => "The storm never ended.".to_owned(),
            Self::AtMost(most, kept) => format!(
                "{most} in one window at most; none waited longer than {} for what was there.",
                words::length(*kept)
            ),
        }
    }
}

impl Explain for Case<Wrong> {
    fn summary(&self, evidence: &Evidence<'_>) -> String {
        let history = evidence.history;
        let (limiter, from) =
            (self.lock.map_or("", |lock| &history.lock(lock).name), words::instant(self.from));
        match &self.wrong {
            Wrong::TooMany { many, permits, window, per_client, .. } => format!(
                "`{limiter}` granted {many} permits in one window of {} at {from}, of {permits} that there are{}.",
                words::length(*window),
                if *per_client { " for each client" } else { "" }
            ),
            Wrong::Kept(permits) => format!(
                "{} was kept waiting for {} of `{limiter}` for {} from {from} on, although they were there.",
                history.owner_name(self.owners[0]),
                words::many(*permits as usize, "permit"),
                words::length(self.until.since(self.from))
            ),
        }
    }

    fn story(&self, evidence: &Evidence<'_>) -> Vec<String> {
        let Wrong::TooMany { grants, .. } = &self.wrong else { return Vec::new() };
        let granted = |(at, client, permits): &(_, _, u64)| {
            let client = evidence.history.sender_name(*client);
            format!("{client} was granted {permits} at {}.", words::instant(*at))
        };
        grants[grants.len().saturating_sub(LISTED_MAX)..].iter().map(granted).collect()
    }
}
