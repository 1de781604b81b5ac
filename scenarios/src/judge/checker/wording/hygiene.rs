//! The words of `hygiene`: keys and holds that were left behind.

use crate::judge::checker::{
    decision::Case,
    evidence::{Evidence, words},
    questions::hygiene::{Because, Wrong},
    wording::{Explain, Reason},
};

impl Reason for Because {
    fn sentence(&self, evidence: &Evidence<'_>) -> String {
        match self {
            Self::NoGrant => evidence.no_owner("No lock was ever granted."),
            Self::Real => "What real servers have left is not looked at.".to_owned(),
            Self::InUse => "The lock was still in use when the run ended.".to_owned(),
            Self::NothingLeft => "Nothing was left behind.".to_owned(),
        }
    }
}

impl Explain for Case<Wrong<'_>> {
    fn summary(&self, evidence: &Evidence<'_>) -> String {
        let history = evidence.history;
        match self.wrong {
            Wrong::Key(key, left) => {
                let rest = match key.ttl_ms {
                    Some(ms) => format!("and goes by itself in {ms} ms"),
                    None => "and stays forever".to_owned(),
                };
                let by = key.owner.map(|owner| format!(" by {}", history.owner_name(owner)));
                format!(
                    "`{}` is left on {}{}, {rest}; {} in all.",
                    key.key,
                    history.host_name(key.node),
                    by.unwrap_or_default(),
                    words::many(left, "key")
                )
            }
            Wrong::Hold(lock) => format!(
                "{} ended its work at {} without giving `{}` back, and it was renewed for {}, until {}.",
                history.owner_name(self.owners[0]),
                words::instant(self.from),
                history.lock(lock).name,
                words::length(self.until.since(self.from)),
                words::instant(self.until)
            ),
        }
    }
}
