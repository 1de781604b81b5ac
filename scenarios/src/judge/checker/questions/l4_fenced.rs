//! L4: does the resource, which refuses old tokens by its rule, accept a stale write?
//!
//! Only the writes that the rule in force accepted are judged. A fence orders writes, and no more
//! than that: until the newer token has reached the resource, an older owner's write is still in
//! order, even if the newer owner already holds the lock. So the layer is violated iff an accepted
//! write comes after an accepted write of a newer hold of another owner, or if writes of two owners
//! are accepted with the same token: a rule that accepts both cannot distinguish them.

use std::collections::BTreeMap;

use crate::judge::{
    checker::{
        Checker,
        decision::{Case, Decided, Decision},
        evidence::{
            Evidence,
            section::{Write, tested, writes},
        },
    },
    history::{Fence, Lock},
    verdict::{Finding, Measure},
};

pub(in crate::judge::checker) const L4: Checker = Checker {
    name: "l4",
    question: "Do stale writes get past the resource's check of fencing tokens?",
    measures: &[
        ("stale", "how many stale writes were accepted"),
        ("accepted", "how many writes were accepted"),
        ("rejected", "how many writes were rejected"),
    ],
    bound: None,
    check,
};

/// The reason of a verdict.
pub(in crate::judge::checker) enum Because {
    NoFence,
    NotTested,
    InOrder { accepted: usize, rejected: usize },
}

/// An accepted write that should have been refused, and the earlier write that shows it.
#[derive(Clone, Copy)]
pub(in crate::judge::checker) struct Stale {
    pub(in crate::judge::checker) write: Write,
    pub(in crate::judge::checker) before: Write,
}

fn check(evidence: &Evidence<'_>) -> Finding {
    decide(evidence).worded(&L4, evidence)
}

fn decide(evidence: &Evidence<'_>) -> Decided<Because, Stale> {
    let fence = evidence.history.header.resource.as_ref().map_or(Fence::None, |resource| resource.fence);
    let writes = writes(evidence);
    let accepted: Vec<&Write> = writes.iter().filter(|write| fence.accepts(write.accepted)).collect();
    let stale = stale(evidence, &accepted);
    let (count, rejected) = (accepted.len(), writes.len() - accepted.len());
    let verdict = match (fence, stale.first()) {
        (Fence::None, _) => Decision::Undecided(Because::NoFence),
        (_, Some(wrong)) => {
            let Stale { write, before } = *wrong;
            let (from, until, owners) = (before.arrived, write.arrived, vec![before.owner, write.owner]);
            Decision::Violated(Case { wrong: *wrong, from, until, lock: Some(write.lock), owners })
        }
        (_, None) if evidence.is_given_up() => Decision::GivenUp,
        (_, None) if !tested(evidence, &writes) => Decision::Undecided(Because::NotTested),
        (_, None) => Decision::Holds(Because::InOrder { accepted: count, rejected }),
    };
    let measures = vec![
        Measure::count("stale", stale.len() as u64),
        Measure::count("accepted", count as u64),
        Measure::count("rejected", rejected as u64),
    ];
    Decided { verdict, measures }
}

/// Returns the writes that came too late, each with the write that shows it: the newest before it,
/// or else the first with its token.
fn stale<'a>(evidence: &Evidence<'_>, accepted: &[&'a Write]) -> Vec<Stale> {
    // The newest write so far, and the newest one of another owner.
    let mut newest: BTreeMap<Lock, [Option<&Write>; 2]> = BTreeMap::new();
    // The first write with a token, and the first one with it of another owner.
    let mut by_token: BTreeMap<(Lock, u64), [Option<&Write>; 2]> = BTreeMap::new();
    let mut found = Vec::new();
    for write in accepted.iter().copied().filter(|write| evidence.is_exclusive(write.lock)) {
        let others =
            |of: &[Option<&'a Write>; 2]| of.iter().flatten().copied().find(|one| one.owner != write.owner);
        let newest = newest.entry(write.lock).or_default();
        let newer = others(newest).filter(|newest| newest.since > write.since);
        let twin = write.token.and_then(|token| {
            let first = by_token.entry((write.lock, token)).or_default();
            let twin = others(first);
            match first {
                [None, _] => first[0] = Some(write),
                [Some(one), None] if one.owner != write.owner => first[1] = Some(write),
                _ => {}
            }
            twin
        });
        found.extend(newer.or(twin).map(|before| Stale { write: *write, before: *before }));
        match newest {
            [Some(first), _] if first.owner == write.owner => {
                if write.since >= first.since {
                    newest[0] = Some(write);
                }
            }
            [Some(first), second] if first.since > write.since => {
                if second.is_none_or(|second| write.since >= second.since) {
                    newest[1] = Some(write);
                }
            }
            _ => *newest = [Some(write), newest[0]],
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use crate::judge::{
        checker::tests::{explained, first_line},
        history::{Fence, LockKind, LossCause, story::Story},
    };

    #[test]
    fn explanations() {
        let two = |fence: Fence| {
            let story = Story::failover(LockKind::Exclusive).fenced(fence);
            story.at(0).granted("m", "c1", 1_000).at(1_001).granted("m", "c2", 1_000)
        };
        let stale = |fence: Fence, tokens: [u64; 2]| {
            two(fence)
                .at(1_100)
                .wrote("c2", Some(tokens[1]), 1_099)
                .at(2_051)
                .wrote("c1", Some(tokens[0]), 2_050)
                .ends(3_000)
        };
        // The clock of m jumps while its promise to c1 still runs; c2 gets the lock in between, and
        // then c1 gets it again.
        let again = |tokens: [u64; 3]| {
            let story =
                Story::one_node().fenced(Fence::Greater).at(0).granted_with("m", "c1", 10_000, tokens[0]);
            let story = story
                .at(500)
                .vanished("m", "c1", LossCause::Expired)
                .granted_with("m", "c2", 10_000, tokens[1]);
            let story = story.at(600).wrote("c2", Some(tokens[1]), 599).at(700).released("m", "c2");
            story.at(800).granted_with("m", "c1", 10_000, tokens[2])
        };
        // c1, c2 and c3 hold the lock one after the other; c3 writes before c2, with a smaller
        // token.
        let three = || {
            let story = Story::one_node().fenced(Fence::Greater).at(0).granted_with("m", "c1", 1_000, 33);
            let story = story.at(10).wrote("c1", Some(33), 9).at(1_001).granted_with("m", "c2", 1_000, 35);
            let story = story.at(2_002).granted_with("m", "c3", 1_000, 34);
            story.at(2_010).wrote("c3", Some(34), 2_009)
        };
        let stories = [
            ("33 is refused after 34", stale(Fence::Greater, [33, 34])),
            ("and so it is where 34 would pass again", stale(Fence::AtLeast, [33, 34])),
            ("34 twice, since the counter was lost: accepted", stale(Fence::AtLeast, [34, 34])),
            ("34 twice, refused", stale(Fence::Greater, [34, 34])),
            ("tokens that go backwards let the stale one through", stale(Fence::Greater, [35, 34])),
            (
                "an older write before the newer token has arrived is in order",
                two(Fence::Greater)
                    .at(1_050)
                    .wrote("c1", Some(33), 1_049)
                    .at(1_100)
                    .wrote("c2", Some(34), 1_099)
                    .ends(3_000),
            ),
            (
                "34 twice, one after the other: nothing tells them apart",
                two(Fence::AtLeast)
                    .at(1_050)
                    .wrote("c1", Some(34), 1_049)
                    .at(1_100)
                    .wrote("c2", Some(34), 1_099)
                    .ends(3_000),
            ),
            (
                "a write between two others is compared with the newest",
                three().at(2_020).wrote("c2", Some(35), 2_019).ends(3_000),
            ),
            (
                "lost by the node and granted again, each hold has its own writes",
                again([1, 2, 3]).at(900).wrote("c1", Some(3), 899).ends(3_000),
            ),
            (
                "the token of the hold that was lost is stale, although its owner has the lock again",
                again([3, 2, 4]).at(900).wrote("c1", Some(3), 899).ends(3_000),
            ),
            ("a resource that checks nothing", stale(Fence::None, [33, 34])),
            ("only one wrote", two(Fence::Greater).at(1_100).wrote("c2", Some(34), 1_099).ends(3_000)),
        ];
        insta::assert_snapshot!(explained("l4", &stories));
    }

    /// A write is compared with the newest hold of another owner, even if its owner, which writes
    /// under an older hold, has a newer one of its own.
    #[test]
    fn a_stale_write_is_compared_with_the_newest_of_another_owner() {
        let next = |story: Story, at: i64, before: &str, client: &str| {
            story.at(at).vanished("m", before, LossCause::Expired).granted("m", client, 400)
        };
        let story = Story::one_node().fenced(Fence::Greater).at(0).granted("m", "c1", 400);
        let story = next(story, 500, "c1", "c3");
        let story = next(story, 1_000, "c3", "c2");
        let story = next(story, 1_500, "c2", "c3").at(1_600).wrote("c3", Some(35), 1_599);
        // In the order of their tokens, but not of their holds.
        let story = story.at(1_700).wrote("c1", Some(36), 300).at(1_800).wrote("c2", Some(37), 1_100);
        let history = story.at(1_900).wrote("c3", Some(38), 600).ends(3_000);
        assert_eq!(first_line("l4", &history), "violated stale=3 accepted=4 rejected=0");
    }

    /// C1 holds the lock before C2 and after it. Regression: its new writes hid that its old one
    /// came after C2's.
    #[test]
    fn a_stale_write_is_seen_behind_new_ones_of_its_owner() {
        for new in [1, 2] {
            let story = Story::one_node().fenced(Fence::Greater).at(0).granted("m", "c1", 1_000);
            let story = story.at(1_001).vanished("m", "c1", LossCause::Expired).granted("m", "c2", 1_000);
            let story = story.at(1_100).wrote("c2", Some(34), 1_099).at(2_002).granted("m", "c1", 1_000);
            let writes =
                |story: Story, n: i64| story.at(2_100 + n).wrote("c1", Some(35 + n as u64), 2_099 + n);
            let story = (0..new).fold(story, writes);
            let history = story.at(2_200).wrote("c1", Some(39), 900).ends(3_000);
            let expected = format!("violated stale=1 accepted={} rejected=0", new + 2);
            assert_eq!(first_line("l4", &history), expected);
        }
    }

    /// However often the first owner has written with the token, the other owner's write makes both
    /// stale from then on, whether its hold is older or newer.
    #[test]
    fn a_token_that_two_owners_have_is_seen_at_each_turn() {
        for (first, second) in [("c1", "c2"), ("c2", "c1")] {
            let story = Story::failover(LockKind::Exclusive).fenced(Fence::AtLeast);
            let story = story.at(0).granted("m", "c1", 3_000).at(1).granted("m", "c2", 3_000);
            let story = story.at(10).wrote(first, Some(34), 9).at(20).wrote(first, Some(34), 19);
            let story = story.at(30).wrote(second, Some(34), 29).at(40).wrote(first, Some(34), 39);
            let found = first_line("l4", &story.ends(4_000));
            assert_eq!(found, "violated stale=2 accepted=4 rejected=0", "{first} and {second}");
        }
    }

    /// Two of two permits are taken, and both owners write with the tokens they have.
    #[test]
    fn writes_under_several_permits_are_in_no_order() {
        let story = Story::of_kind(LockKind::Semaphore { permits: 2 }).fenced(Fence::Greater);
        let story = story.at(0).granted("m", "c1", 1_000).at(1).granted("m", "c2", 1_000);
        let history = story.at(10).wrote("c2", Some(1), 9).wrote("c1", Some(2), 9).ends(3_000);
        assert_eq!(first_line("l4", &history), "undecided stale=0 accepted=2 rejected=0");
    }
}
