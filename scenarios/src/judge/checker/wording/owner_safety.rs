//! The words of `owner-safety`: actions of other parties on a hold.

use crate::judge::checker::{
    decision::Case,
    evidence::{Evidence, words},
    questions::owner_safety::{Because, Done, Foreign},
    wording::{Explain, Reason},
};

impl Reason for Because {
    fn sentence(&self, _evidence: &Evidence<'_>) -> String {
        match self {
            Self::NothingDone => "Nothing was ever released or extended.".to_owned(),
            Self::OwnOnly { seen, refused } => {
                format!("Releases and extensions by the owner itself: {seen}; turned away: {refused}.")
            }
        }
    }
}

impl Explain for Case<Foreign> {
    fn summary(&self, evidence: &Evidence<'_>) -> String {
        let Foreign { node, done, owner, by } = self.wrong;
        let history = evidence.history;
        let verb = match done {
            Done::Released => "released",
            Done::Extended => "extended",
            Done::Deleted => "deleted",
            Done::Overwritten => "wrote over",
        };
        format!(
            "{} {verb} what {} held, at {} on {}.",
            history.party_name(by),
            history.owner_name(owner),
            words::instant(self.from),
            history.host_name(node)
        )
    }
}
