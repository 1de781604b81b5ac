//! Rates: does a limiter grant no more than its rate in any window, and as much as it can? If each
//! client has a rate of its own, grants to others do not count. A process that was started again is
//! another client.
//!
//! A grant is in the window until the clock of the granting node has advanced by the window's
//! length: until it shows that much more than at the grant, or than its lowest reading since. So a
//! clock that is stepped ahead ends windows early, and one that is set back makes them last longer,
//! as any server must count that has no other clock.
//!
//! * There are too many if the grants in one window exceed the rate. By true time there may be
//!   more, which is measured, but is not a violation.
//! * A request starves while it waits although the window has room for all that it asks for. The
//!   measured time is the uninterrupted period of this kind that ends when the request is granted
//!   or given up, or when the run ends: grants to others in that period did not use up its room.

use std::{cmp::Reverse, collections::BTreeMap, time::Duration};

use lockstorm_world::time::True;

use crate::judge::{
    checker::{
        Checker,
        decision::{Case, Decided, Decision},
        evidence::{Asked, Evidence},
        up_to_progress,
    },
    history::{Call, ClockId, EventKind, History, Host, Lock, LockKind, Outcome, Owner, Party},
    verdict::{Finding, Measure},
};

pub(in crate::judge::checker) const RATE: Checker = Checker {
    name: "rate",
    question: "Does a rate limiter grant no more than its rate in any window, and what it can grant?",
    measures: &[
        ("most", "how many permits it granted in one window of its node's clock at most"),
        ("over", "how many too many that was"),
        ("most_in_true_time", "how many permits it granted in one window of true time at most"),
        ("starved", "how long after the storm it kept a request waiting that could have been granted"),
        ("starved_in_storm", "the same, in the whole run"),
    ],
    bound: Some(|bounds| up_to_progress("starved", bounds)),
    check,
};

/// The reason of a verdict.
pub(in crate::judge::checker) enum Because {
    NoLimiter,
    NoGrant,
    NoCalm,
    /// The most permits in one window, and the longest wait for permits that were there.
    AtMost(u64, Duration),
}

/// A violation of a rate limiter.
pub(in crate::judge::checker) enum Wrong {
    /// It granted too many permits in one window.
    TooMany {
        many: u64,
        permits: u32,
        window: Duration,
        per_client: bool,
        /// The grants in the window: the instant, the client and the permits of each.
        grants: Vec<(True, Host, u64)>,
    },
    /// It kept a client waiting for this number of permits.
    Kept(u32),
}

/// A grant of permits by a node.
struct Grant {
    at: True,
    /// The instant at which it leaves the window.
    gone: True,
    by: Party,
    permits: u64,
}

fn grants(evidence: &Evidence<'_>, lock: Lock, window: Duration) -> Vec<Grant> {
    let history = evidence.history;
    let authority = &history.lock(lock).authority;
    let of_lock = history.events.iter().filter(|event| authority.group_of(event.host).is_some());
    let grant = of_lock.filter_map(|event| match event.kind {
        EventKind::Passed { lock: of, by, permits } if of == lock => {
            let gone =
                history.clock(event.host).advances(ClockId::Wall, event.at, window).unwrap_or(True::MAX);
            Some(Grant { at: event.at, gone, by, permits: permits.into() })
        }
        _ => None,
    });
    grant.collect()
}

/// Groups the grants that count together: all of them, or those of each client.
fn counted_together(
    history: &History,
    grants: Vec<Grant>,
    per_client: bool,
) -> BTreeMap<Option<&str>, Vec<Grant>> {
    let mut parts: BTreeMap<_, Vec<Grant>> = BTreeMap::new();
    for grant in grants {
        parts.entry(per_client.then(|| history.process(grant.by))).or_default().push(grant);
    }
    parts
}

/// Returns the most permits of one window, and the index of the grant that completes them.
fn fullest(grants: &[Grant], is_over: impl Fn(&Grant, &Grant) -> bool) -> (u64, usize) {
    let mut most = (0, 0);
    for (last, grant) in grants.iter().enumerate() {
        let within = grants[..=last].iter().filter(|earlier| !is_over(earlier, grant));
        let permits = within.map(|earlier| earlier.permits).sum();
        if permits > most.0 {
            most = (permits, last);
        }
    }
    most
}

/// Returns the earliest instant, not before `begin`, since which the window has had no more than
/// `room` permits of these grants without a break, until the last of these grants and after it.
fn free_since(grants: &[Grant], room: u64, begin: True) -> True {
    for last in (0..grants.len()).rev() {
        let now = grants[last].at;
        let mut within: Vec<&Grant> = grants[..=last].iter().filter(|grant| grant.gone > now).collect();
        // Each node counts the window by its own clock, so grants need not leave it in the order in
        // which they were made.
        within.sort_by_key(|grant| Reverse(grant.gone));
        let mut permits = 0;
        let full = within.iter().find(|grant| {
            permits += grant.permits;
            permits > room
        });
        // While this grant is in the window, with all that stay longer, there is too little room.
        if let Some(full) = full {
            return full.gone.max(begin);
        }
        if now <= begin {
            break;
        }
    }
    begin
}

/// Returns the end of a request's wait, and the grants before it.
fn end<'a>(call: &Asked<'_>, grants: &'a [Grant], asked: u64, run: True) -> (True, &'a [Grant]) {
    let over = call.over.unwrap_or(run);
    let is_own = |grant: &Grant| {
        (grant.by.client, grant.permits) == (call.host, asked) && call.from <= grant.at && grant.at <= over
    };
    let granted = matches!(call.returned, Some((_, Outcome::Ok)));
    match grants.iter().rposition(is_own).filter(|_| granted) {
        Some(own) => (grants[own].at, &grants[..own]),
        None => (over, &grants[..grants.partition_point(|grant| grant.at < over)]),
    }
}

/// A request that was kept waiting although it could have been granted.
struct Starved {
    lock: Lock,
    from: True,
    until: True,
    owner: Owner,
    permits: u32,
}

/// Returns the period for which each request of a lock starved. `grants` returns the grants that
/// count for a client.
fn starved<'a>(
    evidence: &Evidence<'_>,
    lock: Lock,
    grants: impl Fn(Party) -> &'a [Grant],
    rate: u64,
) -> Vec<Starved> {
    let mut all = Vec::new();
    for call in evidence.calls.iter().filter(|call| call.lock == lock) {
        let Call::Take { permits, .. } = call.call else { continue };
        let Some(room) = rate.checked_sub(permits.into()) else { continue };
        let grants = grants(Party { client: call.host, owner: Some(call.owner) });
        let (until, before) = end(call, grants, permits.into(), evidence.history.header.end);
        // A grant in the very instant in which the wait ended has taken no room from the request
        // before.
        let before = &before[..before.partition_point(|grant| grant.at < until)];
        let from = free_since(before, room, call.from);
        all.push(Starved { lock, from, until, owner: call.owner, permits });
    }
    all
}

fn check(evidence: &Evidence<'_>) -> Finding {
    decide(evidence).worded(&RATE, evidence)
}

fn decide(evidence: &Evidence<'_>) -> Decided<Because, Wrong> {
    let history = evidence.history;
    let header = &history.header;
    let calm = header.calm.unwrap_or(True::MAX);
    let (mut most, mut over, mut in_true_time, mut limiters, mut asked) = (0, 0, 0, 0, 0);
    let (mut worst, mut waits): (Option<Case<Wrong>>, Vec<Starved>) = (None, Vec::new());
    for lock in header.locks() {
        let LockKind::Rate { permits, window_ms, per_client } = history.lock(lock).kind else { continue };
        limiters += 1;
        let window = Duration::from_millis(window_ms);
        let parts = counted_together(history, grants(evidence, lock, window), per_client);
        for grants in parts.values() {
            let (many, last) = fullest(grants, |one, other| one.gone <= other.at);
            most = most.max(many);
            in_true_time = in_true_time.max(fullest(grants, |one, other| other.at >= one.at + window).0);
            let excess = many.saturating_sub(permits.into());
            if excess > over {
                over = excess;
                worst = Some(too_many(evidence, lock, &grants[..=last], many));
            }
        }
        let part =
            |by: Party| parts.get(&per_client.then(|| history.process(by))).map_or(&[][..], Vec::as_slice);
        let requests = starved(evidence, lock, part, permits.into());
        asked += requests.len();
        waits.extend(requests);
    }
    let after = |wait: &Starved| wait.until.since(wait.from.max(calm));
    let longest = waits.iter().max_by_key(|wait| after(wait));
    let kept = longest.map_or(Duration::ZERO, after);
    let in_storm = waits.iter().map(|wait| wait.until.since(wait.from)).max().unwrap_or_default();
    let late = longest.filter(|_| kept > header.bounds.progress).map(|wait| kept_waiting(wait, calm));
    let verdict = match worst.or(late) {
        Some(case) => Decision::Violated(case),
        None if evidence.is_given_up() => Decision::GivenUp,
        None if limiters == 0 => Decision::Undecided(Because::NoLimiter),
        None if most == 0 || asked == 0 => Decision::Undecided(Because::NoGrant),
        None if header.calm.is_none() => Decision::Undecided(Because::NoCalm),
        None => Decision::Holds(Because::AtMost(most, kept)),
    };
    let measures = vec![
        Measure::count("most", most),
        Measure::count("over", over),
        Measure::count("most_in_true_time", in_true_time),
        Measure::time("starved", kept),
        Measure::time("starved_in_storm", in_storm),
    ];
    Decided { verdict, measures }
}

fn too_many(evidence: &Evidence<'_>, lock: Lock, grants: &[Grant], many: u64) -> Case<Wrong> {
    let history = evidence.history;
    let LockKind::Rate { permits, window_ms, per_client } = history.lock(lock).kind else {
        unreachable!("only rate limiters have rates")
    };
    let (from, until) = (grants.last().map(|last| last.at), grants.last().map(|last| last.gone));
    let (from, until) = (from.unwrap_or(True::ZERO), until.unwrap_or(True::MAX).min(history.header.end));
    let within = grants.iter().filter(|grant| grant.gone > from);
    let grants = within.map(|grant| (grant.at, grant.by.client, grant.permits)).collect();
    let window = Duration::from_millis(window_ms);
    let wrong = Wrong::TooMany { many, permits, window, per_client, grants };
    Case { wrong, from, until, lock: Some(lock), owners: Vec::new() }
}

fn kept_waiting(wait: &Starved, calm: True) -> Case<Wrong> {
    let (wrong, lock, owners) = (Wrong::Kept(wait.permits), Some(wait.lock), vec![wait.owner]);
    Case { wrong, from: wait.from.max(calm), until: wait.until, lock, owners }
}

#[cfg(test)]
mod tests {
    use lockstorm_world::time::True;

    use super::{Grant, free_since};
    use crate::judge::{
        checker::tests::explained,
        history::{Bounds, Host, LockKind, Outcome, Party, story::Story},
    };

    fn limiter() -> Story {
        limiter_of(false)
    }

    fn limiter_of(per_client: bool) -> Story {
        let bounds = Bounds { progress: std::time::Duration::from_secs(5), ..Bounds::default() };
        Story::of_kind(LockKind::Rate { permits: 3, window_ms: 1_000, per_client }).bounds(bounds).calm()
    }

    /// A client asks for permits and is granted them immediately.
    fn takes(story: Story, at: i64, client: &str, permits: u32) -> Story {
        story
            .at(at)
            .takes(client, permits)
            .passed("m", client, permits)
            .at(at + 1)
            .returns(client, Outcome::Ok)
    }

    #[test]
    fn explanations() {
        let three = || takes(takes(limiter(), 100, "c1", 2), 200, "c2", 1);
        let stories = [
            ("again when the first are over", takes(three(), 1_100, "c1", 2).ends(9_000)),
            ("within the window", takes(three(), 1_099, "c1", 1).ends(9_000)),
            (
                "the clock is stepped ahead: two windows in one of true time",
                takes(three().at(500).clocks("m", [1_500, 500, 500], [0; 3]), 600, "c1", 2).ends(9_000),
            ),
            (
                "the clock is set back: what was granted counts on",
                takes(three().at(500).clocks("m", [100, 500, 500], [0; 3]), 1_300, "c1", 1).ends(9_000),
            ),
            ("what is there is not granted", three().at(300).takes("c3", 3).ends(9_000)),
            (
                "what is not there is waited for",
                three()
                    .at(300)
                    .takes("c3", 3)
                    .at(1_200)
                    .passed("m", "c3", 3)
                    .returns("c3", Outcome::Ok)
                    .ends(9_000),
            ),
            (
                "it starves until it is granted too much beside another in the same instant",
                limiter()
                    .at(300)
                    .takes("c3", 1)
                    .at(4_300)
                    .takes("c4", 3)
                    .passed("m", "c4", 3)
                    .passed("m", "c3", 1)
                    .returns("c3", Outcome::Ok)
                    .ends(9_000),
            ),
            (
                "each client has the rate by itself",
                takes(takes(limiter_of(true), 100, "c1", 3), 200, "c2", 3).ends(9_000),
            ),
            (
                "a client has more than its rate",
                takes(takes(takes(limiter_of(true), 100, "c1", 3), 200, "c2", 1), 300, "c1", 1).ends(9_000),
            ),
            (
                "a client starves for what others were granted",
                takes(limiter_of(true), 100, "c1", 3).at(200).takes("c2", 1).ends(9_000),
            ),
            ("nothing is asked for", limiter().ends(9_000)),
            ("no limiter", Story::one_node().ends(9_000)),
        ];
        insta::assert_snapshot!(explained("rate", &stories));
    }
    /// Regression: a request had no room until the first of two grants left the window, although
    /// the second, of a node whose clock is fast, left it earlier and made room.
    #[test]
    fn what_was_granted_later_by_a_fast_clock_makes_room_earlier() {
        let at = |ms: i64| True::from_nanos(ms * 1_000_000);
        let by = Party { client: Host(0), owner: None };
        let grant = |from, gone| Grant { at: at(from), gone: at(gone), by, permits: 1 };
        let grants = [grant(0, 1_000), grant(10, 990)];
        for (room, since) in [(0, 1_000), (1, 990), (2, 5)] {
            assert_eq!(free_since(&grants, room, at(5)), at(since), "room for {room}");
        }
        // A grant that leaves the window in the instant of the next grant made room for it.
        assert_eq!(free_since(&[grant(0, 10), grant(10, 1_000)], 1, at(5)), at(5));
    }
}
