//! The words of `together`: locks of a group in another state than the rest.

use crate::judge::checker::{
    decision::Case,
    evidence::{Evidence, words},
    questions::together::{Because, Parted},
    wording::{Explain, Reason},
};

impl Reason for Because {
    fn sentence(&self, _evidence: &Evidence<'_>) -> String {
        match self {
            Self::NoCall => "No locks were taken together.".to_owned(),
            Self::AllOrNone(calls) => format!("{}, each about all or none.", words::many(*calls, "call")),
        }
    }
}

impl Explain for Case<Parted<'_>> {
    fn summary(&self, evidence: &Evidence<'_>) -> String {
        let history = evidence.history;
        let (owner, at) = (history.owner_name(self.owners[0]), words::instant(self.from));
        let lock = &history.lock(self.wrong.lock).name;
        if self.wrong.is_torn {
            format!("{owner} got several locks at {at}, and was not promised `{lock}` then.")
        } else {
            let length = words::length(self.until.since(self.from));
            format!(
                "{owner} had none of several locks left at {at}, and was promised `{lock}` for {length} more."
            )
        }
    }

    fn story(&self, evidence: &Evidence<'_>) -> Vec<String> {
        let last = self.wrong.last.map(|promise| words::promise(evidence.history, promise));
        last.into_iter().collect()
    }
}
