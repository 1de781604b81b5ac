//! The words of L3: writes inside critical sections of others.

use super::ending::ending;
use crate::judge::checker::{
    decision::Case,
    evidence::{Evidence, section::Section, words},
    questions::l3_effect::{Because, Wrong},
    wording::{Explain, Reason},
};

/// The reason of a layer about writes that was not put to the test.
pub(super) const NOT_TESTED: &str = "No owner wrote to the resource, or only one owner ever held the lock.";

impl Reason for Because {
    fn sentence(&self, _evidence: &Evidence<'_>) -> String {
        match self {
            Self::NotTested => NOT_TESTED.to_owned(),
            Self::Apart { writes, sections } => format!(
                "{} in {}, none inside another's.",
                words::many(*writes, "write"),
                words::many(*sections, "critical section")
            ),
        }
    }
}

impl Explain for Case<Wrong> {
    fn summary(&self, evidence: &Evidence<'_>) -> String {
        let (one, at) = (evidence.history.owner_name(self.owners[0]), words::instant(self.until));
        match &self.wrong {
            Wrong::WithoutLock => format!("{one} wrote at {at} without ever having held the lock."),
            Wrong::Overlap([first, second]) => {
                let other = evidence.history.owner_name(second.owner);
                if first.until > second.until {
                    format!("{one} wrote at {at}, after {other}, who got the lock later, had written.")
                } else {
                    format!("{one} wrote at {at} inside the critical section of {other}.")
                }
            }
        }
    }

    fn story(&self, evidence: &Evidence<'_>) -> Vec<String> {
        let Wrong::Overlap([first, second]) = &self.wrong else { return Vec::new() };
        let mut story = vec![section(evidence, first)];
        story.extend(ending(evidence, first.lock, &self.owners, first.from, self.from));
        story.push(section(evidence, second));
        story
    }
}

fn section(evidence: &Evidence<'_>, section: &Section) -> String {
    format!(
        "{} got the lock at {}; its last write left at {} and arrived at {}.",
        evidence.history.owner_name(section.owner),
        words::instant(section.from),
        words::instant(section.sent),
        words::instant(section.until)
    )
}
