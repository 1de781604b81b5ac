//! L1, as it is defined: the layer is violated iff promises of two owners, one of whom may not have the lock beside the
//! other, have an instant in common. `times` counts the pairs of promises that do, `overlap` is the longest time that a pair
//! has in common. The question arose if a lock was promised that more than one owner wanted.

use std::time::Duration;

use lockstorm::history::{History, Lock, Owner};

use crate::{
    Answer,
    past::{Stretch, clashes, contenders, excludes, given_up, of_all, promised},
};

pub(crate) fn judge(history: &History) -> Answer {
    judge_stretches(history, promised)
}

/// What L1 says of promises and L2 of beliefs.
pub(crate) fn judge_stretches(
    history: &History,
    stretches: fn(&History, Lock, Owner) -> Vec<Stretch>,
) -> Answer {
    let mut stretches = of_all(history, stretches);
    stretches.retain(|stretch| excludes(history, stretch.lock));
    let clashes = clashes(&stretches);
    let tested = stretches.iter().any(|stretch| contenders(history, stretch.lock).len() > 1);
    let word = match clashes.is_empty() {
        false => "violated",
        true if given_up(history) || !tested => "undecided",
        true => "holds",
    };
    Answer::of(word)
        .time("overlap", clashes.iter().max().copied().unwrap_or(Duration::ZERO))
        .count("times", clashes.len())
}
