//! The definition of `permits`. While an owner is promised a semaphore, it has as many permits as
//! the node counted when it last granted it some or took some back, and at least one. `most` is the
//! largest number that all owners of one semaphore had at one instant, `over` the largest excess
//! over the semaphore's permits. Nothing is judged without a semaphore, or if no permit was ever
//! promised.

use lockstorm::judge::history::{EventKind, History, LockKind, Owner};
use lockstorm_world::time::True;

use crate::{
    Answer,
    past::{Stretch, given_up, own, pairs, promised},
};

pub(crate) fn judge(history: &History) -> Answer {
    let (mut most, mut over, mut semaphores) = (0, 0, 0);
    for lock in history.header.locks() {
        let (LockKind::Semaphore { permits } | LockKind::Permits { permits }) = history.lock(lock).kind
        else {
            continue;
        };
        semaphores += 1;
        let owners = pairs(history).into_iter().filter(|(of, _)| *of == lock).map(|(_, owner)| owner);
        let promises: Vec<Stretch> = owners.flat_map(|owner| promised(history, lock, owner)).collect();
        let counted = |owner: Owner, at: True| {
            let count = history.events.iter().filter(|event| event.at <= at).rev().find_map(|event| {
                match &event.kind {
                    EventKind::Granted { lock: of, owner: whose, count, .. }
                        if (*of, *whose) == (lock, owner) =>
                    {
                        Some(*count)
                    }
                    EventKind::Released { lock: of, owner: whose, by, left, .. }
                        if (*of, *whose) == (lock, owner) && own(history, owner, *by) =>
                    {
                        Some(*left)
                    }
                    _ => None,
                }
            });
            count.unwrap_or(1).max(1) as usize
        };
        // Only a grant can increase the number.
        for event in &history.events {
            let out = promises
                .iter()
                .filter(|promise| promise.from <= event.at && event.at < promise.until)
                .map(|promise| counted(promise.owner, event.at))
                .sum();
            most = most.max(out);
            over = over.max(out.saturating_sub(permits as usize));
        }
    }
    let word = match over {
        1.. => "violated",
        0 if given_up(history) || semaphores == 0 || most == 0 => "undecided",
        0 => "holds",
    };
    Answer::of(word).count("most", most).count("over", over)
}
