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
        evidence::{
            Evidence,
            ending::ending,
            interval::{Overlap, worst},
            overlap::{Found, undecided},
            section::{Section, Write, sections, tested, writes},
            words,
        },
    },
    verdict::{Finding, Measure, Verdict, Witness},
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

fn check(evidence: &Evidence<'_>) -> Finding {
    let writes = writes(evidence);
    let sections = sections(evidence, &writes);
    let found = Found::of(evidence, &sections);
    let stranger = writes.iter().find(|write| write.since.is_none());
    let verdict = match (worst(&found.certain), stranger, worst(&found.within)) {
        (Some(overlap), _, _) => Verdict::Violated { witness: witness(evidence, overlap) },
        (None, Some(write), _) => Verdict::Violated { witness: without_lock(evidence, write) },
        (None, None, Some(overlap)) => undecided(evidence, &witness(evidence, overlap)),
        (None, None, None) => quiet(evidence, &writes, &sections),
    };
    let mut measures = found.measures();
    measures.push(Measure::count("writes", writes.len() as u64));
    L3.finding(verdict, measures)
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

fn witness(evidence: &Evidence<'_>, overlap: &Overlap<'_, Section>) -> Witness {
    let history = evidence.history;
    let Overlap { first, second, from, .. } = overlap;
    let owners = vec![first.owner, second.owner];
    let (one, other) = (history.owner_name(first.owner), history.owner_name(second.owner));
    let summary = if first.until > second.until {
        format!(
            "{one} wrote at {}, after {other}, who got the lock later, had written.",
            words::instant(first.until)
        )
    } else {
        format!("{one} wrote at {} inside the critical section of {other}.", words::instant(first.until))
    };
    let mut story = vec![section(evidence, first)];
    story.extend(ending(history, first.lock, &owners, first.from, *from));
    story.push(section(evidence, second));
    // The wrong write is the first owner's last one, however long after the other's.
    Witness { summary, story, from: *from, until: first.until, lock: Some(first.lock), owners }
}

fn without_lock(evidence: &Evidence<'_>, write: &Write) -> Witness {
    let owner = evidence.history.owner_name(write.owner);
    let summary =
        format!("{owner} wrote at {} without ever having held the lock.", words::instant(write.arrived));
    let story = Vec::new();
    let (from, until) = (write.arrived, write.arrived);
    Witness { summary, story, from, until, lock: Some(write.lock), owners: vec![write.owner] }
}

fn quiet(evidence: &Evidence<'_>, writes: &[Write], sections: &[Section]) -> Verdict {
    if let Some(why) = evidence.given_up() {
        return Verdict::undecided(why);
    }
    if !tested(evidence, writes) {
        return Verdict::undecided("No owner wrote to the resource, or only one owner ever held the lock.");
    }
    Verdict::holds(format!(
        "{} in {}, none inside another's.",
        words::many(writes.len(), "write"),
        words::many(sections.len(), "critical section")
    ))
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
