//! The definition of `wake_ups`. An owner waits for a lock from its report of that until it is
//! granted the lock, believes in it, leaves the queue, or its call is over. It is able to react if
//! its host does not stand still. A release that leaves nothing held while an able waiter exists is
//! open, unless another one is. It stays open until a waiter wakes up or is granted the lock,
//! another owner is granted it, a node comes back with a hold of it, or no waiter exists. While it
//! is open and an able waiter exists, there is no reaction: each such stretch is a gap. The last
//! stretch is no gap if it ends because an owner that did not wait was granted the lock, or has it
//! again with its node: then there was nothing to be woken for.
//!
//! A release of a read-write lock counts if it leaves nothing held on its node. A writer's release
//! that leaves only readers counts as well, and then only waiters that want to read are waiters.
//!
//! `longest` is the longest gap, `releases` the number of open releases; the layer is violated iff
//! the longest gap exceeds the bound. The question arose if there was a gap. `messages` and
//! `timers` count the causes of wake-ups. Not judged are waiters of a quorum, which rely on their
//! own timers, and waiters for permits with leases, which do not wait under the names by which they
//! ask.

use std::{collections::BTreeSet, time::Duration};

use lockstorm::judge::history::{Call, Event, EventKind, History, Lock, LockKind, Mode, Owner, Wake};

use crate::{
    Answer,
    past::{Asked, calls, given_up, still},
};

/// The waiters for a lock, as derived from its events.
struct Waiters<'a> {
    lock: Lock,
    /// Only the waiters that want to read.
    to_readers: bool,
    calls: Vec<Asked<'a>>,
    /// Events after which an owner waits (true) or no longer waits (false).
    said: Vec<(usize, Owner, bool)>,
}

impl Waiters<'_> {
    fn of(history: &History, lock: Lock, to_readers: bool) -> Waiters<'_> {
        let said = history.events.iter().enumerate().filter_map(|(number, event)| match &event.kind {
            _ if event.kind.lock() != Some(lock) => None,
            EventKind::Waiting { owner, .. } => Some((number, *owner, true)),
            EventKind::Granted { owner, .. } | EventKind::Believes { owner, .. } => {
                Some((number, *owner, false))
            }
            _ => None,
        });
        let calls = calls(history).into_iter().filter(|call| call.lock == lock && call.acquires()).collect();
        Waiters { lock, to_readers, calls, said: said.collect() }
    }

    /// Returns true if an owner waits after an event, and wants the mode that is free.
    fn waits(&self, owner: Owner, after: usize) -> bool {
        let mut calls = self.calls.iter().filter(|call| call.is(self.lock, owner));
        let Some(call) = calls.find(|call| call.under_way(after)) else { return false };
        if self.to_readers && !matches!(call.call, Call::Acquire { mode: Mode::Shared, .. }) {
            return false;
        }
        let mut said =
            self.said.iter().filter(|said| said.1 == owner && (call.made..=after).contains(&said.0));
        said.next_back().is_some_and(|said| said.2)
    }

    /// Returns true if a waiter exists after an event.
    fn any(&self, history: &History, after: usize) -> bool {
        (0..history.owners.len() as u32).any(|owner| self.waits(Owner(owner), after))
    }

    /// Returns true if a waiter exists after an event whose host does not stand still.
    fn able(&self, history: &History, after: usize) -> bool {
        let mut owners = (0..history.owners.len() as u32).map(Owner);
        owners.any(|owner| self.waits(owner, after) && !still(history, history.client_of(owner), after))
    }
}

/// Adds the gaps after a release; returns the number of the first event at which it is no longer
/// open.
fn gaps(history: &History, waiters: &Waiters<'_>, release: usize, gaps: &mut Vec<Duration>) -> usize {
    let mut since = Some(history.events[release].at);
    for (number, event) in history.events.iter().enumerate().skip(release + 1) {
        let waited = |owner: Owner| waiters.waits(owner, number - 1);
        // `Some` if this event ends the release; true if it is a waiter's.
        let reacts = match &event.kind {
            _ if event.kind.lock().is_some_and(|of| of != waiters.lock) => None,
            EventKind::Woken { owner, .. } => waited(*owner).then_some(true),
            EventKind::Granted { owner, .. } => Some(waited(*owner)),
            EventKind::Regained { .. } => Some(false),
            _ => None,
        };
        let gap = since.map(|since| event.at.since(since));
        if let Some(waited) = reacts {
            gaps.extend(gap.filter(|_| waited));
            return number;
        }
        if !waiters.able(history, number) {
            gaps.extend(gap);
            since = None;
            if !waiters.any(history, number) {
                return number + 1;
            }
        } else if since.is_none() {
            since = Some(event.at);
        }
    }
    gaps.extend(since.map(|since| history.header.end.since(since)));
    history.events.len()
}

/// `Some` if a release leaves something to waiters; true if only to readers.
fn leaves(history: &History, number: usize) -> Option<bool> {
    let event = &history.events[number];
    let EventKind::Released { lock, left: 0, mode, .. } = event.kind else { return None };
    if history.lock(lock).kind != LockKind::ReadWrite {
        return Some(false);
    }
    let mut held = BTreeSet::new();
    let of_lock = |event: &&Event| event.kind.lock() == Some(lock);
    for event in history.events[..=number].iter().filter(|other| other.host == event.host).filter(of_lock) {
        let Some((_, owner, mode)) = event.kind.hold() else { continue };
        match event.kind {
            EventKind::Granted { .. } | EventKind::Regained { .. } => {
                held.insert((owner, mode));
            }
            EventKind::Released { left: 0, .. } | EventKind::Vanished { .. } => {
                held.remove(&(owner, mode));
            }
            _ => {}
        }
    }
    let readers_alone = held.iter().all(|(_, mode)| *mode == Mode::Shared);
    match mode {
        _ if held.is_empty() => Some(false),
        Mode::Exclusive if readers_alone => Some(true),
        _ => None,
    }
}

pub(crate) fn judge(history: &History) -> Answer {
    let mut times: Vec<Duration> = Vec::new();
    let (mut messages, mut timers) = (0, 0);
    for event in &history.events {
        messages += usize::from(matches!(event.kind, EventKind::Woken { by: Wake::Message, .. }));
        timers += usize::from(matches!(event.kind, EventKind::Woken { by: Wake::Timer, .. }));
    }
    let mut releases = 0;
    let judged = |lock: &Lock| {
        let info = history.lock(*lock);
        info.authority.quorum == 1 && !matches!(info.kind, LockKind::Permits { .. })
    };
    for lock in history.header.locks().filter(judged) {
        let waiters = [false, true].map(|to_readers| Waiters::of(history, lock, to_readers));
        let mut over = 0;
        for (number, event) in history.events.iter().enumerate() {
            let leaves = leaves(history, number).filter(|_| event.kind.lock() == Some(lock));
            let Some(waiters) = leaves.map(|to_readers| &waiters[usize::from(to_readers)]) else { continue };
            if number >= over && waiters.able(history, number) {
                releases += 1;
                over = gaps(history, waiters, number, &mut times);
            }
        }
    }
    let longest = times.iter().max().copied().unwrap_or(Duration::ZERO);
    let word = match times.is_empty() {
        false if longest > history.header.bounds.wake => "violated",
        empty if given_up(history) || empty => "undecided",
        _ => "holds",
    };
    Answer::of(word)
        .time("longest", longest)
        .count("releases", releases)
        .count("messages", messages)
        .count("timers", timers)
}
