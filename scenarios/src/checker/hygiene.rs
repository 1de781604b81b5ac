//! Hygiene: when all clients are done, is nothing left in Redis but what is meant to stay?
//!
//! A lock's own keys may be there while an owner still believes it holds the lock or waits for it. Keys that the lock declares
//! as lasting (a token counter) may always be there, and keys that it declares as passing (what remembers a release for its
//! repeats) while they have a time to live. Any other key of the lock was left behind.

use super::{Checker, belief::BeliefEnd, evidence::Evidence, words};
use crate::{
    history::{History, KeyLeft, Lock},
    verdict::{Finding, Measure, Verdict, Witness},
};

/// The checker.
pub(super) const HYGIENE: Checker = Checker {
    name: "hygiene",
    question: "When all clients are done, is nothing left in Redis but what is meant to stay?",
    measures: &[
        ("left", "how many keys were left behind"),
        ("for_ever", "how many of them without an expiry"),
    ],
    check,
};

fn is_meant_to_stay(history: &History, left: &KeyLeft) -> bool {
    let lock = history.lock(left.lock);
    let passing = || lock.passing_keys.iter().any(|part| left.key.starts_with(&**part));
    lock.lasting_keys.contains(&left.key) || (left.ttl_ms.is_some() && passing())
}

fn check(evidence: &Evidence<'_>) -> Finding {
    let history = evidence.history;
    let in_use = |lock: Lock| {
        let held =
            evidence.beliefs.iter().any(|belief| belief.lock == lock && belief.end == BeliefEnd::RunOver);
        held || evidence
            .calls
            .iter()
            .any(|call| call.lock == lock && call.is_acquire() && call.over.is_none())
    };
    let used: Vec<bool> = history.header.locks().map(in_use).collect();
    let stays = |key: &KeyLeft| used[usize::from(key.lock.0)] || is_meant_to_stay(history, key);
    let left: Vec<&KeyLeft> = history.keys_left.iter().filter(|key| !stays(key)).collect();
    let for_ever = left.iter().filter(|key| key.ttl_ms.is_none()).count();
    let verdict = match left.first() {
        Some(key) => Verdict::Violated { witness: witness(history, key, left.len()) },
        None => match evidence.given_up() {
            Some(why) => Verdict::undecided(why),
            None if evidence.promises.is_empty() => Verdict::undecided("No lock was ever granted."),
            None if used.iter().all(|used| *used) => {
                Verdict::undecided("The lock was still in use when the run ended.")
            }
            None => Verdict::holds("Nothing was left behind."),
        },
    };
    let measures =
        vec![Measure::count("left", left.len() as u64), Measure::count("for_ever", for_ever as u64)];
    HYGIENE.finding(verdict, measures)
}

fn witness(history: &History, key: &KeyLeft, left: usize) -> Witness {
    let rest = match key.ttl_ms {
        Some(ms) => format!("and goes by itself in {ms} ms"),
        None => "and stays forever".to_owned(),
    };
    let node = history.host_name(key.node);
    let summary = format!("`{}` is left on {node}, {rest}; {} in all.", key.key, words::many(left, "key"));
    let end = history.header.end;
    let story = Vec::new();
    Witness { summary, story, from: end, until: end, lock: Some(key.lock), owners: Vec::new(), fault: None }
}

#[cfg(test)]
mod tests {
    use crate::{
        checker::tests::{explained, first_line},
        history::{Life, story::Story},
    };

    #[test]
    fn explanations() {
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
                "a release is remembered for a while",
                done().key_left("m", "latch:{stock}:7", Some(16_000)).ends(10_000),
            ),
            ("a release is remembered forever", done().key_left("m", "latch:{stock}:7", None).ends(10_000)),
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

    /// The call of a client that crashed is over, and so a key of its lock is left behind. Regression: the lock counted as
    /// in use forever.
    #[test]
    fn who_crashed_does_not_wait() {
        let story =
            Story::one_node().at(0).locks("c1", "m", 1_000).at(10).unlocks("c1", "m").at(20).asks("c2");
        let story = story.granted_without_expiry("m", "c2").life("c2", Life::Crashed);
        let history = story.key_left("m", "stock", None).ends(10_000);
        assert_eq!(first_line("hygiene", &history), "violated left=1 for_ever=1");
    }
}
