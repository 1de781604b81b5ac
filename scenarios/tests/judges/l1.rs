//! The definition of L1. The layer is violated iff promises of two owners have an instant in
//! common, and one of the two may not have the lock beside the other. `times` counts such pairs of
//! promises, `overlap` is the longest time that a pair has in common. The question arose if a lock
//! was promised that more than one owner wanted. In real time a result is undecided if it would
//! differ with one of the two earlier or later by 100 ms.

use lockstorm::judge::history::{History, Lock, Owner};

use crate::{
    Answer,
    past::{Clashes, Stretch, contenders, excludes, given_up, of_all, promised},
};

pub(crate) fn judge(history: &History) -> Answer {
    judge_stretches(history, promised)
}

/// Judges promises (L1) or beliefs (L2).
pub(crate) fn judge_stretches(
    history: &History,
    stretches: fn(&History, Lock, Owner) -> Vec<Stretch>,
) -> Answer {
    let mut stretches = of_all(history, stretches);
    stretches.retain(|stretch| excludes(history, stretch.lock));
    let clashes = Clashes::among(history, &stretches);
    let tested = stretches.iter().any(|stretch| contenders(history, stretch.lock).len() > 1);
    let word = match clashes.lengths.is_empty() {
        false => "violated",
        true if clashes.unsure > 0 || given_up(history) || !tested => "undecided",
        true => "holds",
    };
    Answer::of(word).time("overlap", clashes.longest()).count("times", clashes.lengths.len())
}
