//! Permits: are no more of a semaphore's permits promised at one instant than it has?
//!
//! A permit is promised from its grant until its release, or until its lease is over in true time,
//! if it has one. A server that takes it back earlier, because its clock or a client's says that it
//! has expired, and grants it again, has promised too many.

use lockstorm_world::time::True;

use crate::judge::{
    checker::{
        Checker,
        decision::{Case, Decided, Decision},
        evidence::{Evidence, promise::Promise},
    },
    history::{Lock, Owner},
    verdict::{Finding, Measure},
};

pub(in crate::judge::checker) const PERMITS: Checker = Checker {
    name: "permits",
    question: "Are no more permits promised at one instant than there are?",
    measures: &[("most", "how many were promised at once at most"), ("over", "how many too many that was")],
    bound: None,
    check,
};

/// The reason of a verdict.
pub(in crate::judge::checker) enum Because {
    NoSemaphore,
    NoGrant,
    AtMost(u64),
}

/// More promised permits than a semaphore has.
pub(in crate::judge::checker) struct TooMany<'a> {
    pub(in crate::judge::checker) lock: Lock,
    pub(in crate::judge::checker) out: u64,
    pub(in crate::judge::checker) allowed: u32,
    /// The promises of that instant.
    pub(in crate::judge::checker) holding: Vec<&'a Promise>,
}

/// Returns the highest number of permits promised at one instant, with the beginning and end of
/// that number.
fn fullest(promises: &[&Promise]) -> (u64, True, True) {
    let mut changes: Vec<(True, i64)> = Vec::new();
    for promise in promises {
        let mut had = 0;
        for (at, count) in &promise.counts {
            let count = i64::from(*count).max(1);
            changes.push((*at, count - had));
            had = count;
        }
        changes.push((promise.until, -had));
    }
    changes.sort_unstable();
    let (mut out, mut most) = (0, (0, True::ZERO, True::ZERO));
    // Events of one instant count together: a permit that passes on is not two.
    for changes in changes.chunk_by(|one, other| one.0 == other.0) {
        let (now, before) = (changes[0].0, out);
        out += changes.iter().map(|(_, change)| change).sum::<i64>();
        if out > most.0 {
            most = (out, now, True::MAX);
        } else if before == most.0 && out < before && most.2 == True::MAX {
            most.2 = now;
        }
    }
    (most.0.unsigned_abs(), most.1, most.2)
}

fn check(evidence: &Evidence<'_>) -> Finding {
    decide(evidence).worded(&PERMITS, evidence)
}

fn decide<'e>(evidence: &'e Evidence<'_>) -> Decided<Because, TooMany<'e>> {
    let history = evidence.history;
    let permits = |lock: Lock| history.lock(lock).kind.permits();
    let (mut most, mut over, mut worst) = (0, 0, None);
    for (lock, allowed) in
        history.header.locks().filter_map(|lock| permits(lock).map(|allowed| (lock, allowed)))
    {
        let of_lock: Vec<&Promise> =
            evidence.promises.iter().filter(|promise| promise.lock == lock).collect();
        let (out, from, until) = fullest(&of_lock);
        most = most.max(out);
        let excess = out.saturating_sub(allowed.into());
        if excess > over {
            over = excess;
            let holding = of_lock.iter().copied();
            let holding: Vec<&Promise> =
                holding.filter(|promise| promise.from <= from && from < promise.until).collect();
            let owners: Vec<Owner> = holding.iter().map(|promise| promise.owner).collect();
            let wrong = TooMany { lock, out, allowed, holding };
            worst = Some(Case { wrong, from, until, lock: Some(lock), owners });
        }
    }
    let semaphores = history.header.locks().any(|lock| permits(lock).is_some());
    let verdict = match worst {
        Some(case) => Decision::Violated(case),
        None if evidence.is_given_up() => Decision::GivenUp,
        None if !semaphores => Decision::Undecided(Because::NoSemaphore),
        None if most == 0 => Decision::Undecided(Because::NoGrant),
        None => Decision::Holds(Because::AtMost(most)),
    };
    Decided { verdict, measures: vec![Measure::count("most", most), Measure::count("over", over)] }
}

#[cfg(test)]
mod tests {
    use crate::judge::{
        checker::{
            self,
            tests::{explained, first_line},
        },
        history::{LockKind, LossCause, story::Story},
    };

    #[test]
    fn explanations() {
        let two = || {
            Story::of_kind(LockKind::Semaphore { permits: 2 })
                .at(0)
                .granted("m", "c1", 1_000)
                .granted("m", "c2", 1_000)
        };
        let leased = || {
            Story::of_kind(LockKind::Permits { permits: 2 })
                .at(0)
                .granted("m", "c1", 500)
                .granted("m", "c2", 1_000)
        };
        let stories = [
            ("two of two", two().ends(3_000)),
            (
                "a third once one is back",
                two().at(500).released("m", "c1").granted("m", "c3", 1_000).ends(3_000),
            ),
            ("a third too early", two().at(500).granted("m", "c3", 1_000).ends(3_000)),
            ("a third when the lease of one is over", leased().at(500).granted("m", "c3", 1_000).ends(3_000)),
            (
                "a third that is granted before, because a clock was wrong",
                leased()
                    .at(499)
                    .vanished("m", "c1", LossCause::Expired)
                    .granted("m", "c3", 1_000)
                    .ends(3_000),
            ),
            ("a lock is no semaphore", Story::one_node().at(0).granted("m", "c1", 1_000).ends(3_000)),
        ];
        insta::assert_snapshot!(explained("permits", &stories));
    }

    /// C1 has two of two permits and releases one, which C2 may have then. Regression: C1 counted
    /// as having both until the end.
    #[test]
    fn a_permit_that_was_given_back_is_not_out() {
        let story = Story::of_kind(LockKind::Semaphore { permits: 2 }).at(0).granted("m", "c1", 5_000);
        let story = story.granted("m", "c1", 5_000).at(500).released("m", "c1").granted("m", "c2", 5_000);
        assert_eq!(first_line("permits", &story.ends(3_000)), "holds most=2 over=0");
    }

    /// Two owners have one permit from 500 ms until the first releases its own: the page zooms to
    /// that period.
    #[test]
    fn the_witness_lasts_as_long_as_too_many_were_out() {
        let story = Story::of_kind(LockKind::Semaphore { permits: 1 }).at(0).granted("m", "c1", 5_000);
        let story = story.at(500).granted("m", "c2", 5_000).at(700).released("m", "c1");
        let findings = checker::check(&story.ends(3_000));
        let witness =
            findings.iter().find_map(|one| (one.checker == "permits").then(|| one.verdict.witness())?);
        let witness = witness.expect("it is violated");
        let at = |ms: i64| lockstorm_world::time::True::from_nanos(ms * 1_000_000);
        assert_eq!((witness.from, witness.until), (at(500), at(700)));
    }
}
