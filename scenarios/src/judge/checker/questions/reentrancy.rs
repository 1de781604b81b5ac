//! Reentrancy: does an owner's hold count equal the number of its acquires less the number of its
//! releases?
//!
//! The node's count is compared with the count that follows from the owner's calls, whenever a call
//! succeeds and no other is under way. A call that failed with an indefinite error allows a
//! difference of one. For an acquire, this ends with the owner's next acquire, which must get the
//! count right. For a release, too, it ends with the next acquire, whose count shows whether the
//! release was executed. Only locks that one group grants are judged: a quorum leaves holds behind
//! on nodes it cannot reach, by design. Permits are not judged either: one call may take several,
//! so they are not levels.
//!
//! A hold that the node dropped also allows a difference of one, until its owner has released it or
//! learned of the loss. The owner assumes that the next count includes it, and so takes an acquire
//! whose reply was lost for one that was not executed. It acquires again, and both holds end with
//! its releases.
//!
//! The levels with which a node came back are allowed, too, as many as it counts more than in its
//! previous record: a crash or a failover undid the release, not the owner's calls. They are
//! allowed until the node counts fewer, or until an acquire shows that the owner's calls include
//! them. If a node came back with fewer levels, it may count less.
//!
//! The count of a real node is read from outside, a moment after a command. The reading may come
//! after the call has returned, and may already show the effect of the owner's next call. So a real
//! node's count is judged only if the owner sends nothing more for a while, and by what is read in
//! that time.

use std::{collections::BTreeMap, time::Duration};

use lockstorm_world::time::True;

use crate::judge::{
    checker::{
        Checker,
        decision::{Case, Decided, Decision},
        evidence::Evidence,
    },
    history::{Call, EventKind, History, Lock, Mode, Op, Outcome, Owner, Role},
    verdict::{Finding, Measure},
};

pub(in crate::judge::checker) const REENTRANCY: Checker = Checker {
    name: "reentrancy",
    question: "Is the hold count what the owner's acquires and releases come to?",
    measures: &[
        ("off", "by how many holds the count was too high at most"),
        ("deepest", "the highest hold count"),
    ],
    bound: None,
    check,
};

/// The longest time after a call until a real node's count is read.
const READ_MAX: Duration = Duration::from_millis(50);

/// The reason of a verdict.
pub(in crate::judge::checker) enum Because {
    NotCounted,
    NotTested,
    /// The highest count.
    CameOut(u32),
}

/// A node's count of an owner's levels that is too high or too low.
pub(in crate::judge::checker) struct Miscounted {
    pub(in crate::judge::checker) counted: u32,
    /// The number of levels by the owner's own calls.
    pub(in crate::judge::checker) expected: u32,
}

/// Returns the number of levels that an owner has in one mode according to this event of a node.
fn levels(kind: &EventKind) -> Option<(Lock, Owner, Mode, u32)> {
    match kind {
        EventKind::Granted { lock, owner, count, mode, .. }
        | EventKind::Regained { lock, owner, count, mode, .. } => Some((*lock, *owner, *mode, *count)),
        EventKind::Released { lock, owner, left, mode, .. } => Some((*lock, *owner, *mode, *left)),
        EventKind::Vanished { lock, owner, mode, .. } => Some((*lock, *owner, *mode, 0)),
        _ => None,
    }
}

/// Returns true if the lock's node counts the levels of each owner.
fn counts_levels(history: &History, lock: Lock) -> bool {
    let lock = history.lock(lock);
    lock.kind.is_exclusive() && !lock.names_its_holds()
}

/// Returns the calls of each owner: the number and the time of the event.
fn invocations(history: &History) -> BTreeMap<Owner, Vec<(usize, True)>> {
    let mut made: BTreeMap<Owner, Vec<(usize, True)>> = BTreeMap::new();
    for (number, event) in history.events.iter().enumerate() {
        if let EventKind::Invoke { owner, .. } = &event.kind {
            made.entry(*owner).or_default().push((number, event.at));
        }
    }
    made
}

/// The count that follows from an owner's calls.
#[derive(Debug, Clone, Default)]
struct Account {
    expected: u32,
    /// The numbers of acquires, and of releases, that may or may not have been executed.
    maybe_more: u32,
    maybe_less: u32,
    under_way: u32,
    /// The node has granted the lock since the last successful acquire.
    unheard: bool,
    /// An acquire was refused although an earlier one had been granted: the earlier reply was lost.
    refused_unheard: bool,
    /// The node may count less: a hold was lost, or another node counts from now on that may not
    /// have the hold.
    lost: bool,
    /// The number of holds that were lost without their owner's knowledge.
    unaware: u32,
    /// The number of levels that came back with a node and are still counted, in addition to those
    /// of the owner's calls.
    came_back: u32,
    /// The owner has learned since its last acquire that it holds nothing.
    disabused: bool,
    /// The count of each group, in each mode.
    counted: BTreeMap<(usize, Mode), u32>,
}

impl Account {
    /// Returns the highest count of any group, with an owner's holds of both modes added up, and
    /// true if a hold may have been lost.
    fn counted(&self) -> (u32, bool) {
        let mut groups: BTreeMap<usize, u32> = BTreeMap::new();
        for ((group, _), count) in &self.counted {
            *groups.entry(*group).or_default() += count;
        }
        (groups.into_values().max().unwrap_or(0), self.lost)
    }

    /// Records that a group counts this many levels in one mode.
    fn counts(&mut self, group: usize, mode: Mode, count: u32, kind: &EventKind) {
        let before = self.counted.insert((group, mode), count).unwrap_or(0);
        self.unheard |= matches!(kind, EventKind::Granted { .. });
        self.lost |= matches!(kind, EventKind::Vanished { .. });
        if let EventKind::Regained { .. } = kind {
            self.came_back += count.saturating_sub(before);
            self.lost |= count < before;
        }
        self.came_back = self.came_back.min(self.counted().0);
    }

    /// Like [`Account::counted`], for an owner whose call returned with this event, with the
    /// readings of a real node that come only after it.
    fn read_late(&self, history: &History, (lock, owner): (Lock, Owner), number: usize) -> (u32, bool) {
        let (mut late, now) = (self.clone(), history.events[number].at);
        let read = history.events[number..].iter().take_while(|event| event.at.since(now) <= READ_MAX);
        // A hold with which a node comes back is not an effect of the call.
        for event in read.filter(|event| !matches!(event.kind, EventKind::Regained { .. })) {
            let group = history.lock(lock).authority.group_of(event.host);
            if let (Some(group), Some((of, whose, mode, count))) = (group, levels(&event.kind))
                && (of, whose) == (lock, owner)
            {
                late.counts(group, mode, count, &event.kind);
            }
        }
        late.counted()
    }
}

fn check(evidence: &Evidence<'_>) -> Finding {
    decide(evidence).worded(&REENTRANCY, evidence)
}

fn decide(evidence: &Evidence<'_>) -> Decided<Because, Miscounted> {
    let history = evidence.history;
    let mut accounts: BTreeMap<(Lock, Owner), Account> = BTreeMap::new();
    let mut calls: BTreeMap<Op, (Lock, Owner, Call)> = BTreeMap::new();
    let is_real = history.header.is_real();
    let made = if is_real { invocations(history) } else { BTreeMap::new() };
    let asks_on = |owner: Owner, number: usize, now: True| {
        let calls = made.get(&owner).map_or(&[][..], Vec::as_slice);
        let next = calls.get(calls.partition_point(|(call, _)| *call < number));
        next.is_some_and(|(_, at)| at.since(now) <= READ_MAX)
    };
    let (mut off, mut deepest, mut tested, mut worst) = (0, 0, false, None);
    for (number, event) in history.events.iter().enumerate() {
        if let Some((lock, owner, mode, count)) = levels(&event.kind)
            && let Some(group) = history.lock(lock).authority.group_of(event.host)
        {
            accounts.entry((lock, owner)).or_default().counts(group, mode, count, &event.kind);
            if matches!(event.kind, EventKind::Granted { .. }) {
                deepest = deepest.max(count);
            }
        }
        match &event.kind {
            EventKind::Invoke { op, lock, owner, call: call @ (Call::Acquire { .. } | Call::Release) } => {
                calls.insert(*op, (*lock, *owner, *call));
                accounts.entry((*lock, *owner)).or_default().under_way += 1;
            }
            EventKind::Disbelieves { lock, owner, .. } => {
                if let Some(account) = accounts.get_mut(&(*lock, *owner)) {
                    (account.unaware, account.disabused) = (0, true);
                }
            }
            EventKind::Became { role: Role::Master } => {
                let granting = |lock: Lock| history.lock(lock).authority.group_of(event.host).is_some();
                let accounts = accounts.iter_mut().filter(|((lock, _), _)| granting(*lock));
                accounts.for_each(|(_, account)| account.lost = true);
            }
            EventKind::Return { op, outcome } => {
                let Some((lock, owner, call)) = calls.remove(op) else { continue };
                let account = accounts.entry((lock, owner)).or_default();
                let asks_on = asks_on(owner, number, event.at);
                let (counted, lost) = if is_real && !asks_on {
                    account.read_late(history, (lock, owner), number)
                } else {
                    account.counted()
                };
                tested |= returned(account, call, outcome, counted);
                let judged = counts_levels(history, lock);
                if account.under_way > 0 || *outcome != Outcome::Ok || !judged || asks_on {
                    continue;
                }
                let most = account.expected + account.maybe_more + account.unaware + account.came_back;
                let excess = counted.saturating_sub(most);
                let least = account.expected.saturating_sub(account.maybe_less);
                let missing = if lost { 0 } else { least.saturating_sub(counted) };
                if excess.max(missing) > off {
                    off = excess.max(missing);
                    worst = Some((event.at, lock, owner, counted, account.expected));
                }
            }
            _ => {}
        }
    }
    let verdict = match worst {
        Some((at, lock, owner, counted, expected)) => {
            let wrong = Miscounted { counted, expected };
            Decision::Violated(Case { wrong, from: at, until: at, lock: Some(lock), owners: vec![owner] })
        }
        None if evidence.is_given_up() => Decision::GivenUp,
        None if !history.header.locks().any(|lock| counts_levels(history, lock)) => {
            Decision::Undecided(Because::NotCounted)
        }
        None if deepest < 2 && !tested => Decision::Undecided(Because::NotTested),
        None => Decision::Holds(Because::CameOut(deepest)),
    };
    let measures = vec![Measure::count("off", off.into()), Measure::count("deepest", deepest.into())];
    Decided { verdict, measures }
}

/// Records a call that returned. Returns true if it tested the property: a success after a lost
/// reply, after a grant that the caller never learned of, or beside levels that came back.
fn returned(account: &mut Account, call: Call, outcome: &Outcome, counted: u32) -> bool {
    account.under_way = account.under_way.saturating_sub(1);
    match (call, outcome) {
        (Call::Acquire { .. }, Outcome::Ok) => {
            let again = account.maybe_more > 0 || account.refused_unheard || account.came_back > 0;
            (account.unheard, account.refused_unheard) = (false, false);
            account.expected += 1;
            let disabused = std::mem::take(&mut account.disabused);
            if std::mem::take(&mut account.lost) {
                // A lost hold was not released: the count continues from the levels that the node
                // still has.
                let left = counted.clamp(1, account.expected);
                account.unaware += if disabused { 0 } else { account.expected - left };
                account.expected = left;
            }
            // The lowest count if all releases in doubt were executed.
            let least = account.expected.saturating_sub(std::mem::take(&mut account.maybe_less));
            account.expected = counted.clamp(least, account.expected);
            account.came_back = account.came_back.min(counted.saturating_sub(account.expected));
            account.maybe_more = 0;
            again
        }
        (Call::Release, Outcome::Ok) => {
            let again = account.maybe_less > 0;
            match account.expected.checked_sub(1) {
                Some(left) => account.expected = left,
                None => account.unaware = account.unaware.saturating_sub(1),
            }
            again
        }
        (Call::Release, Outcome::Refused) => {
            (account.expected, account.maybe_less, account.unaware) = (0, 0, 0);
            false
        }
        (Call::Acquire { .. }, Outcome::Refused) => {
            account.refused_unheard |= account.unheard;
            false
        }
        (Call::Acquire { .. }, Outcome::Failed { definite: false, .. }) => {
            account.maybe_more += 1;
            false
        }
        // Either the reply was that the owner does not hold the lock, or the request was never
        // sent. The node's count is unchanged.
        (Call::Release, Outcome::Failed { definite: true, .. }) => {
            account.lost = true;
            false
        }
        (Call::Release, Outcome::Failed { definite: false, .. }) => {
            account.maybe_less += 1;
            false
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use crate::judge::{
        checker::tests::{explained, first_line},
        history::{Call, LockKind, LossCause, Outcome, Reason, Role, story::Story},
    };

    fn lost() -> Outcome {
        Outcome::Failed { definite: false, message: "timed out".into() }
    }

    #[test]
    fn explanations() {
        let once = || Story::one_node().at(0).locks("c1", "m", 30_000);
        // c1 holds the lock on m when `node` takes its place, which already counts `had` levels.
        let twice = |node: &str, had: u32| {
            let story = Story::failover(LockKind::Exclusive).at(0).locks("c1", "m", 30_000);
            let story = story.at(10).became(node, Role::Master).counts(node, "c1", had);
            story.at(20).locks("c1", node, 30_000).ends(1_000)
        };
        // C1's first hold expires on the node, C1 nests another hold, and the node grants its third
        // request twice.
        let after_a_loss = |told: bool| {
            let story = once().at(1_000).vanished("m", "c1", LossCause::Expired);
            let story = if told { story.disbelieves("c1", Reason::Expired) } else { story };
            let story = story.at(1_010).locks("c1", "m", 30_000);
            let story = story.at(1_020).asks("c1").granted("m", "c1", 30_000);
            story.at(1_500).granted("m", "c1", 30_000).returns("c1", Outcome::Ok).ends(2_000)
        };
        let stories = [
            (
                "two in, two out",
                once()
                    .at(10)
                    .locks("c1", "m", 30_000)
                    .at(20)
                    .unlocks("c1", "m")
                    .at(30)
                    .unlocks("c1", "m")
                    .ends(100),
            ),
            (
                "the reply was lost and the script ran again",
                Story::one_node()
                    .fault("the reply to the first acquire was lost", &["m", "c1"])
                    .asks("c1")
                    .at(1)
                    .granted("m", "c1", 30_000)
                    .at(500)
                    .returns("c1", lost())
                    .at(501)
                    .locks("c1", "m", 30_000)
                    .ends(1_000),
            ),
            (
                "one call, resent by the client itself",
                Story::one_node()
                    .asks("c1")
                    .at(1)
                    .granted("m", "c1", 30_000)
                    .at(500)
                    .granted("m", "c1", 30_000)
                    .at(501)
                    .returns("c1", Outcome::Ok)
                    .ends(1_000),
            ),
            (
                "asked again, and the first had not been done",
                Story::one_node()
                    .asks("c1")
                    .at(500)
                    .returns("c1", lost())
                    .at(501)
                    .locks("c1", "m", 30_000)
                    .ends(1_000),
            ),
            (
                "a release in doubt had been done, and then one more in and out",
                once()
                    .at(10)
                    .calls("c1", Call::Release)
                    .at(11)
                    .released("m", "c1")
                    .at(500)
                    .returns("c1", lost())
                    .at(501)
                    .locks("c1", "m", 30_000)
                    .at(510)
                    .unlocks("c1", "m")
                    .ends(1_000),
            ),
            (
                "a hold that the node never counted",
                once().at(10).asks("c1").returns("c1", Outcome::Ok).ends(1_000),
            ),
            ("a lost reply after a loss that the owner did not notice", after_a_loss(false)),
            ("a lost reply after a loss that the owner noticed", after_a_loss(true)),
            (
                "what is left of a hold that is over by its owner's clock, taken for the grant of a lost request",
                once()
                    .at(10)
                    .locks("c1", "m", 30_000)
                    .at(1_000)
                    .disbelieves("c1", Reason::Expired)
                    .asks("c1")
                    .at(1_010)
                    .returns("c1", Outcome::Ok)
                    .ends(2_000),
            ),
            ("the replica that was promoted had not received the hold", twice("r", 0)),
            ("the replica that was promoted had the hold", twice("r", 1)),
            ("the replica that was promoted counts one too many", twice("r", 2)),
            (
                "a release was told that the hold is lost, of which the node had not spoken",
                Story::failover(LockKind::Exclusive)
                    .at(0)
                    .locks("c1", "m", 30_000)
                    .at(10)
                    .calls("c1", Call::Release)
                    .returns("c1", Outcome::Failed { definite: true, message: "not held".into() })
                    .at(20)
                    .locks("c1", "r", 30_000)
                    .ends(1_000),
            ),
            ("once only", once().at(10).unlocks("c1", "m").ends(1_000)),
        ];
        insta::assert_snapshot!(explained("reentrancy", &stories));
    }

    #[test]
    fn a_count_that_is_read_late_is_judged_when_nothing_more_is_asked() {
        let ok = Outcome::Ok;
        let miscounted =
            || Story::one_node().at(0).locks("c1", "m", 30_000).at(100).asks("c1").returns("c1", ok.clone());
        // The release is read this many milliseconds after it has returned. Regression: such a run
        // was violated.
        let released_after = |late: i64| {
            let story =
                Story::one_node().at(0).locks("c1", "m", 30_000).at(10).locks("c1", "m", 30_000).at(100);
            let story = story.calls("c1", Call::Release).returns("c1", ok.clone());
            story.at(100 + late).released("m", "c1")
        };
        let rows = [
            ("event", miscounted().at(110).asks("c1").ends(1_000), true),
            ("real", miscounted().at(110).asks("c1").ends(1_000), false),
            ("real", miscounted().at(200).asks("c1").ends(1_000), true),
            ("real", miscounted().ends(1_000), true),
            ("event", released_after(10).ends(1_000), true),
            ("real", released_after(10).ends(1_000), false),
            ("real", released_after(60).ends(1_000), true),
        ];
        for (engine, mut history, wrong) in rows {
            history.header.engine = engine.into();
            let finding = super::check(&super::Evidence::of(&history));
            assert_eq!(finding.verdict.witness().is_some(), wrong, "{engine}: {:?}", finding.verdict);
        }
    }

    /// One call takes three permits of a semaphore, and the node counts three. Regression: the
    /// count was too high by the calls.
    #[test]
    fn permits_that_one_call_takes_are_no_levels() {
        let story = Story::of_kind(LockKind::Semaphore { permits: 5 }).counts("m", "c1", 2).at(0);
        let history = story.asks("c1").at(1).granted("m", "c1", 30_000).at(2).returns("c1", Outcome::Ok);
        assert_eq!(first_line("reentrancy", &history.ends(100)), "undecided off=0 deepest=3");
    }
}
