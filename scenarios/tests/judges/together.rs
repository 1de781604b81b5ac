//! The definition of `together`. Acquisitions of different locks that one owner makes at one
//! instant are one acquisition, and so are releases. An acquisition that has returned success in
//! all parts is torn if its owner was not promised one of its locks at the instant of the last
//! return; `torn` counts these. After any other acquisition, from that instant on, each of its
//! locks is left over while it stays promised to the owner, until the owner next asks for it; but
//! not if it was already promised when an acquisition was made. `left` is the longest time that a
//! lock was left over. The layer is violated iff `left` exceeds the bound for progress, or anything
//! was torn. `waited` is the longest time from the making of an acquisition to the end of its last
//! part, or of the run. Nothing is judged if nothing was taken or given back together.

use std::{collections::BTreeSet, time::Duration};

use lockstorm::judge::history::{Call, History, Lock, Outcome, Owner};
use lockstorm_world::time::True;

use crate::{
    Answer,
    past::{Asked, Stretch, calls, given_up, promised},
};

pub(crate) fn judge(history: &History) -> Answer {
    let calls = calls(history);
    let made = |call: &Asked<'_>| history.events[call.made].at;
    let kind = |call: &Asked<'_>| match call.call {
        Call::Acquire { .. } => Some(true),
        Call::Release => Some(false),
        _ => None,
    };
    let at = |lock: Lock, owner: Owner, instant: True| -> Option<Stretch> {
        let of_owner = promised(history, lock, owner);
        of_owner.into_iter().find(|stretch| stretch.from <= instant && instant < stretch.until)
    };
    let (mut together, mut torn, mut left, mut waited) = (0, 0, Duration::ZERO, Duration::ZERO);
    let mut seen = BTreeSet::new();
    for first in &calls {
        let (owner, from) = (first.owner, made(first));
        let Some(acquires) = kind(first) else { continue };
        if !seen.insert((owner, from, acquires)) {
            continue;
        }
        let parts: Vec<&Asked<'_>> = calls
            .iter()
            .filter(|call| call.owner == owner && made(call) == from && kind(call) == Some(acquires))
            .collect();
        let locks: BTreeSet<Lock> = parts.iter().map(|call| call.lock).collect();
        if locks.len() < 2 {
            continue;
        }
        together += 1;
        if acquires {
            let over = parts.iter().map(|call| call.times(history).1).max();
            waited = waited.max(over.map_or(Duration::ZERO, |over| over.since(from)));
        }
        if parts.iter().any(|call| call.outcome.is_none()) {
            continue;
        }
        let back = parts.iter().filter_map(|call| call.ended).map(|ended| history.events[ended].at);
        let back = back.max().unwrap_or(from);
        if acquires && parts.iter().all(|call| call.outcome == Some(&Outcome::Ok)) {
            torn += usize::from(locks.iter().any(|lock| at(*lock, owner, back).is_none()));
            continue;
        }
        for lock in locks {
            if acquires && at(lock, owner, from).is_some() {
                continue;
            }
            let Some(stretch) = at(lock, owner, back) else { continue };
            let next = calls.iter().filter(|call| call.is(lock, owner) && call.acquires());
            let next = next.filter(|call| !parts.iter().any(|part| part.made == call.made));
            let next = next.map(made).filter(|next| *next >= back).min();
            let until = next.map_or(stretch.until, |next| stretch.until.min(next));
            left = left.max(until.since(back));
        }
    }
    let word = match torn {
        1.. => "violated",
        0 if left > history.header.bounds.progress => "violated",
        0 if given_up(history) || together == 0 => "undecided",
        0 => "holds",
    };
    Answer::of(word).count("torn", torn).time("left", left).time("waited", waited)
}
