//! Read-write: does a node grant the lock to a writer while another owner holds it, or to any other
//! owner while a writer holds it?
//!
//! Each grant is judged against the holds on the same node at that moment, by the node's own clock:
//! the script alone is responsible for these, whatever the faults. L1 to L4 judge the effect of
//! faults on the lock as a whole. The waits of writers and readers are measured and not judged:
//! nothing promises a turn to a writer among readers that leave no gap.

use std::collections::BTreeMap;

use lockstorm_world::time::{True, Wall};

use crate::judge::{
    checker::{
        Checker,
        decision::{Case, Decided, Decision},
        evidence::Evidence,
    },
    history::{Call, Event, EventKind, Host, Lock, LockKind, Mode, Owner},
    verdict::{Finding, Measure},
};

pub(in crate::judge::checker) const READ_WRITE: Checker = Checker {
    name: "read-write",
    question: "Does a node keep writers alone and readers apart from other writers?",
    measures: &[
        ("times", "how many grants stood beside a hold they exclude"),
        ("readers", "how many readers at once at most"),
        ("writers_waited", "how long an acquisition to write took at most"),
        ("readers_waited", "how long an acquisition to read took at most"),
    ],
    bound: None,
    check,
};

/// The reason of a verdict.
pub(in crate::judge::checker) enum Because {
    NoReadWriteLock,
    NoWriter,
    /// The numbers of grants to write and to read.
    Grants([u64; 2]),
}

/// A grant beside a hold that it excludes.
#[derive(Clone, Copy)]
pub(in crate::judge::checker) struct LetIn {
    pub(in crate::judge::checker) node: Host,
    pub(in crate::judge::checker) owner: Owner,
    /// The owner that held it.
    pub(in crate::judge::checker) other: Owner,
    /// The mode of the grant.
    pub(in crate::judge::checker) mode: Mode,
}

/// The holds of a lock on a node: owner and mode, and expiry by the node's clock.
type Holders = BTreeMap<(Owner, Mode), True>;

fn check(evidence: &Evidence<'_>) -> Finding {
    decide(evidence).worded(&READ_WRITE, evidence)
}

fn decide(evidence: &Evidence<'_>) -> Decided<Because, LetIn> {
    let history = evidence.history;
    let judged = |lock: Lock| history.lock(lock).kind == LockKind::ReadWrite;
    let mut held: BTreeMap<(Lock, Host), Holders> = BTreeMap::new();
    let mut wrong: Vec<(&Event, LetIn)> = Vec::new();
    let (mut readers, mut grants) = (0, [0_u64; 2]);
    for event in &history.events {
        let Some((lock, owner, mode)) = event.kind.hold().filter(|(lock, ..)| judged(*lock)) else {
            continue;
        };
        let holders = held.entry((lock, event.host)).or_default();
        holders.retain(|_, until| *until > event.at);
        let expires = |until: &Option<Wall>| {
            let expires = until.and_then(|until| history.clock(event.host).expires(until, event.at));
            expires.unwrap_or(True::MAX)
        };
        match &event.kind {
            EventKind::Granted { until, .. } => {
                grants[usize::from(mode == Mode::Shared)] += 1;
                let excluded = |(other, held): &&(Owner, Mode)| {
                    *other != owner && (mode == Mode::Exclusive || *held == Mode::Exclusive)
                };
                if let Some((other, _)) = holders.keys().find(excluded) {
                    wrong.push((event, LetIn { node: event.host, owner, other: *other, mode }));
                }
                holders.insert((owner, mode), expires(until));
                // A lease that is already over by the node's clock is not a hold.
                holders.retain(|_, until| *until > event.at);
                // A writer that reads as well still counts as a writer.
                let reads = |(owner, mode): &&(Owner, Mode)| {
                    *mode == Mode::Shared && !holders.contains_key(&(*owner, Mode::Exclusive))
                };
                readers = readers.max(holders.keys().filter(reads).count());
            }
            EventKind::Regained { until, .. } => {
                holders.insert((owner, mode), expires(until));
            }
            EventKind::Extended { until, .. } => {
                if let Some(over) = holders.get_mut(&(owner, mode)) {
                    *over = expires(until);
                }
            }
            EventKind::Released { left: 0, .. } | EventKind::Vanished { .. } => {
                holders.remove(&(owner, mode));
            }
            _ => {}
        }
    }
    let verdict = match wrong.first() {
        Some((event, wrong)) => {
            let (from, until, lock) = (event.at, event.at, event.kind.lock());
            Decision::Violated(Case {
                wrong: *wrong,
                from,
                until,
                lock,
                owners: vec![wrong.other, wrong.owner],
            })
        }
        None if evidence.is_given_up() => Decision::GivenUp,
        None if !history.header.locks().any(judged) => Decision::Undecided(Because::NoReadWriteLock),
        None if grants[0] == 0 => Decision::Undecided(Because::NoWriter),
        None => Decision::Holds(Because::Grants(grants)),
    };
    let waited = |wanted: Mode| {
        let asked = evidence.calls.iter().filter(|asked| judged(asked.lock));
        let asked = asked.filter(|asked| matches!(asked.call, Call::Acquire { mode, .. } if mode == wanted));
        let times = asked.map(|asked| asked.over.unwrap_or(history.header.end).since(asked.from));
        times.max().unwrap_or_default()
    };
    let measures = vec![
        Measure::count("times", wrong.len() as u64),
        Measure::count("readers", readers as u64),
        Measure::time("writers_waited", waited(Mode::Exclusive)),
        Measure::time("readers_waited", waited(Mode::Shared)),
    ];
    Decided { verdict, measures }
}

#[cfg(test)]
mod tests {
    use crate::judge::{
        checker::tests::explained,
        history::{
            LockKind, LossCause,
            Mode::{Exclusive, Shared},
            Outcome,
            story::Story,
        },
    };

    #[test]
    fn explanations() {
        let first =
            |mode| Story::of_kind(LockKind::ReadWrite).at(0).granted_in("m", "c1", 1_000, mode).at(500);
        let stories = [
            (
                "readers, then a writer",
                first(Shared)
                    .granted_in("m", "c2", 400, Shared)
                    .at(1_001)
                    .granted_in("m", "c3", 1_000, Exclusive)
                    .ends(3_000),
            ),
            (
                "a reader whose lease is over by the node's clock as it is granted",
                Story::of_kind(LockKind::ReadWrite)
                    .at(500)
                    .granted_in("m", "c1", 1_000, Shared)
                    .clocks("m", [3_500, 500, 500], [0; 3])
                    .ends(3_000),
            ),
            ("a reader under a writer", first(Exclusive).granted_in("m", "c2", 1_000, Shared).ends(3_000)),
            ("a writer under a reader", first(Shared).granted_in("m", "c2", 1_000, Exclusive).ends(3_000)),
            (
                "a writer that reads what it writes",
                first(Exclusive).granted_in("m", "c1", 1_000, Shared).ends(3_000),
            ),
            (
                "a writer that reads, and goes on as a reader beside another",
                first(Exclusive)
                    .granted_in("m", "c1", 1_000, Shared)
                    .in_mode("c1", Exclusive)
                    .released("m", "c1")
                    .granted_in("m", "c2", 1_000, Shared)
                    .ends(3_000),
            ),
            (
                "a writer while the lease of one reader is over, and that of another is not",
                first(Shared)
                    .granted_in("m", "c2", 5_000, Shared)
                    .at(1_500)
                    .vanished("m", "c1", LossCause::Expired)
                    .asks("c3")
                    .granted_in("m", "c3", 1_000, Exclusive)
                    .at(1_700)
                    .returns("c3", Outcome::Ok)
                    .ends(8_000),
            ),
            ("only readers", first(Shared).ends(3_000)),
            ("another kind of lock", Story::one_node().at(0).granted("m", "c1", 1_000).ends(3_000)),
        ];
        insta::assert_snapshot!(explained("read-write", &stories));
    }
}
