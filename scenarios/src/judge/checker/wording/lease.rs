//! The words of `lease`: holds that lasted too long or too short.

use super::ending::ending;
use crate::judge::checker::{
    decision::Case,
    evidence::{Evidence, words},
    questions::lease::{Because, Off, Wrong},
    wording::{Explain, Reason},
};

impl Reason for Because {
    fn sentence(&self, evidence: &Evidence<'_>) -> String {
        match self {
            Self::NoLease => evidence.no_owner("No single authority ever granted a lease."),
            Self::AsPromised(holds) => format!("{}, each as long as promised.", words::many(*holds, "hold")),
        }
    }
}

impl Explain for Case<Off> {
    fn summary(&self, evidence: &Evidence<'_>) -> String {
        let Off { wrong, by, hold, .. } = &self.wrong;
        let history = evidence.history;
        let (one, length) = (history.owner_name(hold.owner), words::length(*by));
        let what = match wrong {
            Wrong::Cut => format!("{one}'s key expired {length} before its lease was over"),
            Wrong::Outlived => format!("{one}'s key was still there {length} after its lease"),
            Wrong::Phantom => {
                let name = &history.lock(hold.lock).name;
                format!("`{name}` was kept for {one} for {length} after it had stopped believing in it")
            }
        };
        format!("{what}, from {} to {}.", words::instant(self.from), words::instant(self.until))
    }

    fn story(&self, evidence: &Evidence<'_>) -> Vec<String> {
        let Off { hold, gone, .. } = &self.wrong;
        let history = evidence.history;
        let node = history.host_name(hold.node);
        let lease =
            hold.lease.map_or("no expiry".to_owned(), |lease| format!("a lease of {}", words::length(lease)));
        let had = if hold.came_back { "come back with it" } else { "granted it" };
        let mut story =
            vec![format!("{node} had {had} at {}, at last with {lease}.", words::instant(hold.from))];
        story.extend(ending(evidence, hold.lock, &[hold.owner], hold.from, *gone));
        story
    }
}
