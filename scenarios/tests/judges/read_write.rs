//! The definition of `read_write`. A node's grant is wrong if another owner holds the lock on that
//! node at that moment and one of the two writes. An owner holds it there from its grant, or from
//! the node's return with its hold, until it has given all its holds back, the node has lost it, or
//! the node's clock has shown that the key is past its expiry. An owner may have a read hold and a
//! write hold at the same time, each for itself, and is a writer then. `times` counts the wrong
//! grants. `readers` is the largest number of read holders on one node right after a grant.
//! `writers_waited` and `readers_waited` are the longest durations of an acquisition to write and
//! to read, up to the end of the run if it is not over. Nothing is judged without a read-write
//! lock, or without a grant to write.

use std::time::Duration;

use lockstorm::judge::history::{Call, Deadline, EventKind, History, Host, Lock, LockKind, Mode, Owner};
use lockstorm_world::time::{True, Wall};

use crate::{
    Answer,
    past::{calls, given_up, shown},
};

/// Returns true if an owner holds a lock in a mode on a node at `now`, right after the first
/// `events` events.
fn holds(history: &History, hold: (Lock, Owner, Mode), node: Host, events: usize, now: True) -> bool {
    let expires = |until: Option<Wall>, at: True| {
        // Redis deletes a key once its clock is past the millisecond of the expiry.
        let past = |until: Wall| Wall::from_millis(until.as_millis()) + Duration::from_millis(1);
        until.map_or(True::MAX, |until| shown(history, node, Deadline::from(past(until)), at))
    };
    let mut over: Option<True> = None;
    for event in &history.events[..events] {
        if event.host != node || event.kind.hold() != Some(hold) {
            continue;
        }
        over = over.filter(|over| *over > event.at);
        match &event.kind {
            EventKind::Granted { until, .. } | EventKind::Regained { until, .. } => {
                over = Some(expires(*until, event.at));
            }
            EventKind::Extended { until, .. } => over = over.map(|_| expires(*until, event.at)),
            EventKind::Released { left: 0, .. } | EventKind::Vanished { .. } => over = None,
            _ => {}
        }
    }
    over.is_some_and(|over| over > now)
}

pub(crate) fn judge(history: &History) -> Answer {
    let judged = |lock: Lock| history.lock(lock).kind == LockKind::ReadWrite;
    let owners = || (0..history.owners.len() as u32).map(Owner);
    let (mut times, mut readers, mut writers) = (0, 0, 0);
    for (number, event) in history.events.iter().enumerate() {
        let EventKind::Granted { lock, owner, mode, .. } = event.kind else { continue };
        if !judged(lock) {
            continue;
        }
        writers += usize::from(mode == Mode::Exclusive);
        let held = |other: Owner, events: usize| {
            let mut modes = [Mode::Exclusive, Mode::Shared].into_iter();
            modes.find(|mode| holds(history, (lock, other, *mode), event.host, events, event.at))
        };
        let excluded = |other: &Owner| {
            let other_mode = held(*other, number);
            *other != owner
                && other_mode.is_some_and(|other| other == Mode::Exclusive || mode == Mode::Exclusive)
        };
        times += usize::from(owners().any(|other| excluded(&other)));
        let reads = |other: &Owner| {
            // A grant of length zero admits no owner.
            held(*other, number + 1) == Some(Mode::Shared)
        };
        readers = readers.max(owners().filter(reads).count());
    }
    let word = match times {
        1.. => "violated",
        0 if given_up(history) || writers == 0 => "undecided",
        0 => "holds",
    };
    let calls = calls(history);
    let waited = |wanted: Mode| {
        let asked = calls.iter().filter(|asked| judged(asked.lock));
        let asked = asked.filter(|asked| matches!(asked.call, Call::Acquire { mode, .. } if mode == wanted));
        let times = asked.map(|asked| asked.times(history)).map(|(from, over)| over.since(from));
        times.max().unwrap_or(Duration::ZERO)
    };
    Answer::of(word)
        .count("times", times)
        .count("readers", readers)
        .time("writers_waited", waited(Mode::Exclusive))
        .time("readers_waited", waited(Mode::Shared))
}
