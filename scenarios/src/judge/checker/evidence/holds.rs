//! The lengths of holds: from the owner's first belief until the servers have lost the hold, or
//! until nothing more can be observed.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use lockstorm_world::time::True;

use crate::judge::checker::Evidence;
use crate::judge::history::{EventKind, Lock, Mode, Owner};

/// The observed length of one hold, and whether the servers lost it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hold {
    /// The time since its owner first believed in it.
    pub seen: Duration,
    /// True if fewer nodes than needed had it at the end while its owner still believed in it.
    /// False if the owner first released it or stopped believing in it, or the run ended.
    pub lost: bool,
}

/// The instants, in order, at which an owner lost a hold on too many groups of nodes, or had it on
/// enough again (`true`).
type Standing = Vec<(True, bool)>;

/// The lock, the owner and the mode of a hold. An owner that reads and writes has two holds.
type Of = (Lock, Owner, Mode);

/// Returns every hold of a history that its owner believed in, sorted by lock and beginning.
pub fn holds(evidence: &Evidence<'_>) -> Vec<Hold> {
    let standing = standing(evidence);
    let of_belief = |(of, from, until): (Of, True, True)| {
        let changes = standing.get(&of).map_or(&[][..], |changes| changes);
        let before = changes.partition_point(|(at, _)| *at <= from);
        // A hold lost before its owner first believed in it has no length.
        let at_first = before.checked_sub(1).is_some_and(|last| changes[last].1);
        let lost = if at_first {
            changes[before..].iter().find(|(at, stands)| !stands && *at < until).map(|(at, _)| *at)
        } else {
            Some(from)
        };
        Hold { seen: lost.unwrap_or(until).since(from), lost: lost.is_some() }
    };
    evidence
        .beliefs
        .iter()
        .map(|belief| ((belief.lock, belief.owner, belief.mode), belief.from, belief.until))
        .map(of_belief)
        .collect()
}

fn standing(evidence: &Evidence<'_>) -> BTreeMap<Of, Standing> {
    let history = evidence.history;
    let mut groups: BTreeMap<Of, BTreeSet<usize>> = BTreeMap::new();
    let mut standing: BTreeMap<Of, Standing> = BTreeMap::new();
    for event in &history.events {
        let Some(of) = event.kind.hold() else { continue };
        let authority = &history.lock(of.0).authority;
        let Some(group) = authority.group_of(event.host) else { continue };
        let has = groups.entry(of).or_default();
        match event.kind {
            EventKind::Granted { .. } | EventKind::Extended { .. } | EventKind::Regained { .. } => {
                has.insert(group);
            }
            EventKind::Vanished { .. } | EventKind::Released { left: 0, .. } => drop(has.remove(&group)),
            _ => continue,
        }
        let stands = has.len() >= authority.quorum;
        let changes = standing.entry(of).or_default();
        if changes.last().is_none_or(|(_, last)| *last != stands) {
            changes.push((event.at, stands));
        }
    }
    standing
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::history::{History, LockKind, LossCause, Reason, Role, story::Story};

    fn seen(history: &History) -> Vec<(u128, bool)> {
        let holds = holds(&Evidence::of(history));
        holds.into_iter().map(|hold| (hold.seen.as_millis(), hold.lost)).collect()
    }

    #[test]
    fn a_hold_is_lost_when_too_few_nodes_have_it_while_its_owner_believes() {
        let one = || Story::one_node().at(1_000).locks("c1", "m", 10_000);
        let quorum = || {
            let story = Story::quorum().at(1_000).asks("c1");
            let story =
                ["a", "b", "c", "d"].iter().fold(story, |story, node| story.granted(node, "c1", 10_000));
            story.believes("c1", 9_000)
        };
        let gone = |story: Story, node: &str| story.vanished(node, "c1", LossCause::Crash);
        for (what, history, expected) in [
            ("given back", one().at(3_000).unlocks("c1", "m").ends(60_000), (2_000, false)),
            (
                "believed until the lease was over",
                one().at(11_000).vanished("m", "c1", LossCause::Expired).ends(60_000),
                (10_000, false),
            ),
            (
                "expired early",
                one().at(5_000).vanished("m", "c1", LossCause::Expired).ends(60_000),
                (4_000, true),
            ),
            ("the run is over first", one().ends(4_000), (3_000, false)),
            (
                "told that it is lost, which it is",
                one()
                    .at(4_000)
                    .vanished("m", "c1", LossCause::Evicted)
                    .at(5_000)
                    .disbelieves("c1", Reason::Lost)
                    .ends(60_000),
                (3_000, true),
            ),
            (
                "a master that never had it",
                Story::failover(LockKind::Exclusive)
                    .at(1_000)
                    .locks("c1", "m", 10_000)
                    .at(3_000)
                    .became("r", Role::Master)
                    .vanished("r", "c1", LossCause::Failover)
                    .ends(60_000),
                (2_000, true),
            ),
            (
                "one node of four is more than it needs",
                gone(quorum().at(2_000), "a").ends(60_000),
                (9_000, false),
            ),
            (
                "two nodes of four leave too few",
                gone(gone(quorum().at(2_000), "a").at(3_000), "b").ends(60_000),
                (2_000, true),
            ),
            // Regression: the release of the write lock counted as the loss of the read lock.
            (
                "a writer releases the write lock and keeps the read lock",
                Story::of_kind(LockKind::ReadWrite)
                    .at(1_000)
                    .locks("c1", "m", 10_000)
                    .at(2_000)
                    .granted_in("m", "c1", 10_000, Mode::Shared)
                    .believes("c1", 10_000)
                    .at(3_000)
                    .in_mode("c1", Mode::Exclusive)
                    .unlocks("c1", "m")
                    .ends(60_000),
                (10_000, false),
            ),
            (
                "lost before it was believed",
                one().at(20_000).believes("c1", 1_000).ends(60_000),
                (1_000, false),
            ),
        ] {
            assert_eq!(seen(&history).last(), Some(&expected), "{what}");
        }
    }
}
