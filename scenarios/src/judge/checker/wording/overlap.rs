//! Two owners that had a lock at one instant, for the layers about intervals.

use lockstorm_world::time::True;

use super::ending::ending;
use crate::judge::{
    checker::{
        decision::Case,
        evidence::{
            Evidence,
            authority::last_two_masters,
            interval::Interval,
            overlap::{Apart, Both},
            words,
        },
        wording::Explain,
    },
    history::{History, Lock},
};

impl Both {
    /// Returns the words for the two intervals, and the beginning of the first one.
    fn words(&self, evidence: &Evidence<'_>) -> ([String; 2], True) {
        let history = evidence.history;
        match self {
            Self::Promised(both) => {
                (both.each_ref().map(|promise| words::promise(history, promise)), both[0].from())
            }
            Self::Believed(both) => {
                (both.each_ref().map(|belief| words::belief(history, belief)), both[0].from())
            }
        }
    }
}

impl Explain for Case<Both> {
    fn summary(&self, evidence: &Evidence<'_>) -> String {
        let history = evidence.history;
        let names: Vec<String> = self.owners.iter().map(|owner| history.owner_name(*owner)).collect();
        let both = match self.wrong {
            Both::Promised(_) => "were both promised",
            Both::Believed(_) => "both believed they held",
        };
        let lock = self.lock.map_or("", |lock| &history.lock(lock).name);
        format!(
            "{} {both} `{lock}` for {}, from {} to {}.",
            names.join(" and "),
            words::length(self.until.since(self.from)),
            words::instant(self.from),
            words::instant(self.until)
        )
    }

    fn story(&self, evidence: &Evidence<'_>) -> Vec<String> {
        let ([first, second], since) = self.wrong.words(evidence);
        let mut story = vec![first];
        if let Some(lock) = self.lock {
            story.extend(ending(evidence, lock, &self.owners, since, self.from));
            story.extend(two_masters_in_words(evidence.history, lock, since, self.until));
        }
        story.push(second);
        story
    }
}

/// Describes the last period between `from` and `until` in which a replicated lock had two masters.
pub(in crate::judge::checker) fn two_masters_in_words(
    history: &History,
    lock: Lock,
    from: True,
    until: True,
) -> Option<String> {
    let two = last_two_masters(history, lock, from, until)?;
    let end = if two.is_over { format!("to {}", words::instant(two.until)) } else { "on".to_owned() };
    let in_cluster = history.is_in_cluster(lock);
    let what = if in_cluster { "two masters answered for its slot" } else { "there were two masters" };
    let [one, other] = two.nodes.map(|node| history.host_name(node));
    Some(format!("From {} {end} {what}, {one} and {other}.", words::instant(two.from)))
}

/// Returns the sentence for intervals of one kind (`thing`) that do not overlap; `nothing` is the
/// text if there are none.
pub(super) fn apart(apart: &Apart, thing: &str, nothing: impl FnOnce() -> String) -> String {
    match apart {
        Apart::Nothing => nothing(),
        Apart::OneOwner => "Only one owner ever asked for it: nothing was put to the test.".to_owned(),
        Apart::Intervals(count) => {
            format!("{}, no two of different owners at one instant.", words::many(*count, thing))
        }
    }
}
