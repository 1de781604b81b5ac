//! Commands per hand-off: what does it cost to pass a lock on, and does a waiter ask in a busy
//! loop?
//!
//! A hand-off is a promise that begins for another owner than the one before. The herd is the
//! number of tries that one release draws before the next one. A busy loop is a waiter that asks
//! more often in a second than the bound allows.
//!
//! A try is one request for the lock. The history does not contain requests, only their effects. A
//! waiter that wakes up asks, so each wake-up is a try, whatever its result. The first request of a
//! call is a try that shows only if it is granted. A grant after a wake-up, and each further grant
//! to the same call, result from a try that is already counted: the nodes of a quorum grant one try
//! each. In a quorum each attempt may be an owner of its own, so there the calls, wake-ups and
//! grants that belong together are those of one client. A try that only a grant shows is one of the
//! owner that made the client's latest call.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use lockstorm_world::time::True;

use crate::judge::{
    checker::{
        Checker,
        decision::{Case, Decided, Decision},
        evidence::Evidence,
    },
    history::{Call, EventKind, History, Host, HostKind, Lock, Owner},
    verdict::{Finding, Measure},
};

pub(in crate::judge::checker) const COMMANDS: Checker = Checker {
    name: "commands",
    question: "Does every waiter ask for the lock no more often than the bound allows?",
    measures: &[
        ("busiest", "how many times in one second one waiter asked at most"),
        ("commands", "how many commands clients sent"),
        ("hand_offs", "how many times the lock passed to another owner"),
        ("per_hand_off", "how many commands a hand-off cost on average"),
        ("herd", "how many tries one release drew at most"),
    ],
    bound: Some(|bounds| format!("`busiest` up to {}", bounds.attempts_per_second)),
    check,
};

const WINDOW: Duration = Duration::from_secs(1);

/// The owner that asks for a lock, or only its client if the lock needs a quorum.
type Asker = (Lock, Host, Option<Owner>);

/// The reason of a verdict.
pub(in crate::judge::checker) enum Because {
    NoTry,
    Busiest(Burst),
}

/// The busiest second of one owner.
#[derive(Debug, Clone, Copy)]
pub(in crate::judge::checker) struct Burst {
    pub(in crate::judge::checker) lock: Lock,
    pub(in crate::judge::checker) owner: Owner,
    pub(in crate::judge::checker) from: True,
    until: True,
    pub(in crate::judge::checker) tries: usize,
}

/// Returns the busiest second and the largest herd.
fn tries(history: &History) -> (Option<Burst>, u64) {
    // The askers of which a try has been seen since the call began.
    let mut seen: BTreeSet<Asker> = BTreeSet::new();
    // The owner that made the latest call.
    let mut callers: BTreeMap<Asker, Owner> = BTreeMap::new();
    let mut recent: BTreeMap<(Lock, Owner), VecDeque<True>> = BTreeMap::new();
    let mut herds: BTreeMap<Lock, Option<u64>> = BTreeMap::new();
    let (mut busiest, mut herd): (Option<Burst>, u64) = (None, 0);
    for event in &history.events {
        if let EventKind::Released { lock, left: 0, .. } = event.kind {
            herds.insert(lock, Some(0));
        }
        let Some((lock, owner)) = event.kind.lock().zip(event.kind.owner()) else { continue };
        let owner_alone = (history.lock(lock).authority.quorum == 1).then_some(owner);
        let asks = (lock, history.client_of(owner), owner_alone);
        let first = match event.kind {
            EventKind::Invoke { call: Call::Acquire { .. }, .. } => {
                seen.remove(&asks);
                callers.insert(asks, owner);
                continue;
            }
            EventKind::Woken { .. } | EventKind::Granted { .. } => seen.insert(asks),
            _ => continue,
        };
        let mut by = owner;
        if matches!(event.kind, EventKind::Granted { .. }) {
            if !first {
                continue;
            }
            by = callers.get(&asks).copied().unwrap_or(owner);
        }
        if let Some(Some(drawn)) = herds.get_mut(&lock) {
            *drawn += 1;
            herd = herd.max(*drawn);
        }
        let window = recent.entry((lock, by)).or_default();
        window.push_back(event.at);
        while window.front().is_some_and(|first| event.at.since(*first) >= WINDOW) {
            window.pop_front();
        }
        let tries = window.len();
        if busiest.is_none_or(|burst| tries > burst.tries) {
            let from = window.front().copied().unwrap_or(event.at);
            busiest = Some(Burst { lock, owner: by, from, until: event.at, tries });
        }
    }
    (busiest, herd)
}

fn check(evidence: &Evidence<'_>) -> Finding {
    decide(evidence).worded(&COMMANDS, evidence)
}

fn decide(evidence: &Evidence<'_>) -> Decided<Because, Burst> {
    let history = evidence.history;
    let (busiest, herd) = tries(history);
    let of_client = |host: Host| history.header.hosts[usize::from(host.0)].kind == HostKind::Client;
    let commands: u64 =
        history.commands.iter().filter(|count| of_client(count.client)).map(|count| count.count).sum();
    let hand_offs = evidence
        .promises
        .windows(2)
        .filter(|pair| pair[0].lock == pair[1].lock && pair[0].owner != pair[1].owner)
        .count();
    let bound = history.header.bounds.attempts_per_second as usize;
    let verdict = match busiest {
        Some(burst) if burst.tries > bound => {
            let Burst { lock, owner, from, until, .. } = burst;
            Decision::Violated(Case { wrong: burst, from, until, lock: Some(lock), owners: vec![owner] })
        }
        _ if evidence.is_given_up() => Decision::GivenUp,
        None => Decision::Undecided(Because::NoTry),
        Some(burst) => Decision::Holds(Because::Busiest(burst)),
    };
    let per_hand_off = if hand_offs == 0 { 0.0 } else { commands as f64 / hand_offs as f64 };
    let measures = vec![
        Measure::count("busiest", busiest.map_or(0, |burst| burst.tries as u64)),
        Measure::count("commands", commands),
        Measure::count("hand_offs", hand_offs as u64),
        Measure::number("per_hand_off", per_hand_off),
        Measure::count("herd", herd),
    ];
    Decided { verdict, measures }
}

#[cfg(test)]
mod tests {
    use crate::judge::{
        checker::tests::explained,
        history::{History, Outcome, Wake, story::Story},
    };

    fn asking(times: i64, every_ms: i64, end: impl Fn(Story) -> History) -> History {
        let held = Story::one_node().at(0).locks("c1", "m", 30_000).at(5).asks("c2");
        end((1..=times).fold(held, |story, at| story.at(5 + at * every_ms).woken("c2", Wake::Timer)))
    }

    #[test]
    fn explanations() {
        let herd = ["c2", "c3", "c4"];
        let waiting = herd
            .iter()
            .fold(Story::one_node().at(0).locks("c1", "m", 30_000), |story, client| story.asks(client));
        let woken = herd.iter().fold(waiting.at(100).unlocks("c1", "m").at(101), |story, client| {
            let story = story.woken(client, Wake::Message);
            if *client == "c2" { story.granted("m", client, 30_000) } else { story }
        });
        let counted = woken.commands("c1", "m", "EVALSHA", 2).commands("c2", "m", "EVALSHA", 5);
        let stories = [
            ("every ten milliseconds", asking(300, 10, |story| story.ends(10_000))),
            ("every millisecond", asking(300, 1, |story| story.ends(10_000))),
            ("one release wakes three", counted.ends(10_000)),
            ("no owner asks", Story::one_node().ends(10_000)),
            (
                "each call is granted at once",
                Story::one_node()
                    .at(0)
                    .locks("c1", "m", 30_000)
                    .at(1)
                    .unlocks("c1", "m")
                    .at(2)
                    .locks("c1", "m", 30_000)
                    .ends(10_000),
            ),
            (
                "three nodes of a quorum grant one try",
                ["a", "b", "c"]
                    .iter()
                    .fold(Story::quorum().at(0).asks("c1"), |story, node| {
                        story.at(1).granted(node, "c1", 10_000)
                    })
                    .ends(10_000),
            ),
            (
                "each attempt at a quorum is an owner of its own",
                ["1", "2", "3"]
                    .iter()
                    .fold(Story::quorum().at(10), |story, attempt| {
                        let granted = story.asks("c1").granted_attempt("a", "c1", attempt, 10_000);
                        granted.granted_attempt("b", "c1", attempt, 10_000).returns("c1", Outcome::Refused)
                    })
                    .ends(10_000),
            ),
        ];
        insta::assert_snapshot!(explained("commands", &stories));
    }
}
