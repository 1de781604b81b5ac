//! L3: do writes to an unfenced resource go stale or interleave?
//!
//! A critical section runs from the grant to the arrival of its last write. A write of one owner
//! that arrives inside the section of another is the violation. If it is stale (an older owner's
//! write after a newer owner's), it stretches the older section over the newer one. If it is
//! interleaved (between two writes of another owner), it lies inside. So the layer is violated iff
//! sections of two different owners overlap, or an owner writes that never held the lock.

use crate::judge::{
    checker::{
        Checker,
        decision::{Case, Decided, Decision},
        evidence::{
            Evidence,
            interval::{Overlap, worst},
            overlap::Found,
            section::{Section, sections, tested, writes},
        },
    },
    verdict::{Finding, Measure},
};

pub(in crate::judge::checker) const L3: Checker = Checker {
    name: "l3",
    question: "Do writes to an unfenced resource go stale or interleave?",
    measures: &[
        ("overlap", "how long the longest certain overlap of two critical sections lasted"),
        ("times", "how many certain overlaps there were"),
        ("writes", "how many writes arrived"),
    ],
    bound: None,
    check,
};

/// The reason of a verdict.
pub(in crate::judge::checker) enum Because {
    NotTested,
    Apart { writes: usize, sections: usize },
}

/// A violation.
pub(in crate::judge::checker) enum Wrong {
    /// Two critical sections overlap; the first one began first.
    Overlap([Section; 2]),
    /// The owner of this write never held the lock.
    WithoutLock,
}

fn check(evidence: &Evidence<'_>) -> Finding {
    decide(evidence).worded(&L3, evidence)
}

fn decide(evidence: &Evidence<'_>) -> Decided<Because, Wrong> {
    let writes = writes(evidence);
    let sections = sections(evidence, &writes);
    let found = Found::of(evidence, &sections);
    let stranger = writes.iter().find(|write| write.since.is_none());
    let verdict = match (worst(&found.certain), stranger, worst(&found.within)) {
        (Some(overlap), _, _) => Decision::Violated(case(overlap)),
        (None, Some(write), _) => {
            let (from, until) = (write.arrived, write.arrived);
            let (lock, owners) = (Some(write.lock), vec![write.owner]);
            Decision::Violated(Case { wrong: Wrong::WithoutLock, from, until, lock, owners })
        }
        (None, None, Some(overlap)) => Decision::Unsure(case(overlap)),
        (None, None, None) if evidence.is_given_up() => Decision::GivenUp,
        (None, None, None) if !tested(evidence, &writes) => Decision::Undecided(Because::NotTested),
        (None, None, None) => {
            Decision::Holds(Because::Apart { writes: writes.len(), sections: sections.len() })
        }
    };
    let mut measures = found.measures();
    measures.push(Measure::count("writes", writes.len() as u64));
    Decided { verdict, measures }
}

fn case(overlap: &Overlap<'_, Section>) -> Case<Wrong> {
    let Overlap { first, second, from, .. } = *overlap;
    let (lock, owners) = (Some(first.lock), vec![first.owner, second.owner]);
    // The wrong write is the first owner's last one, however long after the other's.
    let until = first.until;
    Case { wrong: Wrong::Overlap([first.clone(), second.clone()]), from, until, lock, owners }
}

#[cfg(test)]
mod tests {
    use crate::judge::{
        checker::tests::{explained, first_line},
        history::{LockKind, LossCause, story::Story},
    };

    #[test]
    fn explanations() {
        let two = || Story::one_node().at(0).granted("m", "c1", 1_000).at(1_001).granted("m", "c2", 1_000);
        // m loses the hold that it granted c1 while its promise still runs. c2 gets the lock and
        // writes, then c1 may have it again.
        let lost = || {
            let story = Story::one_node().at(0).granted("m", "c1", 10_000).believes("c1", 10_000);
            let story = story.at(500).vanished("m", "c1", LossCause::Crash).granted("m", "c2", 10_000);
            story.believes("c2", 10_000).at(600).wrote("c2", None, 599).at(700).unlocks("c2", "m")
        };
        let stories = [
            (
                "one after the other",
                Story::one_node()
                    .at(0)
                    .granted("m", "c1", 1_000)
                    .at(10)
                    .wrote("c1", None, 9)
                    .at(990)
                    .wrote("c1", None, 989)
                    .at(1_001)
                    .granted("m", "c2", 1_000)
                    .at(1_100)
                    .wrote("c2", None, 1_099)
                    .ends(3_000),
            ),
            (
                "a stale write after a pause",
                two()
                    .fault_until(2_050, "c1 was paused", &["c1"])
                    .at(1_100)
                    .wrote("c2", None, 1_099)
                    .at(2_051)
                    .wrote("c1", None, 2_050)
                    .ends(3_000),
            ),
            (
                "a write that was under way for ninety seconds",
                two().at(1_500).wrote("c2", None, 1_499).at(90_050).wrote("c1", None, 50).ends(100_000),
            ),
            (
                "a write inside the other's section, before the other's first",
                two().at(1_050).wrote("c1", None, 1_049).at(1_100).wrote("c2", None, 1_099).ends(3_000),
            ),
            (
                "the same owner twice",
                Story::one_node()
                    .at(0)
                    .granted("m", "c1", 1_000)
                    .at(10)
                    .wrote("c1", None, 9)
                    .at(2_000)
                    .granted("m", "c1", 1_000)
                    .at(2_010)
                    .wrote("c1", None, 2_009)
                    .ends(3_000),
            ),
            (
                "lost by the node and granted again, each hold has its own writes",
                lost()
                    .at(800)
                    .granted("m", "c1", 10_000)
                    .believes_times("c1", 2, 10_000)
                    .at(900)
                    .wrote("c1", None, 899)
                    .ends(3_000),
            ),
            (
                "a write of the lost hold is stale, although its owner has the lock again",
                lost()
                    .at(800)
                    .granted("m", "c1", 10_000)
                    .believes_times("c1", 2, 10_000)
                    .at(900)
                    .wrote("c1", None, 590)
                    .ends(3_000),
            ),
            (
                "a grant that its owner does not know of changes nothing about its writes",
                lost().at(800).granted("m", "c1", 10_000).at(900).wrote("c1", None, 899).ends(3_000),
            ),
            (
                "a nested hold is part of the outer one",
                Story::one_node()
                    .at(0)
                    .granted("m", "c1", 1_000)
                    .believes("c1", 1_000)
                    .at(500)
                    .granted("m", "c1", 1_000)
                    .believes_times("c1", 2, 1_000)
                    .at(1_501)
                    .granted("m", "c2", 1_000)
                    .believes("c2", 1_000)
                    .at(1_510)
                    .wrote("c2", None, 1_509)
                    .at(1_520)
                    .wrote("c1", None, 1_400)
                    .ends(3_000),
            ),
            // If the network takes no time, a grant and the write under it happen at one instant.
            (
                "a critical section of no time inside the other's",
                two().at(1_001).wrote("c2", None, 1_001).at(1_050).wrote("c1", None, 1_049).ends(3_000),
            ),
            (
                "a critical section of no time that begins when the other's ends",
                two().at(1_001).wrote("c1", None, 1_001).wrote("c2", None, 1_001).ends(3_000),
            ),
            ("who never held it", two().at(1_100).wrote("c3", None, 1_099).ends(3_000)),
            (
                "who believed it without any grant is judged by its belief",
                Story::one_node()
                    .at(0)
                    .believes("c1", 9_000)
                    .at(5)
                    .wrote("c1", None, 4)
                    .at(10)
                    .believes("c2", 9_000)
                    .at(15)
                    .wrote("c2", None, 14)
                    .at(20)
                    .wrote("c1", None, 19)
                    .ends(3_000),
            ),
        ];
        insta::assert_snapshot!(explained("l3", &stories));
    }

    /// A second level was granted at 0 s, and is over when its owner learns of it. So the write
    /// that follows belongs to the hold that began before, inside of which another owner wrote.
    /// Regression: the write counted as one of a hold that had begun just then, and no overlap was
    /// found.
    #[test]
    fn a_level_that_was_over_when_it_came_began_a_section() {
        let story = Story::one_node().at(0).granted("m", "c1", 10_000).granted("m", "c1", 1_000);
        let story =
            story.at(1).believes_times("c1", 1, 10_000).at(1_001).vanished("m", "c1", LossCause::Expired);
        let story = story.at(1_501).granted("m", "c2", 2_000).believes("c2", 2_000);
        let story = story.at(1_502).believes_times("c1", 2, 0).wrote("c2", None, 1_502);
        let history = story.at(1_503).wrote("c1", None, 1_502).ends(3_000);
        assert_eq!(first_line("l3", &history), "violated overlap=1ms times=1 writes=2");
    }

    /// Both have one of two permits, and write as they may. Regression: this was a violation.
    #[test]
    fn a_holder_of_one_of_several_permits_does_not_write_alone() {
        let story = Story::of_kind(LockKind::Semaphore { permits: 2 }).at(0).granted("m", "c1", 1_000);
        let story = story.granted("m", "c2", 1_000).at(10).wrote("c1", None, 9).wrote("c2", None, 9);
        let history = story.at(20).wrote("c1", None, 19).ends(3_000);
        assert_eq!(first_line("l3", &history), "undecided overlap=0ms times=0 writes=3");
    }
}
