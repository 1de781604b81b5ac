//! The words of `waiting`: the waits, and waiters that starve.

use crate::judge::checker::{
    decision::Case,
    evidence::{Evidence, words},
    questions::waiting::{Because, Starved},
    wording::{Explain, Reason},
};

/// The most owners whose shares a story lists.
const SHOWN: usize = 6;

impl Reason for Because {
    fn sentence(&self, _evidence: &Evidence<'_>) -> String {
        match self {
            Self::NoWant => "No owner asked for a lock.".to_owned(),
            Self::Served { wants, waited, unserved } => format!(
                "{}, of which the longest waited for {}; {} never got the lock.",
                words::many(*wants, "acquisition"),
                words::length(*waited),
                words::many(*unserved, "owner")
            ),
        }
    }
}

impl Explain for Case<Starved> {
    fn summary(&self, evidence: &Evidence<'_>) -> String {
        let Starved { lock, granted, times, .. } = self.wrong;
        let history = evidence.history;
        format!(
            "{} asked for `{}` at {} and {} {}: {times} times others got it that began to ask later.",
            history.owner_name(self.owners[0]),
            history.lock(lock).name,
            words::instant(self.from),
            if granted { "got it at" } else { "had not got it by" },
            words::instant(self.until),
        )
    }

    fn story(&self, evidence: &Evidence<'_>) -> Vec<String> {
        let Starved { bound, shares, .. } = &self.wrong;
        let shown = shares.iter().take(SHOWN);
        let name = |owner| evidence.history.owner_name(owner);
        let shown: Vec<String> = shown.map(|(got, owner)| format!("{} {got} times", name(*owner))).collect();
        let rest = if shares.len() > SHOWN { " and more" } else { "" };
        vec![
            format!("Who got it in the whole run: {}{rest}.", shown.join(", ")),
            format!(
                "Owners that asked for it: {}. Chance would have overtaken one of them no more than {bound} times.",
                shares.len()
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::history::{Lock, story::Story};

    #[test]
    fn a_story_lists_six_owners_and_says_if_there_are_more() {
        for owners in [5, 6, 7] {
            let mut history = Story::one_node().ends(1_000);
            let client = history.header.host("c1").expect("a client");
            let shares: Vec<_> =
                (1..=owners).map(|number| (9, history.owner(&format!("c1:{number}"), client))).collect();
            let (lock, until, owner) = (Lock(0), history.header.end, shares[0].1);
            let wrong = Starved { lock, granted: false, times: 9, bound: 8, shares };
            let (from, lock, owners_of) = (until, Some(lock), vec![owner]);
            let case = Case { wrong, from, until, lock, owners: owners_of };
            let [who, all] = &case.story(&Evidence::of(&history))[..] else { panic!("two sentences") };
            assert_eq!(who.matches(" 9 times").count(), owners.min(6), "{who}");
            assert_eq!(who.ends_with(" times and more."), owners > 6, "{who}");
            assert!(all.starts_with(&format!("Owners that asked for it: {owners}. ")), "{all}");
        }
    }
}
