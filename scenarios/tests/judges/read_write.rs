//! Read-write, as it is defined: a node's grant is wrong if another owner holds the lock on that node at that moment and one
//! of the two is to write. An owner holds it there from its grant until it has given all its holds back, the node has lost
//! it, or the node's clock has shown that the key is past its expiry; it holds it to write if any grant since was to write.
//! `times` counts the wrong grants, `readers` how many held it to read on one node at most, right after a grant. There is
//! nothing to judge without a read-write lock, or if no grant to write occurred.

use std::time::Duration;

use lockstorm::history::{Deadline, EventKind, History, Host, Lock, LockKind, Mode, Owner};
use lockstorm_sim::time::{True, Wall};

use crate::{
    Answer,
    past::{given_up, shown},
};

/// In which mode an owner holds a lock on a node right after the first so many events, at that instant.
fn held(history: &History, lock: Lock, node: Host, owner: Owner, events: usize, now: True) -> Option<Mode> {
    let expires = |until: Option<Wall>, at: True| {
        // Redis drops a key when its clock has left the millisecond of the expiry behind.
        let past = |until: Wall| Wall::from_millis(until.as_millis()) + Duration::from_millis(1);
        until.map_or(True::MAX, |until| shown(history, node, Deadline::from(past(until)), at))
    };
    let mut hold: Option<(Mode, True)> = None;
    for event in &history.events[..events] {
        if event.host != node || event.kind.lock() != Some(lock) || event.kind.owner() != Some(owner) {
            continue;
        }
        hold = hold.filter(|(_, over)| *over > event.at);
        match &event.kind {
            EventKind::Granted { mode, until, .. } => {
                let writes = *mode == Mode::Exclusive || matches!(hold, Some((Mode::Exclusive, _)));
                let mode = if writes { Mode::Exclusive } else { Mode::Shared };
                hold = Some((mode, expires(*until, event.at)));
            }
            EventKind::Extended { until, .. } => {
                hold = hold.map(|(mode, _)| (mode, expires(*until, event.at)))
            }
            EventKind::Released { left: 0, .. } | EventKind::Vanished { .. } => hold = None,
            _ => {}
        }
    }
    hold.filter(|(_, over)| *over > now).map(|(mode, _)| mode)
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
        let held = |other: Owner, events: usize| held(history, lock, event.host, other, events, event.at);
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
    Answer::of(word).count("times", times).count("readers", readers)
}
