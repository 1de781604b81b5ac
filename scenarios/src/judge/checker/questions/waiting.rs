//! Waiting: does a lock serve each owner that waits for it?
//!
//! The checker measures how long owners wait, how many are never served and how evenly grants are
//! shared. A file's expectation may bound these measures for any lock. Only a fair lock promises an
//! order, so just one case is a violation by itself: a lock that only one owner may hold starves a
//! waiter, which asks all the time and is overtaken again and again. An owner that
//! [wants](crate::judge::checker::evidence::wants) a lock is overtaken whenever another owner gets
//! it that began to want it later.
//!
//! Ten or a hundred overtakes may be chance. If the lock were drawn evenly by lot among `n` owners,
//! the probability that an owner is overtaken more than `100 n` times in a row would be below
//! e^-100. A waiter that asks ten times a second, while another owner is back within three
//! milliseconds of each release, is overtaken about thirty times on average. Overtakes while no
//! call of the waiter is under way do not count, because it does not ask then. Overtakes in a call
//! do not count once a fault hits the waiter's client or a host that is not a client, because the
//! waiter may not be heard then.
//!
//! The measure of evenness is the index of Jain, Chiu and Hawe (*A Quantitative Measure of Fairness
//! and Discrimination for Resource Allocation in Shared Computer Systems*, DEC-TR-301, 1984): the
//! square of the sum of the shares, divided by the sum of their squares and by their number. It is
//! 1 if all are served equally often, and `k / n` if `k` of `n` are and the others never.

use std::{cmp::Reverse, collections::BTreeMap, time::Duration};

use lockstorm_world::time::True;

use crate::judge::{
    checker::{
        Checker,
        decision::{Case, Decided, Decision},
        evidence::{
            Asked, Evidence,
            wants::{Want, wants},
        },
    },
    history::{Fault, History, Host, HostKind, Lock, LockKind, Owner},
    verdict::{Finding, Measure},
};

pub(in crate::judge::checker) const WAITING: Checker = Checker {
    name: "waiting",
    question: "Does the lock serve each owner that waits for it?",
    measures: &[
        (
            "waited",
            "how long an owner that wanted the lock waited at most, until it got it, asked no more or the run ended",
        ),
        ("waited_p99", "how long 99 of 100 waited at most"),
        ("unserved", "how many owners asked for the lock and never got it"),
        (
            "overtaken",
            "how many times at most, while an owner asked, others got the lock that began to ask later",
        ),
        (
            "jain",
            "how evenly the lock was shared among those who wanted it more than once or in vain: from 1, all got it equally often, down to 1/n",
        ),
    ],
    bound: Some(|bounds| {
        format!(
            "`overtaken` up to {} for each owner that asked, of a lock that only one may hold",
            bounds.overtaken
        )
    }),
    check,
};

/// The reason of a verdict.
pub(in crate::judge::checker) enum Because {
    NoWant,
    Served {
        wants: usize,
        /// The longest wait.
        waited: Duration,
        /// The number of owners that never got a lock.
        unserved: usize,
    },
}

/// A waiter that was overtaken too often.
pub(in crate::judge::checker) struct Starved {
    pub(in crate::judge::checker) lock: Lock,
    /// True if it got the lock in the end.
    pub(in crate::judge::checker) granted: bool,
    pub(in crate::judge::checker) times: u64,
    pub(in crate::judge::checker) bound: u64,
    /// The number of times that each owner got the lock, most first.
    pub(in crate::judge::checker) shares: Vec<(u64, Owner)>,
}

/// Spans of time, in the order of their beginnings, each with the latest end of all spans up to it.
struct Spans(Vec<(True, True)>);

impl Spans {
    fn of(spans: impl Iterator<Item = (True, True)>) -> Self {
        let mut spans: Vec<(True, True)> = spans.collect();
        spans.sort_unstable();
        for at in 1..spans.len() {
            spans[at].1 = spans[at].1.max(spans[at - 1].1);
        }
        Self(spans)
    }

    /// Returns true if a span had begun at or before `at`, and was not over.
    fn last_at(&self, at: True) -> bool {
        self.last(self.0.partition_point(|(from, _)| *from <= at), at)
    }

    /// Returns true if a span had begun before `at`, and was not over.
    fn last_through(&self, at: True) -> bool {
        self.last(self.0.partition_point(|(from, _)| *from < at), at)
    }

    fn last(&self, begun: usize, at: True) -> bool {
        self.0[..begun].last().is_some_and(|(_, until)| *until > at)
    }

    /// Returns the beginning of the next span, at `at` or later.
    fn next(&self, at: True) -> Option<True> {
        self.0.get(self.0.partition_point(|(from, _)| *from < at)).map(|(from, _)| *from)
    }
}

/// Returns for each client the spans of faults because of which its calls may not be heard: faults
/// on the client, on a host that is not a client, or without a target.
fn troubles(history: &History) -> BTreeMap<Host, Spans> {
    let of_client = |client: Host| {
        // An instantaneous fault ends when it begins.
        let end = |fault: &Fault| if fault.lasts { fault.until.unwrap_or(True::MAX) } else { fault.from };
        let faults = history.faults.iter().filter(|fault| history.may_concern(fault, client));
        (client, Spans::of(faults.map(|fault| (fault.from, end(fault)))))
    };
    history.header.hosts_of(HostKind::Client).map(of_client).collect()
}

/// The wants and the grants of one lock.
#[derive(Default)]
struct Served {
    /// The number of times that each owner wanted the lock, and got it.
    owners: BTreeMap<Owner, (u64, u64)>,
    /// For each grant its instant, the instant since which the owner had wanted the lock, and the
    /// owner.
    grants: Vec<(True, True, Owner)>,
}

impl Served {
    /// Collects the wants and the grants of each lock.
    fn of(evidence: &Evidence<'_>, wants: &[Want]) -> BTreeMap<Lock, Served> {
        let mut held: BTreeMap<(Lock, Owner), Vec<(True, True)>> = BTreeMap::new();
        for belief in &evidence.beliefs {
            held.entry((belief.lock, belief.owner)).or_default().push((belief.from, belief.until));
        }
        let held: BTreeMap<_, _> =
            held.into_iter().map(|(of, spans)| (of, Spans::of(spans.into_iter()))).collect();
        let mut locks: BTreeMap<Lock, Served> = BTreeMap::new();
        for want in wants {
            let served = locks.entry(want.lock).or_default();
            let (wanted, got) = served.owners.entry(want.owner).or_default();
            *wanted += 1;
            *got += u64::from(want.granted);
            // An owner that already has the lock takes it from no other owner. The belief of an
            // owner that is served in the instant of its request begins with that request, and does
            // not count as earlier.
            let at_once = want.granted && want.from == want.until;
            let last = if at_once { Spans::last_through } else { Spans::last_at };
            let has_it = held.get(&(want.lock, want.owner)).is_some_and(|spans| last(spans, want.from));
            if want.granted && !has_it {
                served.grants.push((want.until, want.from, want.owner));
            }
        }
        locks.values_mut().for_each(|served| served.grants.sort_unstable());
        locks
    }

    /// Returns Jain's index over the owners that wanted the lock more than once, or wanted it
    /// without success.
    fn jain(&self) -> f64 {
        let shares = self.owners.values().filter(|owner| **owner != (1, 1)).map(|(_, got)| *got);
        let (n, sum, squares) = shares
            .fold((0_u64, 0_u64, 0_u64), |(n, sum, squares), got| (n + 1, sum + got, squares + got * got));
        if squares == 0 { 1.0 } else { (sum * sum) as f64 / (n * squares) as f64 }
    }

    /// Returns the owners that asked for the lock and never got it.
    fn unserved(&self) -> impl Iterator<Item = Owner> {
        self.owners.iter().filter(|(_, (_, got))| *got == 0).map(|(owner, _)| *owner)
    }

    /// Returns the number of times that a wanting owner was overtaken between two instants.
    fn overtaken(&self, want: &Want, from: True, until: True) -> u64 {
        let first = self.grants.partition_point(|(at, ..)| *at <= from);
        let grants = self.grants[first..].iter().take_while(|(at, ..)| *at < until);
        grants.filter(|(_, since, owner)| *owner != want.owner && *since > want.from).count() as u64
    }
}

/// Returns the number of times that an owner was overtaken while it wanted a lock.
fn overtaken(evidence: &Evidence<'_>, want: &Want, served: &Served, troubles: &Spans) -> u64 {
    let in_call = |call: &usize| {
        let Asked { from, over, .. } = evidence.calls[*call];
        if troubles.last_at(from) {
            return 0;
        }
        let over = over.unwrap_or(evidence.history.header.end);
        served.overtaken(want, from, troubles.next(from).map_or(over, |trouble| trouble.min(over)))
    };
    want.calls.iter().map(in_call).sum()
}

/// Returns the time that 99 of 100 do not exceed, which is the one at that place in their order.
fn p99(times: &[Duration]) -> Duration {
    let mut times = times.to_vec();
    times.sort_unstable();
    times.get((times.len() * 99).div_ceil(100).saturating_sub(1)).copied().unwrap_or_default()
}

fn check(evidence: &Evidence<'_>) -> Finding {
    decide(evidence).worded(&WAITING, evidence)
}

fn decide(evidence: &Evidence<'_>) -> Decided<Because, Starved> {
    let history = evidence.history;
    let wants = wants(evidence);
    let locks = Served::of(evidence, &wants);
    let troubles = troubles(history);
    let nobody = Spans::of(std::iter::empty());
    let overtaken: Vec<u64> = wants
        .iter()
        .map(|want| {
            let of_client = troubles.get(&history.client_of(want.owner)).unwrap_or(&nobody);
            overtaken(evidence, want, &locks[&want.lock], of_client)
        })
        .collect();
    let is_starved = |(want, times): &(&Want, u64)| {
        let has_one_owner = matches!(history.lock(want.lock).kind, LockKind::Exclusive | LockKind::Fair);
        has_one_owner && *times > bound(history, &locks[&want.lock])
    };
    let starved = wants.iter().zip(overtaken.iter().copied()).filter(is_starved);
    let worst = starved.max_by_key(|(want, times)| (*times, Reverse(want.from), Reverse(want.owner)));
    let times: Vec<Duration> = wants.iter().map(|want| want.until.since(want.from)).collect();
    let waited = times.iter().copied().max().unwrap_or_default();
    let most = overtaken.iter().copied().max().unwrap_or_default();
    let unserved = locks.values().flat_map(Served::unserved);
    let unserved: Vec<String> = unserved.map(|owner| history.owner_name(owner)).collect();
    let verdict = match worst {
        Some((want, times)) => {
            let served = &locks[&want.lock];
            Decision::Violated(starved_case(want, times, bound(history, served), served))
        }
        None if evidence.is_given_up() => Decision::GivenUp,
        None if wants.is_empty() => Decision::Undecided(Because::NoWant),
        None => Decision::Holds(Because::Served { wants: wants.len(), waited, unserved: unserved.len() }),
    };
    let jain = locks.values().map(Served::jain).fold(1.0, f64::min);
    let measures = vec![
        Measure::time("waited", waited),
        Measure::time("waited_p99", p99(&times)),
        Measure::owners("unserved", unserved),
        Measure::count("overtaken", most),
        Measure::number("jain", jain),
    ];
    Decided { verdict, measures }
}

/// Returns the number of times that an owner may be overtaken.
fn bound(history: &History, served: &Served) -> u64 {
    u64::from(history.header.bounds.overtaken) * served.owners.len() as u64
}

fn starved_case(want: &Want, times: u64, bound: u64, served: &Served) -> Case<Starved> {
    let Want { lock, owner, from, until, granted, .. } = *want;
    let mut shares: Vec<(u64, Owner)> =
        served.owners.iter().map(|(owner, (_, got))| (*got, *owner)).collect();
    shares.sort_unstable_by_key(|(got, owner)| (Reverse(*got), *owner));
    let wrong = Starved { lock, granted, times, bound, shares };
    Case { wrong, from, until, lock: Some(lock), owners: vec![owner] }
}

#[cfg(test)]
mod tests {
    use crate::judge::{
        checker::{
            Checker, Evidence,
            tests::{explained, first_line},
        },
        history::{Bounds, Life, LockKind, Outcome, story::Story},
        verdict::{Expectation, Match},
    };

    /// Two owners ask, so that more than four overtakes are too many.
    fn bounds() -> Bounds {
        Bounds { overtaken: 2, ..Bounds::default() }
    }

    /// C1 gets the lock and releases it this many times, and holds it for ten milliseconds each
    /// time.
    fn rounds(story: Story, from: i64, times: i64) -> Story {
        (0..times).fold(story, |story, at| {
            let story = story.at(from + 20 * at).locks("c1", "m", 1_000);
            story.at(from + 20 * at + 10).unlocks("c1", "m")
        })
    }

    fn starved(story: Story) -> Story {
        rounds(story.bounds(bounds()).at(0).asks("c2"), 10, 5)
    }

    #[test]
    fn explanations() {
        let cannot_be_heard =
            |story: Story, host: &str| story.fault_until(5_000, "nothing gets through", &[host, "c1"]);
        let refused = |story: Story, at: i64| story.at(at).returns("c2", Outcome::Refused);
        let stories = [
            ("overtaken again and again", starved(Story::one_node()).ends(1_000)),
            (
                "and served in the end",
                starved(Story::one_node())
                    .at(500)
                    .granted("m", "c2", 1_000)
                    .returns("c2", Outcome::Ok)
                    .ends(1_000),
            ),
            ("not too often", rounds(Story::one_node().bounds(bounds()).at(0).asks("c2"), 10, 4).ends(1_000)),
            ("by readers, too", starved(Story::of_kind(LockKind::ReadWrite)).ends(1_000)),
            (
                "while its client is cut off",
                starved(cannot_be_heard(Story::one_node().at(0), "c2")).ends(1_000),
            ),
            ("while the node is", starved(cannot_be_heard(Story::one_node().at(0), "m")).ends(1_000)),
            ("while another client is", starved(cannot_be_heard(Story::one_node().at(0), "c3")).ends(1_000)),
            (
                "once it was cut off",
                rounds(
                    cannot_be_heard(
                        rounds(Story::one_node().bounds(bounds()).at(0).asks("c2"), 10, 3).at(100),
                        "c2",
                    ),
                    110,
                    5,
                )
                .ends(1_000),
            ),
            (
                "while it does not ask",
                rounds(refused(Story::one_node().bounds(bounds()).at(0).asks("c2"), 5), 10, 5)
                    .at(500)
                    .asks("c2")
                    .ends(1_000),
            ),
            (
                "one wait in two calls",
                rounds(
                    refused(rounds(Story::one_node().bounds(bounds()).at(0).asks("c2"), 10, 3), 80)
                        .asks("c2"),
                    90,
                    2,
                )
                .ends(1_000),
            ),
            (
                "by one that takes again what it has",
                (0..9)
                    .fold(
                        Story::one_node().bounds(bounds()).at(0).asks("c2").locks("c1", "m", 5_000),
                        |story, at| story.at(10 + at).locks("c1", "m", 5_000),
                    )
                    .ends(1_000),
            ),
            ("no owner asks", Story::one_node().ends(1_000)),
        ];
        insta::assert_snapshot!(explained("waiting", &stories));
    }

    #[test]
    fn unserved_owners_can_be_bounded_and_are_named() {
        let story = ["c1", "c2", "c3", "c4"].into_iter().fold(Story::one_node(), Story::asks);
        let story = story.at(10).granted("m", "c2", 1_000).returns("c2", Outcome::Ok);
        let history = story.ends(1_000);
        let finding = Checker::named("waiting").expect("a checker").ask(&Evidence::of(&history));
        let expected = |range: &str| {
            let range = range.parse().expect("a range");
            Expectation::holds().with("unserved", range).matches(&finding)
        };
        assert_eq!(expected("..3"), Match::AsExpected);
        let named = "expected unserved ..2, found 3: c1, c3, c4";
        assert_eq!(expected("..2"), Match::Otherwise(named.to_owned()));
    }

    /// Of a hundred waits, 99 do not exceed the second longest. The shares of the two owners are
    /// one and ninety-nine.
    #[test]
    fn shares_and_waits() {
        let wait = |story: Story, at: i64| {
            let story = story.at(1_000 * at).asks("c1").at(1_000 * at + at);
            story.granted("m", "c1", 100).returns("c1", Outcome::Ok)
        };
        let story = (1..100).fold(Story::one_node(), wait).at(100_000).asks("c2").at(100_500);
        let story = story.granted("m", "c2", 100).returns("c2", Outcome::Ok);
        // C2 has got what it wanted, so its share is not small.
        let once = "holds waited=500ms waited_p99=99ms unserved=0 overtaken=0 jain=1";
        assert_eq!(first_line("waiting", &story.ends(200_000)), once);

        let story = (1..100).fold(Story::one_node(), wait).at(100_000).asks("c2").at(100_500);
        let story = story.granted("m", "c2", 100).returns("c2", Outcome::Ok).at(101_000).asks("c2");
        let again = "holds waited=99s waited_p99=500ms unserved=0 overtaken=0 jain=0.51";
        assert_eq!(first_line("waiting", &story.ends(200_000)), again);

        let story =
            (1..4).fold(Story::one_node(), wait).at(5_000).asks("c2").asks("c3").life("c3", Life::Crashed);
        let third = "holds waited=5s waited_p99=5s unserved=2 overtaken=0 jain=0.33";
        assert_eq!(first_line("waiting", &story.ends(10_000)), third);
    }
}
