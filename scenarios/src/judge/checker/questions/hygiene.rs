//! Hygiene: when all clients are done, does Redis contain only the keys that are meant to stay?
//!
//! A lock's own keys may exist while an owner still believes it holds the lock, or a call about the
//! lock is under way. Keys that the lock declares as lasting (a token counter, the number of
//! permits) may always exist. Keys that it declares as passing (the one that remembers a release in
//! case the client repeats it) may exist while they have a TTL. Any other key of the lock was left
//! behind.
//!
//! Each owner has a share of passing keys on a node. It is one key, since its next release can
//! delete that of its last one, and one more for each call of its client about the lock that did
//! not return successfully, since a server may have to remember its requests. Keys beyond the share
//! were left behind. A key whose maker is unknown (a replica's) is not counted.
//!
//! A key with a TTL may also exist while a hold of the lock is as a node came back with it: its
//! owner has released it, the node has lost that release, and no client can repeat it.
//!
//! A hold is left behind, too, if its owner's line of work has ended without releasing it and
//! something renews it for longer than a lease: its process lives on, and with it the watchdog, so
//! that the lock is never free again. A hold that nothing renews ends by itself.
//!
//! The remaining keys of real servers are not read, so that the verdict there depends on holds
//! alone.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use lockstorm_world::time::True;

use crate::judge::{
    checker::{
        Checker,
        decision::{Case, Decided, Decision},
        evidence::{Evidence, belief::BeliefEnd},
    },
    history::{Event, EventKind, History, Host, KeyLeft, Life, Lock, Mode, Outcome, Owner},
    verdict::{Finding, Measure},
};

pub(in crate::judge::checker) const HYGIENE: Checker = Checker {
    name: "hygiene",
    question: "When all clients are done, is nothing left in Redis but what is meant to stay?",
    measures: &[
        ("left", "how many keys were left behind"),
        ("for_ever", "how many of them without an expiry"),
        (
            "left_behind",
            "for how long a hold was renewed whose owner's line of work had ended without giving it back",
        ),
    ],
    bound: None,
    check,
};

/// The reason of a verdict.
pub(in crate::judge::checker) enum Because {
    NoGrant,
    Real,
    InUse,
    NothingLeft,
}

/// A violation.
pub(in crate::judge::checker) enum Wrong<'a> {
    /// A key was left behind, the first of this number.
    Key(&'a KeyLeft, usize),
    /// A hold was left behind.
    Hold(Lock),
}

/// The number of passing keys that each owner has left so far.
#[derive(Default)]
struct Passing(BTreeMap<(Host, Lock, Owner), usize>);

impl Passing {
    fn is_meant_to_stay(&mut self, evidence: &Evidence<'_>, left: &KeyLeft) -> bool {
        let lock = evidence.history.lock(left.lock);
        let passing = || lock.passing_keys.iter().any(|part| left.key.starts_with(&**part));
        if lock.lasting_keys.contains(&left.key) {
            return true;
        }
        if left.ttl_ms.is_none() || !passing() {
            return false;
        }
        let Some(owner) = left.owner else { return true };
        let so_far = self.0.entry((left.node, left.lock, owner)).or_default();
        *so_far += 1;
        *so_far <= share(evidence, left.lock, owner)
    }
}

/// Returns the number of passing keys of a lock that an owner may leave on a node.
fn share(evidence: &Evidence<'_>, lock: Lock, owner: Owner) -> usize {
    let client = evidence.history.client_of(owner);
    let of_client = evidence.calls.iter().filter(|call| (call.lock, call.host) == (lock, client));
    let failed = of_client.filter(|call| !matches!(call.returned, Some((_, Outcome::Ok))));
    1 + failed.count()
}

/// Returns the locks with a hold with which a node came back, and which no event has changed since.
fn came_back(history: &History) -> BTreeSet<Lock> {
    let mut last: BTreeMap<(Lock, Owner, Mode), bool> = BTreeMap::new();
    for event in &history.events {
        if let Some(hold) = event.kind.hold()
            && history.lock(hold.0).authority.group_of(event.host).is_some()
        {
            last.insert(hold, matches!(event.kind, EventKind::Regained { .. }));
        }
    }
    last.into_iter().filter(|(_, came_back)| *came_back).map(|((lock, ..), _)| lock).collect()
}

/// A hold that was renewed after its owner's line of work had ended without releasing it.
struct HoldLeft {
    lock: Lock,
    owner: Owner,
    /// The end of the line of work, and the last renewal of the hold.
    from: True,
    until: True,
    /// True if a renewal came more than a lease after the end of the work: every request that was
    /// under way at that end is over by then.
    outlived: bool,
}

impl HoldLeft {
    fn length(&self) -> Duration {
        self.until.since(self.from)
    }

    fn case<'a>(&self) -> Case<Wrong<'a>> {
        let HoldLeft { lock, owner, from, until, .. } = *self;
        Case { wrong: Wrong::Hold(lock), from, until, lock: Some(lock), owners: vec![owner] }
    }
}

/// Returns all such holds.
fn holds_left(history: &History) -> Vec<HoldLeft> {
    let mut ended: BTreeMap<(Lock, Owner), True> = BTreeMap::new();
    let mut left: BTreeMap<(Lock, Owner, True), HoldLeft> = BTreeMap::new();
    for Event { at, host, kind } in &history.events {
        match kind {
            EventKind::Abandoned { lock, owner } => drop(ended.insert((*lock, *owner), *at)),
            // The owner makes another call, so its work continues.
            EventKind::Invoke { lock, owner, .. } => drop(ended.remove(&(*lock, *owner))),
            EventKind::Life { life: Life::Crashed | Life::Started } => {
                ended.retain(|(_, owner), _| history.client_of(*owner) != *host);
            }
            EventKind::Extended { lock, owner, by, lease_ms, .. } if history.is_own(*owner, *by) => {
                let Some(from) = ended.get(&(*lock, *owner)).copied() else { continue };
                let outlived = lease_ms.is_none_or(|lease| at.since(from) > Duration::from_millis(lease));
                let (lock, owner, until) = (*lock, *owner, *at);
                let first = || HoldLeft { lock, owner, from, until, outlived };
                let hold = left.entry((lock, owner, from)).or_insert_with(first);
                (hold.until, hold.outlived) = (until, hold.outlived || outlived);
            }
            _ => {}
        }
    }
    left.into_values().collect()
}

fn check(evidence: &Evidence<'_>) -> Finding {
    decide(evidence).worded(&HYGIENE, evidence)
}

fn decide<'e>(evidence: &'e Evidence<'_>) -> Decided<Because, Wrong<'e>> {
    let history = evidence.history;
    let in_use = |lock: Lock| {
        let held =
            evidence.beliefs.iter().any(|belief| belief.lock == lock && belief.end == BeliefEnd::RunOver);
        held || evidence.calls.iter().any(|call| call.lock == lock && call.over.is_none())
    };
    let came_back = came_back(history);
    let used: Vec<bool> = history.header.locks().map(in_use).collect();
    let mut passing = Passing::default();
    let mut stays = |key: &KeyLeft| {
        let goes_by_itself = came_back.contains(&key.lock) && key.ttl_ms.is_some();
        used[usize::from(key.lock.0)] || goes_by_itself || passing.is_meant_to_stay(evidence, key)
    };
    let left: Vec<&KeyLeft> = history.keys_left.iter().filter(|key| !stays(key)).collect();
    let for_ever = left.iter().filter(|key| key.ttl_ms.is_none()).count();
    let holds = holds_left(history);
    let left_behind = holds.iter().map(HoldLeft::length).max().unwrap_or_default();
    let hold = holds.iter().filter(|hold| hold.outlived).max_by_key(|hold| hold.length());
    let verdict = match (left.first(), hold) {
        (Some(key), _) => {
            let (end, owners) = (history.header.end, Vec::new());
            let wrong = Wrong::Key(key, left.len());
            Decision::Violated(Case { wrong, from: end, until: end, lock: Some(key.lock), owners })
        }
        (None, Some(hold)) => Decision::Violated(hold.case()),
        (None, None) if evidence.is_given_up() => Decision::GivenUp,
        (None, None) if evidence.promises.is_empty() => Decision::Undecided(Because::NoGrant),
        (None, None) if history.header.is_real() => Decision::Undecided(Because::Real),
        (None, None) if used.iter().all(|used| *used) => Decision::Undecided(Because::InUse),
        (None, None) => Decision::Holds(Because::NothingLeft),
    };
    let measures = vec![
        Measure::count("left", left.len() as u64),
        Measure::count("for_ever", for_ever as u64),
        Measure::time("left_behind", left_behind),
    ];
    Decided { verdict, measures }
}

#[cfg(test)]
mod tests {
    use crate::judge::{
        checker::tests::{explained, first_line},
        history::{Call, GainCause, Life, Outcome, Reason, story::Story},
    };

    #[test]
    fn explanations() {
        let latches = |story: Story, of: &[&str]| {
            let left =
                |story: Story, latch: &&str| story.latch_left("m", &format!("latch:{{stock}}:{latch}"), "c1");
            of.iter().fold(story, left).ends(10_000)
        };
        let failed = || Outcome::Failed { definite: false, message: "no reply".into() };
        let done = || Story::one_node().at(0).locks("c1", "m", 1_000).at(10).unlocks("c1", "m");
        let stories = [
            ("clean", done().ends(10_000)),
            ("a token counter is meant to stay", done().key_left("m", "stock:token", None).ends(10_000)),
            ("a queue is left forever", done().key_left("m", "queue:{stock}", None).ends(10_000)),
            (
                "a waiter's key is left for a while",
                done().key_left("m", "waiter:{stock}", Some(16_000)).ends(10_000),
            ),
            (
                "its node came back with the lock that was released",
                done()
                    .at(100)
                    .regained("m", "c1", 60_000, 1, GainCause::Restart)
                    .key_left("m", "stock", Some(50_100))
                    .ends(10_000),
            ),
            (
                "a release is remembered for a while",
                done().key_left("m", "latch:{stock}:7", Some(16_000)).ends(10_000),
            ),
            ("the last two releases of one owner are remembered for a while", latches(done(), &["7", "8"])),
            (
                "one of them has failed",
                latches(done().calls("c1", Call::Release).returns("c1", failed()), &["7", "8"]),
            ),
            (
                "of two owners the last one each",
                done()
                    .latch_left("m", "latch:{stock}:7", "c1")
                    .latch_left("m", "latch:{stock}:8", "c2")
                    .ends(10_000),
            ),
            ("a release is remembered forever", done().key_left("m", "latch:{stock}:7", None).ends(10_000)),
            (
                "its watchdog renews what an owner has done with",
                (1..9)
                    .fold(
                        Story::one_node().at(0).locks("c1", "m", 1_000).at(500).abandons("c1"),
                        |story, at| story.at(500 + 300 * at).extended("m", "c1", 1_000),
                    )
                    .key_left("m", "stock", Some(700))
                    .ends(3_000),
            ),
            (
                "what an owner has done with ends by itself",
                Story::one_node().at(0).locks("c1", "m", 1_000).at(500).abandons("c1").ends(3_000),
            ),
            (
                "an owner still holds it",
                Story::one_node()
                    .at(0)
                    .locks("c1", "m", 60_000)
                    .key_left("m", "stock", Some(50_000))
                    .ends(10_000),
            ),
        ];
        insta::assert_snapshot!(explained("hygiene", &stories));
    }

    /// The run ends in the middle of a release. Regression: the key counted as left behind.
    #[test]
    fn a_release_under_way_has_left_nothing() {
        let story = Story::one_node().at(0).locks("c1", "m", 10_000).at(9_999).calls("c1", Call::Release);
        let story = story.disbelieves("c1", Reason::Released).key_left("m", "stock", Some(1));
        assert_eq!(first_line("hygiene", &story.ends(10_000)), "undecided left=0 for_ever=0 left_behind=0ms");
    }

    /// A run does not look at what real servers have left.
    #[test]
    fn a_run_on_real_servers_does_not_show_that_nothing_is_left() {
        for (engine, verdict) in [("event", "holds"), ("real", "undecided")] {
            let mut history =
                Story::one_node().at(0).locks("c1", "m", 1_000).at(10).unlocks("c1", "m").ends(5_000);
            history.header.engine = engine.into();
            let expected = format!("{verdict} left=0 for_ever=0 left_behind=0ms");
            assert_eq!(first_line("hygiene", &history), expected);
        }
    }

    /// C1 takes the lock for a second, and its work ends half a second later.
    fn abandoned() -> Story {
        Story::one_node().at(0).locks("c1", "m", 1_000).at(500).abandons("c1")
    }

    /// Regression: a watchdog renewed a hold that its owner's line of work had left behind for as
    /// long as the process lived, and no checker reported it.
    #[test]
    fn a_watchdog_keeps_what_nobody_gives_back() {
        let renewed = |story: Story, until: i64| {
            (1..=until).fold(story, |story, at| story.at(500 * at + 400).extended("m", "c1", 1_000))
        };
        // Renewals within a lease after the end of the work, when a renewal may still have been
        // under way.
        let within = "holds left=0 for_ever=0 left_behind=900ms";
        assert_eq!(first_line("hygiene", &renewed(abandoned(), 2).ends(3_000)), within);
        let beyond = "violated left=0 for_ever=0 left_behind=1.4s";
        assert_eq!(first_line("hygiene", &renewed(abandoned(), 3).ends(3_000)), beyond);
        // Another owner waits, and so the lock stays in use.
        assert_eq!(first_line("hygiene", &renewed(abandoned().asks("c2"), 3).ends(3_000)), beyond);
        // The process ended, or the owner called again: later renewals do not count.
        let nothing = "undecided left=0 for_ever=0 left_behind=0ms";
        let crashed = abandoned().at(600).life("c1", Life::Crashed);
        assert_eq!(
            first_line("hygiene", &renewed(crashed, 3).ends(1_950)),
            "holds left=0 for_ever=0 left_behind=0ms"
        );
        let goes_on = renewed(abandoned().at(600).calls("c1", Call::Extend { lease_ms: 1_000 }), 3);
        assert_eq!(first_line("hygiene", &goes_on.ends(3_000)), nothing);
    }

    /// The call of a crashed client is over, and so a key of its lock is left behind. Regression:
    /// the lock counted as in use forever.
    #[test]
    fn a_crashed_client_does_not_wait() {
        let story =
            Story::one_node().at(0).locks("c1", "m", 1_000).at(10).unlocks("c1", "m").at(20).asks("c2");
        let story = story.granted_without_expiry("m", "c2").life("c2", Life::Crashed);
        let history = story.key_left("m", "stock", None).ends(10_000);
        assert_eq!(first_line("hygiene", &history), "violated left=1 for_ever=1 left_behind=0ms");
    }
}
