//! The words of `reentrancy`: counts of levels that are wrong.

use lockstorm_world::time::True;

use super::ending::ending;
use crate::judge::checker::{
    decision::Case,
    evidence::{Evidence, words},
    questions::reentrancy::{Because, Miscounted},
    wording::{Explain, Reason},
};

impl Reason for Because {
    fn sentence(&self, _evidence: &Evidence<'_>) -> String {
        match self {
            Self::NotCounted => "No single authority counts the holds.".to_owned(),
            Self::NotTested => "No owner nested its holds or asked again after a lost reply.".to_owned(),
            Self::CameOut(deepest) => format!("Counts up to {deepest} came out as the calls have it."),
        }
    }
}

impl Explain for Case<Miscounted> {
    fn summary(&self, evidence: &Evidence<'_>) -> String {
        let Miscounted { counted, expected } = self.wrong;
        let history = evidence.history;
        format!(
            "{} held `{}` {} by its own calls, but the node counted {counted}, at {}.",
            history.owner_name(self.owners[0]),
            self.lock.map_or("", |lock| &history.lock(lock).name),
            match expected {
                0 => "not at all".to_owned(),
                1 => "once".to_owned(),
                times => format!("{times} times"),
            },
            words::instant(self.from)
        )
    }

    fn story(&self, evidence: &Evidence<'_>) -> Vec<String> {
        let of = |lock| ending(evidence, lock, &self.owners, True::ZERO, self.from);
        self.lock.map_or_else(Vec::new, of)
    }
}
