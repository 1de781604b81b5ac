//! Leases: does a key live as long as promised, and no longer than an owner wants it?
//!
//! Three things can be wrong with a hold on a node:
//!
//! * *cut*: its key expires before the end of a promise to a level that its owner still has (a
//!   clock that jumped, a nested hold with a shorter lease).
//! * *outlived*: its key still exists after the latest end that was promised to any of its levels
//!   (a clock that was set back). A release of a level shortens no key, so the lease of a released
//!   level counts for this, too.
//! * *phantom*: its key is kept although no owner believes in it (an acquire whose reply was lost,
//!   a watchdog that continues after the release). A phantom may last one lease and no longer. A
//!   key without an expiry is a phantom forever once its owner is gone.
//!
//! Only locks that one group grants are judged: a quorum outvotes a node with a bad clock.
//!
//! A hold that came back with its node exists until the end of the node's lease for it. As for any
//! [promise](crate::judge::checker::evidence::promise), nothing of it is promised until its owner
//! learns of it.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use lockstorm_world::time::{True, Wall};

use crate::judge::{
    checker::{
        Checker,
        decision::{Case, Decided, Decision},
        evidence::Evidence,
    },
    history::{EventKind, History, Host, Life, Lock, LossCause, Mode, Owner, Role},
    verdict::{Finding, Measure},
};

pub(in crate::judge::checker) const LEASE: Checker = Checker {
    name: "lease",
    question: "Does a key live as long as promised, and no longer than an owner wants it?",
    measures: &[
        ("cut", "how much of a promise was left when its key expired"),
        ("outlived", "how long a key was still there after its promise"),
        ("phantom", "how long a key was kept for a hold that no owner believed in"),
    ],
    bound: Some(|_| {
        format!("`cut` and `outlived` up to {ROUNDING:?}, `phantom` up to a lease and {UNDER_WAY:?}")
    }),
    check,
};

/// The error of a lease that is always allowed: Redis counts in whole milliseconds of the node's
/// time.
const ROUNDING: Duration = Duration::from_millis(2);

/// The longest time that a release or a renewal may be under way before its key counts as a
/// phantom.
const UNDER_WAY: Duration = Duration::from_secs(1);

/// The reason of a verdict.
pub(in crate::judge::checker) enum Because {
    NoLease,
    /// The number of holds.
    AsPromised(usize),
}

/// A hold that lasted too long or too short.
pub(in crate::judge::checker) struct Off {
    pub(in crate::judge::checker) wrong: Wrong,
    pub(in crate::judge::checker) by: Duration,
    pub(in crate::judge::checker) hold: Hold,
    /// The instant at which the hold was gone.
    pub(in crate::judge::checker) gone: True,
}

/// A kind of error of a hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::judge::checker) enum Wrong {
    Cut,
    Outlived,
    Phantom,
}

/// A hold on a node.
#[derive(Debug, Clone)]
pub(in crate::judge::checker) struct Hold {
    pub(in crate::judge::checker) lock: Lock,
    pub(in crate::judge::checker) owner: Owner,
    mode: Mode,
    pub(in crate::judge::checker) node: Host,
    pub(in crate::judge::checker) from: True,
    /// True if its node came back with it at its beginning instead of granting it.
    pub(in crate::judge::checker) came_back: bool,
    /// The number of levels that the node counts.
    count: u32,
    /// The end of the lease with which it came back, until its owner learns of it.
    untold: Option<True>,
    /// The latest lease set on it.
    pub(in crate::judge::checker) lease: Option<Duration>,
    /// The expiry of its key by a node's wall clock, and the instant at which it was set.
    until: Option<Wall>,
    since: True,
    /// The end of the promise to each level, and the latest end of released levels.
    promised: Vec<True>,
    ran: True,
    /// The latest end ever promised to any level, released or not.
    latest: True,
    /// The instant at which it was gone, and true if it expired.
    gone: Option<(True, bool)>,
}

impl Hold {
    /// Returns a hold that begins, of which nothing is promised yet.
    fn begins((lock, owner, mode): (Lock, Owner, Mode), node: Host, from: True) -> Self {
        Self {
            lock,
            owner,
            mode,
            node,
            from,
            came_back: false,
            count: 0,
            untold: None,
            lease: None,
            until: None,
            since: from,
            promised: vec![],
            ran: from,
            latest: from,
            gone: None,
        }
    }

    /// Records that its owner learns of the hold: promises all its levels until then.
    fn tells(&mut self, until: True) {
        self.promised.resize(self.promised.len().max(1), self.from);
        self.promised.iter_mut().for_each(|promised| *promised = until.max(*promised));
        self.latest = self.latest.max(until);
        self.untold = None;
    }

    fn promised(&self) -> True {
        self.promised.iter().copied().fold(self.ran, True::max)
    }

    /// Keeps the `left` outermost levels; the others end at this instant at the latest.
    fn cut(&mut self, left: usize, at: True) {
        self.ran = self.promised.iter().skip(left).map(|until| at.min(*until)).fold(self.ran, True::max);
        self.promised.truncate(left);
    }

    fn close(mut self, history: &History, at: True, node: Host, expired: bool) -> Self {
        // A key that has expired by the clock is invisible to all clients, even before the node
        // deletes it.
        let over =
            self.until.and_then(|until| history.clock(node).expires(until, self.since)).unwrap_or(True::MAX);
        self.gone = Some(if over <= at { (over, true) } else { (at, expired) });
        self
    }
}

/// The holds of each owner that are not gone: one per mode, unless a master that was cut off and
/// its successor have both granted.
type Open = BTreeMap<(Lock, Owner, Mode), Vec<Hold>>;

/// Returns the index of the hold that an owner's event at `node` concerns: the hold of this node,
/// or else the newest, which the node has by replication.
fn meant(holds: &[Hold], node: Host) -> Option<usize> {
    holds.iter().position(|hold| hold.node == node).or(holds.len().checked_sub(1))
}

fn holds(history: &History) -> Vec<Hold> {
    let mut open = Open::new();
    let mut all = Vec::new();
    // Nodes that are down, or that have taken over another master's data. Their earlier grants are
    // gone.
    let mut retired: BTreeSet<Host> = BTreeSet::new();
    let end_of = |at: True, lease: Option<u64>| lease.map_or(True::MAX, |ms| at + Duration::from_millis(ms));
    for event in &history.events {
        let (at, node) = (event.at, event.host);
        match event.kind {
            EventKind::Life { life: Life::Crashed } | EventKind::Became { role: Role::Replica } => {
                retired.insert(node);
            }
            EventKind::Life { life: Life::Started } | EventKind::Became { role: Role::Master } => {
                retired.remove(&node);
            }
            _ => {}
        }
        let Some(of) = event.kind.hold() else { continue };
        let (lock, owner, _) = of;
        let authority = &history.lock(lock).authority;
        if let EventKind::Believes { .. } = event.kind
            && authority.groups.len() == 1
        {
            for hold in open.entry(of).or_default() {
                if let Some(until) = hold.untold.take().filter(|until| *until > at) {
                    hold.tells(until);
                }
            }
        }
        if authority.quorum != 1 || authority.group_of(node).is_none() {
            continue;
        }
        let of_owner = open.entry(of).or_default();
        let one = meant(of_owner, node);
        match &event.kind {
            EventKind::Granted { lease_ms, until, count, .. } => {
                let one = if *count <= 1 {
                    let over = |hold: &mut Hold| hold.node == node || retired.contains(&hold.node);
                    all.extend(
                        of_owner.extract_if(.., over).map(|hold| hold.close(history, at, node, false)),
                    );
                    None
                } else {
                    one
                };
                let one = one.unwrap_or_else(|| {
                    of_owner.push(Hold::begins(of, node, at));
                    of_owner.len() - 1
                });
                let hold = &mut of_owner[one];
                let outer = count.saturating_sub(1) as usize;
                hold.cut(outer, at);
                hold.promised.resize(outer, hold.from);
                let end = end_of(at, *lease_ms);
                hold.promised.push(end);
                hold.latest = hold.latest.max(end);
                (hold.node, hold.lease) = (node, lease_ms.map(Duration::from_millis));
                (hold.until, hold.since) = (*until, at);
                (hold.count, hold.untold) = (*count, None);
            }
            EventKind::Regained { lease_ms, until, count, .. } => {
                let here = of_owner.iter().position(|hold| hold.node == node);
                let newest = of_owner.iter().rposition(|hold| retired.contains(&hold.node));
                let one = here.or(newest).unwrap_or_else(|| {
                    of_owner.push(Hold { came_back: true, ..Hold::begins(of, node, at) });
                    of_owner.len() - 1
                });
                let hold = &mut of_owner[one];
                let (from, more) = (hold.from, count.saturating_sub(hold.count));
                if !hold.promised.is_empty() {
                    // Levels that came back lie below those that the owner still has.
                    hold.promised.splice(0..0, (0..more).map(|_| from));
                }
                let end = end_of(at, *lease_ms);
                hold.latest = hold.latest.max(end);
                (hold.count, hold.untold) = (*count, Some(end));
                (hold.node, hold.lease) = (node, lease_ms.map(Duration::from_millis));
                (hold.until, hold.since) = (*until, at);
            }
            EventKind::Extended { lease_ms, until, by, .. } => {
                if let Some(hold) = one.map(|one| &mut of_owner[one]) {
                    hold.lease = lease_ms.map(Duration::from_millis);
                    (hold.until, hold.since) = (*until, at);
                    if history.is_own(owner, *by) {
                        hold.tells(end_of(at, *lease_ms));
                    }
                }
            }
            EventKind::Released { left: 0, .. } => {
                all.extend(one.map(|one| of_owner.remove(one).close(history, at, node, false)));
            }
            EventKind::Released { left, until, .. } => {
                if let Some(hold) = one.map(|one| &mut of_owner[one]) {
                    hold.cut(*left as usize, at);
                    hold.count = *left;
                    if until.is_some() {
                        (hold.until, hold.since) = (*until, at);
                    }
                }
            }
            EventKind::Vanished { how, .. } => {
                all.extend(
                    one.map(|one| of_owner.remove(one).close(history, at, node, *how == LossCause::Expired)),
                );
            }
            _ => {}
        }
    }
    let end = history.header.end;
    all.extend(open.into_values().flatten().map(|hold| {
        let node = hold.node;
        hold.close(history, end, node, false)
    }));
    all
}

/// The beliefs of each owner in each mode, as beginnings and ends.
type Beliefs = BTreeMap<(Lock, Owner, Mode), Vec<(True, True)>>;

/// Returns the time for which a hold was kept at its end without its owner believing in it.
fn phantom(beliefs: &Beliefs, hold: &Hold, gone: True) -> Duration {
    let of_owner = beliefs.get(&(hold.lock, hold.owner, hold.mode)).map_or(&[][..], Vec::as_slice);
    let before = of_owner.partition_point(|(from, _)| *from < gone);
    let believed = of_owner[..before].last().map_or(hold.from, |(_, until)| *until);
    gone.since(believed.max(hold.from))
}

fn check(evidence: &Evidence<'_>) -> Finding {
    decide(evidence).worded(&LEASE, evidence)
}

fn decide(evidence: &Evidence<'_>) -> Decided<Because, Off> {
    let history = evidence.history;
    let holds = holds(history);
    let mut beliefs = Beliefs::new();
    for belief in &evidence.beliefs {
        beliefs
            .entry((belief.lock, belief.owner, belief.mode))
            .or_default()
            .push((belief.from, belief.until));
    }
    let (mut cut, mut outlived, mut longest_phantom) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
    let mut worst: Option<(Duration, Wrong, &Hold)> = None;
    for hold in &holds {
        let Some((gone, expired)) = hold.gone else { continue };
        let short = if expired { hold.promised().since(gone) } else { Duration::ZERO };
        let long = gone.since(hold.latest);
        let unwanted = phantom(&beliefs, hold, gone);
        (cut, outlived, longest_phantom) =
            (cut.max(short), outlived.max(long), longest_phantom.max(unwanted));
        let too_long = hold.lease.map_or(Duration::ZERO, |lease| lease + UNDER_WAY);
        let wrong = [
            (Wrong::Cut, short, short > ROUNDING),
            (Wrong::Outlived, long, long > ROUNDING),
            (Wrong::Phantom, unwanted, unwanted > too_long.max(UNDER_WAY)),
        ];
        for (wrong, by, _) in wrong.into_iter().filter(|(.., is_wrong)| *is_wrong) {
            if worst.as_ref().is_none_or(|(most, ..)| by > *most) {
                worst = Some((by, wrong, hold));
            }
        }
    }
    let verdict = match worst {
        Some((by, wrong, hold)) => Decision::Violated(case(history, hold, wrong, by)),
        None if evidence.is_given_up() => Decision::GivenUp,
        None if holds.is_empty() => Decision::Undecided(Because::NoLease),
        None => Decision::Holds(Because::AsPromised(holds.len())),
    };
    let measures = vec![
        Measure::time("cut", cut),
        Measure::time("outlived", outlived),
        Measure::time("phantom", longest_phantom),
    ];
    Decided { verdict, measures }
}

fn case(history: &History, hold: &Hold, wrong: Wrong, by: Duration) -> Case<Off> {
    let gone = hold.gone.map_or(hold.from, |(at, _)| at);
    // A cut lies after the end of the key, excess time before it.
    let from = if wrong == Wrong::Cut { gone } else { gone - by };
    let until = (from + by).min(history.header.end);
    let (lock, owners) = (Some(hold.lock), vec![hold.owner]);
    Case { wrong: Off { wrong, by, hold: hold.clone(), gone }, from, until, lock, owners }
}

#[cfg(test)]
mod tests {
    use crate::judge::{
        checker::tests::{explained, first_line},
        history::{Call, GainCause, Life, LockKind, LossCause, Outcome, Reason, story::Story},
    };

    #[test]
    fn explanations() {
        let held = || Story::one_node().at(0).locks("c1", "m", 30_000);
        let stories = [
            ("released in time", held().at(10_000).unlocks("c1", "m").ends(60_000)),
            ("expired in time", held().at(30_001).vanished("m", "c1", LossCause::Expired).ends(60_000)),
            (
                "the node's clock jumps ahead",
                held()
                    .at(1_000)
                    .clocks("m", [32_000, 1_000, 1_000], [0; 3])
                    .fault("the wall clock of m stepped +31 s", &["m"])
                    .at(1_001)
                    .vanished("m", "c1", LossCause::Expired)
                    .ends(60_000),
            ),
            (
                "the node's clock is set back",
                held()
                    .at(1_000)
                    .clocks("m", [-29_000, 1_000, 1_000], [0; 3])
                    .fault("the wall clock of m stepped -30 s", &["m"])
                    .at(60_010)
                    .vanished("m", "c1", LossCause::Expired)
                    .ends(70_000),
            ),
            (
                "a nested hold with a shorter lease cuts the outer one",
                held()
                    .at(100)
                    .granted("m", "c1", 5_000)
                    .at(5_101)
                    .vanished("m", "c1", LossCause::Expired)
                    .ends(60_000),
            ),
            (
                "a release of one level lengthens the key of an owner that dies",
                held()
                    .at(100)
                    .granted("m", "c1", 30_000)
                    .at(20_000)
                    .released_and_extended("m", "c1", 30_000)
                    .at(21_000)
                    .life("c1", Life::Crashed)
                    .at(50_001)
                    .vanished("m", "c1", LossCause::Expired)
                    .ends(60_000),
            ),
            (
                "a phantom of one lease, after a lost reply",
                Story::one_node()
                    .asks("c1")
                    .at(1)
                    .granted("m", "c1", 10_000)
                    .at(500)
                    .returns("c1", Outcome::Failed { definite: false, message: "timed out".into() })
                    .ends(60_000),
            ),
            (
                "a watchdog goes on after the release",
                held()
                    .at(5_000)
                    .calls("c1", Call::Release)
                    .disbelieves("c1", Reason::Released)
                    .at(10_000)
                    .extended("m", "c1", 30_000)
                    .at(20_000)
                    .extended("m", "c1", 30_000)
                    .at(30_000)
                    .extended("m", "c1", 30_000)
                    .ends(60_000),
            ),
            (
                "no expiry, and the owner crashes",
                Story::one_node()
                    .at(0)
                    .granted_without_expiry("m", "c1")
                    .believes_for_ever("c1")
                    .at(5_000)
                    .life("c1", Life::Crashed)
                    .ends(60_000),
            ),
            (
                "a master that was cut off grants late, its successor renews, and each key ends in its own time",
                Story::failover(LockKind::Exclusive)
                    .at(0)
                    .locks("c1", "r", 30_000)
                    .at(1_000)
                    .granted("m", "c1", 30_000)
                    .at(10_000)
                    .extended("r", "c1", 30_000)
                    .at(31_001)
                    .vanished("m", "c1", LossCause::Expired)
                    .at(35_000)
                    .unlocks("c1", "r")
                    .ends(60_000),
            ),
            (
                "a master crashes, and its replica goes on with what it had granted",
                Story::failover(LockKind::Exclusive)
                    .at(0)
                    .locks("c1", "m", 30_000)
                    .at(1_000)
                    .life("m", Life::Crashed)
                    .at(10_000)
                    .extended("r", "c1", 30_000)
                    .at(40_001)
                    .vanished("r", "c1", LossCause::Expired)
                    .ends(60_000),
            ),
            ("no lease at all", Story::one_node().ends(60_000)),
        ];
        insta::assert_snapshot!(explained("lease", &stories));
    }

    /// The node's clock is ahead for 10 ms, in which the key is not accessed. Then it is right
    /// again and the lease is renewed. Regression: the hold counted as gone in that time, before
    /// the end of its lease.
    #[test]
    fn a_clock_that_was_ahead_before_a_renewal_does_not_end_it() {
        let story = Story::one_node().at(0).locks("c1", "m", 10_000).asks("c2").at(1_000);
        let story = story.clocks("m", [60_000, 1_000, 1_000], [0; 3]).at(1_010);
        let story = story.clocks("m", [1_010, 1_010, 1_010], [0; 3]).at(5_000).extended("m", "c1", 10_000);
        let history = story.believes("c1", 10_000).at(6_000).unlocks("c1", "m").ends(60_000);
        assert_eq!(first_line("lease", &history), "holds cut=0ms outlived=0ms phantom=0ms");
    }

    /// The nested hold outlasts the outer one. It is released after the outer one's lease, with all
    /// the rest right after.
    #[test]
    fn a_nested_hold_given_back_was_promised_until_then() {
        let story = Story::one_node().at(0).locks("c1", "m", 5_000).at(1).locks("c1", "m", 9_000);
        let story = story.at(7_000).released("m", "c1").at(7_001).unlocks("c1", "m");
        assert_eq!(first_line("lease", &story.ends(60_000)), "holds cut=0ms outlived=0ms phantom=0ms");
    }

    /// A level that began later is released. The key keeps that level's lease, which no release
    /// shortens, and the owner lets it end. Regression: the promise was cut off at the release, so
    /// that the key seemed to outlive it.
    #[test]
    fn a_key_keeps_the_lease_of_a_level_that_was_given_back() {
        let story = Story::one_node().at(0).locks("c1", "m", 30_000).at(10_000).granted("m", "c1", 30_000);
        let story = story.at(10_100).released("m", "c1").at(40_001).vanished("m", "c1", LossCause::Expired);
        assert_eq!(first_line("lease", &story.ends(60_000)), "holds cut=0ms outlived=1ms phantom=10.001s");
    }

    /// A node restarts with a level that its owner had given back, below the one that it still has.
    /// The owner gives its own back; nothing promises the other.
    #[test]
    fn a_level_that_came_back_lies_below_those_of_the_owner() {
        let story = Story::one_node().at(0).locks("c1", "m", 10_000).at(1).locks("c1", "m", 10_000);
        let story = story.at(100).released("m", "c1").at(1_000).life("m", Life::Crashed);
        let story = story.at(1_100).regained("m", "c1", 8_900, 2, GainCause::Restart);
        let story = story.at(2_000).unlocks("c1", "m").at(3_000).vanished("m", "c1", LossCause::Expired);
        assert_eq!(first_line("lease", &story.ends(60_000)), "holds cut=0ms outlived=0ms phantom=1s");
    }
}
