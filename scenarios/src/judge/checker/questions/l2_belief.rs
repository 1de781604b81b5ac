//! L2: do two clients believe at one true instant, each by its own clocks and its own knowledge,
//! that they hold the lock?
//!
//! See [`belief`](crate::judge::checker::evidence::belief) for beliefs. A paused client does not
//! act, but its belief is judged by its own clock, which a pause does not stop; a suspension stops
//! the monotonic clock. The layer is violated iff beliefs of two different owners overlap by more
//! than no time.

use crate::judge::{
    checker::{
        Checker,
        decision::Decided,
        evidence::{
            Evidence,
            overlap::{Apart, Both, MEASURES, judge},
        },
    },
    verdict::Finding,
};

pub(in crate::judge::checker) const L2: Checker = Checker {
    name: "l2",
    question: "Do two clients believe at one true instant, by their own clocks, that they hold the lock?",
    measures: MEASURES,
    bound: None,
    check,
};

/// The reason of a verdict.
pub(in crate::judge::checker) struct Beliefs(pub(in crate::judge::checker) Apart);

fn check(evidence: &Evidence<'_>) -> Finding {
    let Decided { verdict, measures } = judge(evidence, &evidence.beliefs, Both::Believed);
    Decided { verdict: verdict.map(Beliefs), measures }.worded(&L2, evidence)
}

#[cfg(test)]
mod tests {
    use crate::judge::{
        checker::tests::explained,
        history::{ClockId, Life, Reason, story::Story},
    };

    #[test]
    fn explanations() {
        let suspended = |clock: ClockId| {
            Story::one_node()
                .at(0)
                .asks("c2")
                .believes_by("c1", clock, 10_000)
                .at(100)
                .fault_until(60_100, "c1 was suspended", &["c1"])
                .clocks("c1", [100, 100, 100], [0, -1_000_000, 0])
                .at(10_001)
                .believes("c2", 10_000)
                .at(60_100)
                .clocks("c1", [60_100, 100, 60_100], [0; 3])
                .ends(80_000)
        };
        let stories = [
            (
                "one after the other, by their own clocks",
                Story::one_node().at(0).believes("c1", 1_000).at(1_000).believes("c2", 1_000).ends(5_000),
            ),
            (
                "one gives it back and the other gets it",
                Story::one_node()
                    .at(0)
                    .believes_for_ever("c1")
                    .at(500)
                    .disbelieves("c1", Reason::Released)
                    .at(500)
                    .believes("c2", 1_000)
                    .ends(5_000),
            ),
            (
                "the holder did not learn that it was cut off",
                Story::one_node()
                    .at(0)
                    .believes_for_ever("c1")
                    .at(10_001)
                    .fault_until(60_000, "c1 was cut off from m", &["c1", "m"])
                    .at(40_002)
                    .believes("c2", 30_000)
                    .at(60_010)
                    .disbelieves("c1", Reason::Lost)
                    .ends(80_000),
            ),
            ("a suspended client that counts by the monotonic clock", suspended(ClockId::Monotonic)),
            ("a suspended client that counts by the boottime clock", suspended(ClockId::Boottime)),
            (
                "its own release, delayed by the network, frees its next hold",
                Story::one_node()
                    .at(0)
                    .locks("c1", "m", 30_000)
                    .at(1_000)
                    .fault_until(9_000, "a request from c1 to m is late by 6s", &["c1"])
                    .unlocks("c1", "m")
                    .at(2_000)
                    .locks("c1", "m", 30_000)
                    .at(7_000)
                    .released("m", "c1")
                    .at(7_500)
                    .locks("c2", "m", 30_000)
                    .ends(60_000),
            ),
            (
                "a long belief beside two short ones",
                Story::one_node()
                    .at(0)
                    .believes("c1", 10_000)
                    .at(1_000)
                    .believes("c2", 4_000)
                    .at(2_000)
                    .believes("c3", 7_000)
                    .ends(20_000),
            ),
            (
                "of many faults those are told that were in force",
                (0..6)
                    .fold(Story::one_node().at(0).believes_for_ever("c1"), |story, pause| {
                        let from = 1_000 + 100 * pause;
                        story.at(from).fault_until(from + 50, "c1 stood still", &["c1"])
                    })
                    .at(2_000)
                    .fault("m crashed", &["m"])
                    .fault_until(3_000, "c4 was cut off from m", &["c4"])
                    .at(2_100)
                    .fault_until(2_200, "c1 was cut off from m", &["c1", "m"])
                    .at(2_300)
                    .believes("c2", 1_000)
                    .ends(5_000),
            ),
            (
                "a renewal carries the belief on",
                Story::one_node()
                    .at(0)
                    .believes("c1", 1_000)
                    .at(900)
                    .believes("c1", 1_000)
                    .at(1_500)
                    .believes("c2", 10)
                    .ends(5_000),
            ),
            (
                "who crashed believes nothing",
                Story::one_node()
                    .at(0)
                    .believes_for_ever("c1")
                    .at(900)
                    .life("c1", Life::Crashed)
                    .at(1_500)
                    .believes("c2", 10)
                    .ends(5_000),
            ),
            (
                "a deadline that was over before it was believed is none",
                Story::one_node().at(0).believes("c2", 5_000).at(1_000).believes("c1", -1).ends(5_000),
            ),
            ("alone", Story::one_node().at(0).believes("c1", 5_000).ends(5_000)),
            ("no owner", Story::one_node().ends(5_000)),
        ];
        insta::assert_snapshot!(explained("l2", &stories));
    }
}
