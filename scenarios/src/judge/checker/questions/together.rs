//! Locks that are taken together: are they held all or none?
//!
//! Calls of one owner about several locks, made at one instant, are one call: that of a multi-lock.
//! When an acquisition returns successfully, the owner must be promised each of the locks at that
//! instant. When it returns without success, or when the locks have been released, none may stay
//! promised. A lock that the client could not release ends with its lease; the time until then is
//! measured. Locks that the owner was promised before it asked, or asks for again, do not count.
//! Owners that each hold what the other wants show in the duration of acquisitions.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use lockstorm_world::time::True;

use crate::judge::{
    checker::{
        Checker,
        decision::{Case, Decided, Decision},
        evidence::{Asked, Evidence, promise::Promise},
        up_to_progress,
    },
    history::{Lock, Outcome, Owner},
    verdict::{Finding, Measure},
};

pub(in crate::judge::checker) const TOGETHER: Checker = Checker {
    name: "together",
    question: "Are locks that are taken together held all or none?",
    measures: &[
        ("torn", "how many successful acquisitions of several locks lacked one of them when they came back"),
        (
            "left",
            "how long one of them stayed promised to an owner that did not get them all, or gave them back",
        ),
        ("waited", "how long an acquisition of several locks took"),
    ],
    bound: Some(|bounds| up_to_progress("left", bounds)),
    check,
};

/// The reason of a verdict.
pub(in crate::judge::checker) enum Because {
    NoCall,
    /// The number of calls about several locks.
    AllOrNone(usize),
}

/// A lock that an owner had without the others, or the others without it.
pub(in crate::judge::checker) struct Parted<'a> {
    /// True if the owner got the others without it; false if it stayed promised alone.
    pub(in crate::judge::checker) is_torn: bool,
    pub(in crate::judge::checker) lock: Lock,
    /// The latest promise of it to the owner until then.
    pub(in crate::judge::checker) last: Option<&'a Promise>,
}

/// Calls of an owner about several locks that count as one call.
struct Group<'a> {
    owner: Owner,
    locks: Vec<Lock>,
    acquires: bool,
    from: True,
    /// The instant at which the last of them returned, and true if all succeeded; `None` if one
    /// never returned.
    returned: Option<(True, bool)>,
    /// The end of the last of them, at the latest the end of the run.
    over: True,
    calls: Vec<&'a Asked<'a>>,
}

fn groups<'a>(evidence: &'a Evidence<'a>) -> Vec<Group<'a>> {
    let mut made: BTreeMap<(Owner, True, bool), Vec<&Asked<'_>>> = BTreeMap::new();
    for call in evidence.calls.iter().filter(|call| call.is_acquire() || call.is_release()) {
        made.entry((call.owner, call.from, call.is_acquire())).or_default().push(call);
    }
    let mut all = Vec::new();
    for ((owner, from, acquires), calls) in made {
        let locks: BTreeSet<Lock> = calls.iter().map(|call| call.lock).collect();
        if locks.len() < 2 {
            continue;
        }
        let returned: Option<Vec<(True, &Outcome)>> = calls.iter().map(|call| call.returned).collect();
        let returned = returned.map(|all| {
            let at = all.iter().map(|(at, _)| *at).fold(from, True::max);
            (at, all.iter().all(|(_, outcome)| **outcome == Outcome::Ok))
        });
        let end = evidence.history.header.end;
        let over = calls.iter().map(|call| call.over.unwrap_or(end)).fold(from, True::max);
        let locks = locks.into_iter().collect();
        all.push(Group { owner, locks, acquires, from, returned, over, calls });
    }
    all
}

/// Returns the promise of a lock to an owner at an instant.
fn promised<'a>(evidence: &'a Evidence<'_>, lock: Lock, owner: Owner, at: True) -> Option<&'a Promise> {
    let of = |promise: &&Promise| (promise.lock, promise.owner) == (lock, owner);
    evidence.promises.iter().filter(of).find(|promise| promise.from <= at && at < promise.until)
}

/// A lock of a group in another state than the rest.
struct Odd {
    lock: Lock,
    owner: Owner,
    from: True,
    until: True,
}

/// Returns the locks that stayed promised to an owner that has, or wants, none of the group.
fn leftovers(evidence: &Evidence<'_>, group: &Group<'_>, from: True) -> Vec<Odd> {
    let owner = group.owner;
    let mut all = Vec::new();
    for &lock in &group.locks {
        if group.acquires && promised(evidence, lock, owner, group.from).is_some() {
            continue;
        }
        let Some(promise) = promised(evidence, lock, owner, from) else { continue };
        let again = evidence.calls.iter().find(|call| {
            (call.lock, call.owner) == (lock, owner)
                && call.is_acquire()
                && call.from >= from
                && !group.calls.iter().any(|of| std::ptr::eq(*of, *call))
        });
        let until = again.map_or(promise.until, |again| promise.until.min(again.from));
        all.push(Odd { lock, owner, from, until });
    }
    all
}

fn check(evidence: &Evidence<'_>) -> Finding {
    decide(evidence).worded(&TOGETHER, evidence)
}

fn decide<'e>(evidence: &'e Evidence<'_>) -> Decided<Because, Parted<'e>> {
    let history = evidence.history;
    let groups = groups(evidence);
    let (mut torn, mut left): (Vec<Odd>, Vec<Odd>) = (Vec::new(), Vec::new());
    for group in &groups {
        let Some((at, succeeded)) = group.returned else { continue };
        if !(group.acquires && succeeded) {
            left.extend(leftovers(evidence, group, at));
            continue;
        }
        let owner = group.owner;
        let lacks = |lock: &&Lock| promised(evidence, **lock, owner, at).is_none();
        torn.extend(group.locks.iter().find(lacks).map(|&lock| Odd { lock, owner, from: at, until: at }));
    }
    let acquisitions = groups.iter().filter(|group| group.acquires);
    let waited = acquisitions.map(|group| group.over.since(group.from)).max().unwrap_or_default();
    let length = |odd: &Odd| odd.until.since(odd.from);
    let longest = left.iter().max_by_key(|odd| length(odd));
    let longest_left = longest.map_or(Duration::ZERO, length);
    let too_long = longest.filter(|odd| length(odd) > history.header.bounds.progress);
    let verdict = if let Some(odd) = torn.first() {
        Decision::Violated(case(evidence, odd, true))
    } else if let Some(odd) = too_long {
        Decision::Violated(case(evidence, odd, false))
    } else if evidence.is_given_up() {
        Decision::GivenUp
    } else if groups.is_empty() {
        Decision::Undecided(Because::NoCall)
    } else {
        Decision::Holds(Because::AllOrNone(groups.len()))
    };
    let torn = Measure::count("torn", torn.len() as u64);
    let measures = vec![torn, Measure::time("left", longest_left), Measure::time("waited", waited)];
    Decided { verdict, measures }
}

fn case<'e>(evidence: &'e Evidence<'_>, odd: &Odd, is_torn: bool) -> Case<Parted<'e>> {
    let Odd { lock, owner, from, until } = *odd;
    let of = |promise: &&Promise| (promise.lock, promise.owner) == (lock, owner) && promise.from <= from;
    let last = evidence.promises.iter().rfind(of);
    let wrong = Parted { is_torn, lock, last };
    Case { wrong, from, until, lock: Some(lock), owners: vec![owner] }
}

#[cfg(test)]
mod tests {
    use crate::judge::{
        checker::tests::explained,
        history::{Bounds, Call, Outcome, story::Story},
    };

    /// Asks for both locks; each argument says if the node grants that lock.
    fn both(stock: bool, cash: bool) -> Story {
        let bounds = Bounds { progress: std::time::Duration::from_secs(5), ..Bounds::default() };
        let mut story = Story::one_node().bounds(bounds).at(0).asks("c1").about("cash").asks("c1").at(1);
        for (name, granted) in [("stock", stock), ("cash", cash)] {
            story = story.about(name);
            if granted {
                story = story.granted("m", "c1", 10_000);
            }
        }
        story.at(2)
    }

    fn returns(story: Story, outcome: Outcome) -> Story {
        story.about("stock").returns("c1", outcome.clone()).about("cash").returns("c1", outcome)
    }

    #[test]
    fn explanations() {
        let release = |story: Story| {
            story.at(50).about("stock").calls("c1", Call::Release).about("cash").calls("c1", Call::Release)
        };
        let given_back = |story: Story, names: &[&str]| {
            names.iter().fold(story.at(51), |story, name| story.about(name).released("m", "c1")).at(52)
        };
        let held = || returns(both(true, true), Outcome::Ok);
        let stories = [
            ("all, and given back", {
                let story = given_back(release(held()), &["stock", "cash"]);
                returns(story, Outcome::Ok).ends(20_000)
            }),
            ("success with one of two", returns(both(true, false), Outcome::Ok).ends(20_000)),
            ("refused, and one is kept", returns(both(true, false), Outcome::Refused).ends(20_000)),
            ("refused, and one is given back", {
                let story = given_back(both(true, false), &["stock"]);
                returns(story, Outcome::Refused).ends(20_000)
            }),
            ("one is not released", {
                let story = given_back(release(held()), &["stock"]);
                returns(story, Outcome::Ok).ends(20_000)
            }),
            ("one is not released, and asked for again", {
                let story = returns(given_back(release(held()), &["stock"]), Outcome::Ok);
                story.at(1_052).about("cash").asks("c1").ends(20_000)
            }),
            ("locks one by one", {
                let story = Story::one_node().at(0).asks("c1").at(1).about("cash").asks("c1");
                returns(story, Outcome::Refused).ends(20_000)
            }),
        ];
        insta::assert_snapshot!(explained("together", &stories));
    }
}
