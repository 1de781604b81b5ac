//! L1: do two owners hold the lock by the servers' own promises at one true instant?
//!
//! See [`promise`](crate::judge::checker::evidence::promise) for promises: a lease of true time
//! from the grant, which only its own owner can end early. The layer is violated iff promises of
//! two different owners overlap by more than no time.

use std::time::Duration;

use crate::judge::{
    checker::{
        Checker,
        decision::Decided,
        evidence::{
            Evidence,
            overlap::{Apart, Both, MEASURES, judge},
        },
    },
    history::EventKind,
    verdict::Finding,
};

pub(in crate::judge::checker) const L1: Checker = Checker {
    name: "l1",
    question: "Do two owners hold the lock, by what the servers granted, at one true instant?",
    measures: MEASURES,
    bound: None,
    check,
};

/// The reason of a verdict.
pub(in crate::judge::checker) enum Because {
    NoPromise(NoPromise),
    Promises(Apart),
}

/// The reason why there is no promise at all.
pub(in crate::judge::checker) struct NoPromise {
    /// The number of grants.
    pub(in crate::judge::checker) granted: usize,
    /// The number of grants with a lease of which the allowance for drift leaves something.
    pub(in crate::judge::checker) lasting: usize,
    /// True if no grant was one of a quorum.
    pub(in crate::judge::checker) alone: bool,
}

fn check(evidence: &Evidence<'_>) -> Finding {
    decide(evidence).worded(&L1, evidence)
}

fn decide(evidence: &Evidence<'_>) -> Decided<Because, Both> {
    let Decided { verdict, measures } = judge(evidence, &evidence.promises, Both::Promised);
    let verdict = verdict.map(|apart| match apart {
        Apart::Nothing => Because::NoPromise(no_promise(evidence)),
        apart => Because::Promises(apart),
    });
    Decided { verdict, measures }
}

fn no_promise(evidence: &Evidence<'_>) -> NoPromise {
    let history = evidence.history;
    let (mut granted, mut lasting, mut alone) = (0, 0, true);
    for event in &history.events {
        let EventKind::Granted { lock, lease_ms, .. } = event.kind else { continue };
        let authority = &history.lock(lock).authority;
        if authority.group_of(event.host).is_none() {
            continue;
        }
        granted += 1;
        alone &= authority.quorum == 1;
        let length = lease_ms.map_or(Duration::MAX, |lease_ms| authority.drift.promised(lease_ms));
        lasting += usize::from(!length.is_zero());
    }
    NoPromise { granted, lasting, alone }
}

#[cfg(test)]
mod tests {
    use crate::judge::{
        checker::tests::{explained, first_line},
        history::{ClockId, History, LockKind, LossCause, Mode, Reason, Role, story::Story},
    };

    /// C1 holds `a`, `b`, `c` from 1 ms for ten seconds; C2 gets `c`, `d`, `e` at `second`.
    fn red_lock(story: Story, second: i64) -> History {
        story
            .at(second)
            .granted("c", "c2", 10_000)
            .granted("d", "c2", 10_000)
            .granted("e", "c2", 10_000)
            .ends(25_000)
    }

    fn majority() -> Story {
        Story::quorum().at(1).granted("a", "c1", 10_000).granted("b", "c1", 10_000).granted("c", "c1", 10_000)
    }

    #[test]
    fn explanations() {
        let stories = [
            (
                "handed over by a release",
                Story::one_node()
                    .at(0)
                    .locks("c1", "m", 1_000)
                    .at(500)
                    .unlocks("c1", "m")
                    .at(500)
                    .locks("c2", "m", 1_000)
                    .ends(3_000),
            ),
            (
                "handed over by the end of the lease",
                Story::one_node()
                    .at(0)
                    .granted("m", "c1", 1_000)
                    .at(1_000)
                    .granted("m", "c2", 1_000)
                    .ends(3_000),
            ),
            ("only one owner ever asked", Story::one_node().at(0).locks("c1", "m", 1_000).ends(3_000)),
            ("no owner ever got it", Story::one_node().at(0).asks("c1").asks("c2").ends(3_000)),
            (
                "another's DEL frees it",
                Story::one_node()
                    .fault_until(1_500, "c1 was paused", &["c1"])
                    .at(1_005)
                    .granted("m", "c2", 1_000)
                    .at(1_500)
                    .deleted("m", "c2", "c1")
                    .at(1_502)
                    .granted("m", "c3", 1_000)
                    .ends(3_000),
            ),
            (
                "the replica that is promoted never had it",
                Story::failover(LockKind::Exclusive)
                    .became("r", Role::Replica)
                    .at(2)
                    .granted("m", "c1", 30_000)
                    .at(3)
                    .fault("m crashed", &["m"])
                    .at(10)
                    .fault("r was promoted", &["r"])
                    .vanished("r", "c1", LossCause::Failover)
                    .at(20)
                    .granted("r", "c2", 30_000)
                    .ends(40_000),
            ),
            (
                "the node's wall clock jumps",
                Story::one_node()
                    .at(0)
                    .granted("m", "c1", 30_000)
                    .at(1_000)
                    .clocks("m", [32_000, 1_000, 1_000], [0; 3])
                    .fault("the wall clock of m stepped +31 s", &["m"])
                    .at(1_001)
                    .vanished("m", "c1", LossCause::Expired)
                    .granted("m", "c2", 30_000)
                    .ends(40_000),
            ),
            (
                "renewals prolong the promise",
                Story::one_node()
                    .at(0)
                    .granted("m", "c1", 1_000)
                    .at(900)
                    .extended("m", "c1", 1_000)
                    .at(1_200)
                    .granted("m", "c2", 1_000)
                    .ends(3_000),
            ),
            (
                "another owner's renewal does not",
                Story::one_node()
                    .at(0)
                    .granted("m", "c1", 1_000)
                    .at(900)
                    .extended_by("m", "c1", 1_000, "c3")
                    .at(1_200)
                    .granted("m", "c2", 1_000)
                    .ends(3_000),
            ),
            (
                "a nested hold with a short lease does not shorten the outer one",
                Story::one_node()
                    .at(0)
                    .granted("m", "c1", 30_000)
                    .at(100)
                    .granted("m", "c1", 5_000)
                    .at(5_101)
                    .vanished("m", "c1", LossCause::Expired)
                    .granted("m", "c2", 1_000)
                    .ends(40_000),
            ),
            (
                "a nested hold ends with its own release",
                Story::one_node()
                    .at(0)
                    .granted("m", "c1", 1_000)
                    .at(100)
                    .granted("m", "c1", 30_000)
                    .at(200)
                    .released("m", "c1")
                    .at(1_000)
                    .granted("m", "c2", 1_000)
                    .ends(40_000),
            ),
            (
                "another's release does not end a promise",
                Story::one_node()
                    .at(0)
                    .granted("m", "c1", 1_000)
                    .at(400)
                    .released_by("m", "c1", "c2")
                    .granted("m", "c2", 1_000)
                    .ends(3_000),
            ),
            (
                "what the node lost and grants the same owner again is promised anew",
                Story::one_node()
                    .at(0)
                    .granted("m", "c1", 10_000)
                    .at(100)
                    .vanished("m", "c1", LossCause::Crash)
                    .granted("m", "c1", 1_000)
                    .at(1_101)
                    .vanished("m", "c1", LossCause::Expired)
                    .granted("m", "c2", 1_000)
                    .ends(40_000),
            ),
            (
                "nested holds that the node lost do not count among those that are left after a release",
                Story::one_node()
                    .at(0)
                    .granted("m", "c1", 1_000)
                    .granted("m", "c1", 1_000)
                    .at(100)
                    .vanished("m", "c1", LossCause::Crash)
                    .granted("m", "c1", 2_000)
                    .granted("m", "c1", 1_000)
                    .at(200)
                    .released("m", "c1")
                    .at(1_500)
                    .granted("m", "c2", 1_000)
                    .ends(40_000),
            ),
            (
                "leases of no length",
                Story::one_node().at(0).granted("m", "c1", 0).at(10).granted("m", "c2", 0).ends(3_000),
            ),
            (
                "leases of which nothing is left",
                Story::quorum()
                    .at(0)
                    .granted("a", "c1", 2)
                    .granted("b", "c1", 2)
                    .granted("c", "c1", 2)
                    .ends(3_000),
            ),
            (
                "the allowance follows the lease that was given",
                Story::quorum()
                    .at(0)
                    .granted("a", "c1", 250)
                    .granted("b", "c1", 250)
                    .granted("c", "c1", 250)
                    .at(246)
                    .granted("c", "c2", 250)
                    .granted("d", "c2", 250)
                    .granted("e", "c2", 250)
                    .ends(3_000),
            ),
            (
                "one node's promise ends as another's begins: never three at once",
                Story::quorum()
                    .at(0)
                    .granted("a", "c1", 10_000)
                    .at(5_000)
                    .granted("b", "c1", 10_000)
                    .at(9_898)
                    .granted("c", "c1", 10_000)
                    .granted("d", "c2", 10_000)
                    .ends(25_000),
            ),
            (
                "readers beside readers",
                Story::of_kind(LockKind::ReadWrite)
                    .at(0)
                    .granted_in("m", "c1", 1_000, Mode::Shared)
                    .granted_in("m", "c2", 1_000, Mode::Shared)
                    .ends(3_000),
            ),
            (
                "a writer beside a reader",
                Story::of_kind(LockKind::ReadWrite)
                    .at(0)
                    .granted_in("m", "c1", 1_000, Mode::Shared)
                    .at(400)
                    .granted_in("m", "c2", 1_000, Mode::Exclusive)
                    .ends(3_000),
            ),
            // A quorum's promise is 102 ms shorter than its lease, so it ends at 1 + 9898.
            ("a quorum's promise is over one allowance early", red_lock(majority(), 9_899)),
            ("and not a millisecond before", red_lock(majority(), 9_898)),
            (
                "a node of the quorum restarts empty",
                red_lock(
                    majority().at(1_000).fault("c crashed and came back empty", &["c"]).vanished(
                        "c",
                        "c1",
                        LossCause::Crash,
                    ),
                    1_300,
                ),
            ),
            (
                "released on one node of the quorum is released",
                red_lock(majority().at(500).released("a", "c1"), 600),
            ),
            (
                "two of five are not a quorum",
                Story::quorum()
                    .at(1)
                    .granted("a", "c1", 10_000)
                    .granted("b", "c1", 10_000)
                    .granted("d", "c2", 10_000)
                    .granted("e", "c2", 10_000)
                    .ends(25_000),
            ),
        ];
        insta::assert_snapshot!(explained("l1", &stories));
    }

    /// C1's key is gone at 500 ms, with a lease until 10 s. Regression: that C1 had released the
    /// lock, or was about to, was overlooked, because a node records nothing of a release that
    /// finds no key; C2's grant counted as a double one.
    #[test]
    fn a_promise_that_was_given_back_in_vain_went_on() {
        let begun = || Story::one_node().at(0).granted("m", "c1", 10_000).at(1).believes("c1", 10_000);
        let lost = |story: Story| story.vanished("m", "c1", LossCause::Flushed);
        let back = |story: Story| story.disbelieves("c1", Reason::Released);
        let next = |story: Story| first_line("l1", &story.granted("m", "c2", 1_000).ends(20_000));
        let none = "holds overlap=0ms times=0";
        for (story, found) in [
            (back(lost(begun().at(500)).at(600)).at(700), none),
            (lost(back(begun().at(400)).at(500)).at(700), none),
            // Between the loss and the release both owners have it.
            (lost(begun().at(500)).at(600), "violated overlap=1s times=1"),
            // C1 learns of the loss and has released nothing: the promise was broken.
            (lost(begun().at(500)).disbelieves("c1", Reason::Lost).at(700), "violated overlap=1s times=1"),
            // A later grant is another promise.
            (
                back(lost(begun().at(500)).at(600)).at(650).granted("m", "c1", 10_000).at(700),
                "violated overlap=1s times=1",
            ),
            // The node still has it.
            (back(begun().at(500)).at(700), "violated overlap=1s times=1"),
        ] {
            assert_eq!(next(story), found);
        }
    }

    /// Requests that had waited together on a link are granted and released at one instant.
    /// Regression: such a grant counted as an endless promise, and made a quorum where there was
    /// none.
    #[test]
    fn granted_and_released_at_one_instant_is_no_promise() {
        let story = Story::quorum().at(1).granted("a", "c1", 1_000).released("a", "c1");
        let story = story.granted("b", "c1", 1_000).granted("c", "c1", 1_000).at(5_000);
        let found = first_line("l1", &red_lock(story.granted("c", "c1", 1_000), 9_000));
        assert_eq!(found, "undecided overlap=0ms times=0");
    }

    #[test]
    fn a_clock_that_runs_fast_costs_what_it_runs_ahead() {
        // 2 % fast: c drops the key 10 001 ms after the grant by its own clock, which is 9 805 ms
        // of true time.
        let story = majority().at(1).clocks("c", [1, 1, 1], [20_000, 0, 0]);
        let expires = story.at(1).ends(25_000);
        let c = expires.header.host("c").expect("c");
        let reading =
            expires.clock(c).reading(ClockId::Wall, lockstorm_world::time::True::from_millis(9_806));
        assert!(reading > 10_001_000_000, "{reading}");
        let found = first_line("l1", &red_lock(majority(), 9_805));
        assert_eq!(found, "violated overlap=94ms times=1");
    }

    /// The nested hold outlasts the outer one, and is released after the outer one's lease.
    /// Regression: this ended the promise in the past, and the overlap disappeared.
    #[test]
    fn what_a_nested_hold_was_promised_is_not_undone_by_its_release() {
        let story = Story::one_node().at(0).granted("m", "c1", 5_000).at(1).granted("m", "c1", 9_000);
        let story = story.at(6_000).granted("m", "c2", 1_000).at(7_000).released("m", "c1");
        assert_eq!(first_line("l1", &story.ends(10_000)), "violated overlap=1s times=1");
    }

    /// The node counts on from a hold that is over in true time: the nested one is promised, and
    /// ends with its release. Regression: the promise continued after it.
    #[test]
    fn a_nested_hold_of_one_that_is_over_ends_with_its_own_release() {
        let story = Story::one_node().at(0).granted("m", "c1", 1_000).at(1_500).granted("m", "c1", 9_000);
        let story = story.at(2_000).released("m", "c1").granted("m", "c2", 1_000);
        assert_eq!(first_line("l1", &story.ends(10_000)), "holds overlap=0ms times=0");
    }

    /// The promise of `d` begins as that of `a` ends, so that C1 always has three of five.
    /// Regression: C1 had two promises, and an overlap with each.
    #[test]
    fn one_node_of_a_quorum_that_takes_over_from_another_leaves_no_gap() {
        let story = Story::quorum().at(1).granted("a", "c1", 5_000).granted("b", "c1", 10_000);
        let story = story.granted("c", "c1", 10_000).at(2_000).vanished("c", "c1", LossCause::Crash);
        let story =
            story.granted("c", "c2", 10_000).granted("e", "c2", 10_000).vanished("b", "c1", LossCause::Crash);
        let story = story.at(3_000).granted("b", "c2", 10_000).at(4_899).granted("d", "c1", 10_000);
        assert_eq!(first_line("l1", &story.ends(25_000)), "violated overlap=6.899s times=1");
    }
}
