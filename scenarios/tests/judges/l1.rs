//! L1, as it is defined: the layer is violated iff promises of two owners, one of whom may not have
//! the lock beside the other, have an instant in common. `times` counts the pairs of promises that
//! do, `overlap` is the longest time that a pair has in common. The question arose if a lock was
//! promised that more than one owner wanted. In real time it is undecided what would be otherwise,
//! had one of the two been earlier or later by 100 ms.

use lockstorm::judge::history::{History, Lock, Owner};

use crate::{
    Answer,
    past::{Clashes, Stretch, contenders, excludes, given_up, of_all, promised},
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
    let clashes = Clashes::among(history, &stretches);
    let tested = stretches.iter().any(|stretch| contenders(history, stretch.lock).len() > 1);
    let word = match clashes.lengths.is_empty() {
        false => "violated",
        true if clashes.unsure > 0 || given_up(history) || !tested => "undecided",
        true => "holds",
    };
    Answer::of(word).time("overlap", clashes.longest()).count("times", clashes.lengths.len())
}
