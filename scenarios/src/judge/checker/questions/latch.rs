//! Latches: does a latch open once it was counted down, no sooner, and does it let all waiters go?
//!
//! A latch is closed from the instant at which its master's count exceeds zero until the count is
//! zero. The counts of all nodes that grant it are taken in the order of true time. Its count is
//! the highest while it was closed.
//!
//! * It opens too early if fewer calls can have counted it down since it was closed than its count,
//!   and no call can have deleted it. A call can have done so between its invocation and its
//!   successful return, or at any later time if its result is unknown. A call that waits for the
//!   latch ends too early if it returns successfully although the latch was closed during the whole
//!   call.
//! * A count-down is lost if its call was made and returned successfully while the latch was
//!   closed, and the count has fallen by less than the number of these calls.
//! * A waiter is kept while it waits although the latch is open. In the storm this is allowed.

use std::time::Duration;

use lockstorm_world::time::True;

use crate::judge::{
    checker::{
        Checker,
        decision::{Case, Decided, Decision},
        evidence::{Asked, Evidence},
        up_to_progress,
    },
    history::{Call, EventKind, Lock, LockKind, Outcome, Owner},
    verdict::{Finding, Measure},
};

pub(in crate::judge::checker) const LATCH: Checker = Checker {
    name: "latch",
    question: "Does a latch open once it was counted down, no sooner, and let all go that wait?",
    measures: &[
        ("early", "how many times it opened, or let a waiter go, before it was counted down"),
        ("lost", "how many count-downs that had succeeded were missing at most"),
        ("kept", "how long after the storm it kept a waiter waiting although it was open"),
        ("kept_in_storm", "the same, in the whole run"),
    ],
    bound: Some(|bounds| up_to_progress("kept", bounds)),
    check,
};

/// A period in which a latch was closed.
struct Closed {
    from: True,
    /// The instant at which it opened; the end of the run if it did not.
    until: True,
    opened: bool,
    /// The highest count in the period.
    count: u64,
    /// The counts, with the instant of each.
    left: Vec<(True, u64)>,
}

/// Returns the periods in which a latch was closed, in order.
fn closed(evidence: &Evidence<'_>, lock: Lock) -> Vec<Closed> {
    let history = evidence.history;
    let authority = &history.lock(lock).authority;
    let mut all: Vec<Closed> = Vec::new();
    let mut is_open = true;
    for event in &history.events {
        let EventKind::Counted { lock: of, left } = event.kind else { continue };
        if of != lock || authority.group_of(event.host).is_none() {
            continue;
        }
        let (at, end) = (event.at, history.header.end);
        match all.last_mut().filter(|_| !is_open) {
            Some(last) if left == 0 => {
                (last.until, last.opened, is_open) = (at, true, true);
            }
            Some(last) => {
                last.count = last.count.max(left);
                last.left.push((at, left));
            }
            None if left == 0 => {}
            None => {
                is_open = false;
                all.push(Closed { from: at, until: end, opened: false, count: left, left: vec![(at, left)] });
            }
        }
    }
    all
}

/// The reason of a verdict.
pub(in crate::judge::checker) enum Because {
    NoLatch,
    NoWait,
    NoCalm,
    /// The number of waits, and the longest one for an open latch.
    Waits(usize, Duration),
}

/// A violation of a latch.
#[derive(Clone, Copy)]
pub(in crate::judge::checker) enum Wrong {
    /// It opened before this number of count-downs was reached, of which `made` had been asked for.
    Opened { needed: u64, made: u64 },
    /// A waiter went on although it was closed since this instant.
    Passed { closed: True },
    /// The count was this much higher than what had been reported as counted down.
    Lost(u64),
    /// A waiter was kept although it was open.
    Kept,
}

/// Returns true if the call may have taken effect between two instants.
fn may_count(call: &Asked<'_>, from: True, until: True) -> bool {
    let in_time = match call.returned {
        Some((at, Outcome::Ok)) => at >= from,
        Some((_, Outcome::Refused | Outcome::Failed { definite: true, .. })) => false,
        // Its request may still be on its way.
        _ => true,
    };
    call.from <= until && in_time
}

/// Returns the openings that came too early.
fn openings(lock: Lock, closed: &[Closed], calls: &[&Asked<'_>]) -> Vec<Case<Wrong>> {
    let mut all = Vec::new();
    for part in closed.iter().filter(|part| part.opened) {
        let may_have = calls.iter().filter(|call| may_count(call, part.from, part.until));
        let (mut made, mut deleted, mut owners) = (0, false, Vec::new());
        for call in may_have {
            match call.call {
                Call::CountDown => made += 1,
                Call::Delete => deleted = true,
                _ => continue,
            }
            owners.push(call.owner);
        }
        if made < part.count && !deleted {
            owners.sort_unstable();
            owners.dedup();
            let wrong = Wrong::Opened { needed: part.count, made };
            all.push(Case { wrong, from: part.from, until: part.until, lock: Some(lock), owners });
        }
    }
    all
}

/// Returns the waiting calls that succeeded although the latch had been closed since before them.
fn passages(lock: Lock, closed: &[Closed], calls: &[&Asked<'_>]) -> Vec<Case<Wrong>> {
    let mut all = Vec::new();
    for call in calls.iter().filter(|call| matches!(call.call, Call::Await { .. })) {
        let Some((at, Outcome::Ok)) = call.returned else { continue };
        let still = |part: &&Closed| part.from < call.from && (at < part.until || !part.opened);
        let Some(part) = closed.iter().find(still) else { continue };
        let wrong = Wrong::Passed { closed: part.from };
        all.push(Case { wrong, from: call.from, until: at, lock: Some(lock), owners: vec![call.owner] });
    }
    all
}

/// Returns the largest number of missing count-downs, the first instant at which that many were
/// missing, and the end of that closed period.
fn lost(closed: &[Closed], calls: &[&Asked<'_>]) -> Option<(u64, True, True)> {
    let mut worst: Option<(u64, True, True)> = None;
    for part in closed {
        let succeeded = calls.iter().filter(|call| call.call == Call::CountDown && call.from > part.from);
        let mut at: Vec<True> = succeeded
            .filter_map(|call| call.returned.filter(|(_, outcome)| **outcome == Outcome::Ok))
            .map(|(at, _)| at)
            .filter(|at| *at < part.until || !part.opened)
            .collect();
        at.sort_unstable();
        let changed = part.left.iter().map(|(at, _)| *at).filter(|at| *at < part.until || !part.opened);
        for instant in at.iter().copied().chain(changed) {
            let reported = at.partition_point(|at| *at <= instant) as u64;
            let left =
                part.left.iter().rev().find(|(at, _)| *at <= instant).map_or(part.count, |(_, left)| *left);
            let missing = reported.saturating_sub(part.count - left);
            if missing > worst.map_or(0, |(most, ..)| most) {
                worst = Some((missing, instant, part.until));
            }
        }
    }
    worst
}

/// Returns the longest time for which a waiter was kept after an instant, with its owner and its
/// beginning.
fn kept(closed: &[Closed], calls: &[&Asked<'_>], after: True, end: True) -> Option<(Duration, Owner, True)> {
    let waits = calls.iter().filter(|call| matches!(call.call, Call::Await { .. }));
    // Events of one instant count together: a latch that opens as it is set was not closed.
    let closed = closed.iter().filter(|part| part.from < part.until || !part.opened);
    let mut worst: Option<(Duration, Owner, True)> = None;
    for call in waits {
        let until = call.over.unwrap_or(end);
        let begins = std::iter::once(True::ZERO)
            .chain(closed.clone().filter(|part| part.opened).map(|part| part.until));
        let ends = closed.clone().map(|part| part.from).chain([True::MAX]);
        for (opens, closes) in begins.zip(ends) {
            let from = opens.max(call.from).max(after);
            let length = closes.min(until).since(from);
            if !length.is_zero() && worst.is_none_or(|(longest, ..)| length > longest) {
                worst = Some((length, call.owner, from));
            }
        }
    }
    worst
}

fn check(evidence: &Evidence<'_>) -> Finding {
    decide(evidence).worded(&LATCH, evidence)
}

fn decide(evidence: &Evidence<'_>) -> Decided<Because, Wrong> {
    let history = evidence.history;
    let header = &history.header;
    let (calm, bound) = (header.calm.unwrap_or(True::MAX), header.bounds.progress);
    let (mut early, mut missing, mut longest, mut in_storm) = (0, 0, Duration::ZERO, Duration::ZERO);
    let (mut wrong, mut stuck): (Option<Case<Wrong>>, Option<Case<Wrong>>) = (None, None);
    let is_latch = |lock: &Lock| matches!(history.lock(*lock).kind, LockKind::Latch { .. });
    let latches: Vec<Lock> = header.locks().filter(is_latch).collect();
    let mut waits = 0;
    for &lock in &latches {
        let closed = closed(evidence, lock);
        let calls: Vec<&Asked<'_>> = evidence.calls.iter().filter(|call| call.lock == lock).collect();
        waits += calls.iter().filter(|call| matches!(call.call, Call::Await { .. })).count();
        let mut too_early = openings(lock, &closed, &calls);
        too_early.extend(passages(lock, &closed, &calls));
        early += too_early.len();
        wrong = wrong.or(too_early.into_iter().next());
        if let Some((most, from, until)) = lost(&closed, &calls).filter(|(most, ..)| *most > missing) {
            missing = most;
            let (lost, lock, owners) = (Wrong::Lost(most), Some(lock), Vec::new());
            wrong = wrong.or(Some(Case { wrong: lost, from, until, lock, owners }));
        }
        let of_all = kept(&closed, &calls, True::ZERO, header.end);
        in_storm = of_all.map_or(in_storm, |(length, ..)| in_storm.max(length));
        if let Some((length, owner, from)) =
            kept(&closed, &calls, calm, header.end).filter(|(length, ..)| *length > longest)
        {
            longest = length;
            let (until, owners) = (from + length, vec![owner]);
            stuck = Some(Case { wrong: Wrong::Kept, from, until, lock: Some(lock), owners });
        }
    }
    let verdict = match wrong.or(stuck.filter(|_| longest > bound)) {
        Some(case) => Decision::Violated(case),
        None if evidence.is_given_up() => Decision::GivenUp,
        None if latches.is_empty() => Decision::Undecided(Because::NoLatch),
        None if waits == 0 => Decision::Undecided(Because::NoWait),
        None if header.calm.is_none() => Decision::Undecided(Because::NoCalm),
        None => Decision::Holds(Because::Waits(waits, longest)),
    };
    let measures = vec![
        Measure::count("early", early as u64),
        Measure::count("lost", missing),
        Measure::time("kept", longest),
        Measure::time("kept_in_storm", in_storm),
    ];
    Decided { verdict, measures }
}

#[cfg(test)]
mod tests {
    use crate::judge::{
        checker::tests::explained,
        history::{Bounds, Call, LockKind, Outcome, Role, Wait, story::Story},
    };

    const WAIT: Call = Call::Await { wait: Wait::Unbounded };

    /// A latch is set to two, and c3 waits for it.
    fn two(story: Story) -> Story {
        story.at(100).counted("m", 2).at(200).calls("c3", WAIT)
    }

    fn latch() -> Story {
        let bounds = Bounds { progress: std::time::Duration::from_secs(5), ..Bounds::default() };
        let kind = LockKind::Latch { count: 2 };
        two(Story::failover(kind).bounds(bounds)).at(300).calm()
    }

    fn down(story: Story, at: i64, client: &str, left: u64) -> Story {
        let story = story.at(at).calls(client, Call::CountDown).counted("m", left);
        story.at(at + 1).returns(client, Outcome::Ok)
    }

    #[test]
    fn explanations() {
        let set_at_100 = || Story::of_kind(LockKind::Latch { count: 2 }).at(100).counted("m", 2);
        let lost_reply = || Outcome::Failed { definite: false, message: "no reply".into() };
        let stories = [
            (
                "the waiter goes on with the second of two",
                down(down(latch(), 500, "c1", 1), 600, "c2", 0)
                    .at(610)
                    .returns("c3", Outcome::Ok)
                    .ends(9_000),
            ),
            (
                "counted down twice for one call",
                latch()
                    .at(500)
                    .calls("c1", Call::CountDown)
                    .counted("m", 1)
                    .at(1_000)
                    .counted("m", 0)
                    .at(1_001)
                    .returns("c1", lost_reply())
                    .returns("c3", Outcome::Ok)
                    .ends(9_000),
            ),
            (
                "a waiter that does not look",
                down(latch(), 500, "c1", 1).at(600).returns("c3", Outcome::Ok).ends(9_000),
            ),
            (
                "a waiter that goes on before the last count-down",
                down(down(latch(), 500, "c1", 1).at(600).returns("c3", Outcome::Ok), 700, "c2", 0)
                    .ends(9_000),
            ),
            (
                "a count-down that a failover lost in the instant in which the run ends",
                down(latch(), 500, "c1", 1).at(700).became("r", Role::Master).counted("r", 2).ends(700),
            ),
            ("deleted on request", latch().at(500).calls("c1", Call::Delete).counted("m", 0).ends(900)),
            ("gone by itself", latch().at(500).fault("m flushed", &["m"]).counted("m", 0).ends(900)),
            ("a waiter that is not told", down(down(latch(), 500, "c1", 1), 600, "c2", 0).ends(9_000)),
            (
                "a waiter that is not told, while the latch is set and opens in one instant",
                down(down(latch(), 500, "c1", 1), 600, "c2", 0)
                    .at(1_000)
                    .counted("m", 2)
                    .counted("m", 0)
                    .ends(9_000),
            ),
            (
                "a count-down that a failover lost",
                down(latch(), 500, "c1", 1).at(700).became("r", Role::Master).counted("r", 2).ends(9_000),
            ),
            (
                "a waiter that asks in the instant in which the latch is set may have asked before",
                set_at_100().calls("c4", WAIT).at(110).returns("c4", Outcome::Ok).at(300).calm().ends(900),
            ),
            (
                "a count-down in the instant in which the latch is set may have been of the one before",
                set_at_100()
                    .calls("c1", Call::CountDown)
                    .at(101)
                    .returns("c1", Outcome::Ok)
                    .at(200)
                    .calls("c3", WAIT)
                    .at(300)
                    .calm()
                    .ends(900),
            ),
            (
                "a count-down that comes back in the instant in which the latch opens may have found it open",
                down(latch(), 500, "c1", 1)
                    .at(590)
                    .calls("c2", Call::CountDown)
                    .calls("c4", Call::CountDown)
                    .at(600)
                    .counted("m", 0)
                    .returns("c2", Outcome::Ok)
                    .returns("c4", Outcome::Ok)
                    .returns("c3", Outcome::Ok)
                    .ends(900),
            ),
            ("no waiter", Story::of_kind(LockKind::Latch { count: 1 }).at(1).calm().ends(9_000)),
            ("no latch", Story::one_node().ends(9_000)),
        ];
        insta::assert_snapshot!(explained("latch", &stories));
    }
}
