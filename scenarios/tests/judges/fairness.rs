//! Fairness, as it is defined: an owner stands in line for a fair lock from when it is first in any node's queue, until it is
//! granted the lock, says that it left the queue, or a call of its is over; afterwards it may take another place. Its place is
//! alive while it has a call under way and its host does not stand still. A grant of a first hold overtakes every live place before that of its owner, and every live place at all if its
//! owner has none.
//!
//! A live place is lost when its owner leaves the queue of a node that had it. Whether it had given up shows later: if it is
//! seen to wait on, at a later instant while its place lasts, by being woken, granted or in a queue again, by saying
//! that it waits, or by the run's ending, then it was swept. What passed it in the meantime overtook it only if it was swept.
//! A place that was lost and is in a queue again at the same instant was not lost.
//!
//! The layer is violated iff an owner was overtaken or swept. There is nothing to judge without a fair lock, or if no owner
//! ever was behind another in a queue.

use lockstorm::history::{Event, EventKind, History, Lock, LockKind, Owner};

use crate::{
    Answer,
    past::{Asked, calls, given_up, still},
};

/// A place in line: where its owner first was in a queue, and the event that ended it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    owner: Owner,
    /// The number of the event, and how many stood before it there.
    taken: (usize, usize),
    ended: Option<usize>,
}

impl Place {
    fn lasts(&self, at: usize) -> bool {
        self.taken.0 < at && self.ended.is_none_or(|ended| at <= ended)
    }
}

fn first_hold(event: &Event) -> Option<Owner> {
    match &event.kind {
        EventKind::Granted { owner, count: 0 | 1, .. } => Some(*owner),
        _ => None,
    }
}

fn waiters(event: &Event) -> Option<&[Owner]> {
    if let EventKind::Queue { waiters, .. } = &event.kind { Some(waiters) } else { None }
}

/// The events about one lock, with their numbers in the history.
type Told<'a> = Vec<(usize, &'a Event)>;

/// The places that an owner takes.
fn places(told: &Told<'_>, calls: &[Asked<'_>], owner: Owner) -> Vec<Place> {
    let mut places: Vec<Place> = Vec::new();
    for (number, event) in told {
        if let Some(place) = places.last_mut().filter(|place| place.ended.is_none()) {
            let over = calls.iter().filter_map(|call| call.ended);
            place.ended = over.filter(|over| (place.taken.0..*number).contains(over)).min();
        }
        let open = places.last().is_some_and(|place| place.ended.is_none());
        let stands = waiters(event).and_then(|waiters| waiters.iter().position(|waiter| *waiter == owner));
        match stands {
            Some(before) if !open => places.push(Place { owner, taken: (*number, before), ended: None }),
            None if open && first_hold(event) == Some(owner) => {
                places.last_mut().expect("an open one").ended = Some(*number);
            }
            _ => {}
        }
    }
    if let Some(place) = places.last_mut().filter(|place| place.ended.is_none()) {
        place.ended = calls.iter().filter_map(|call| call.ended).find(|over| *over > place.taken.0);
    }
    places
}

/// What went wrong for one place: how often it was swept, and how often it was overtaken.
fn wrongs(
    history: &History,
    told: &Told<'_>,
    calls: &[Asked<'_>],
    place: &Place,
    places: &[Place],
) -> (usize, usize) {
    let asks = |at: usize| calls.iter().any(|call| call.owner == place.owner && call.under_way(at));
    let alive = |at: usize| asks(at) && !still(history, history.client_of(place.owner), at);
    // When it was lost, if it is, and how many passed it since.
    let mut lost: Option<(&Event, usize)> = None;
    let (mut swept, mut overtaken) = (0, 0);
    for (number, event) in told.iter().filter(|(number, _)| place.lasts(*number)) {
        let waits_on = match &event.kind {
            EventKind::Queue { waiters, .. } => waiters.contains(&place.owner),
            EventKind::Woken { owner, .. } | EventKind::Waiting { owner, .. } => *owner == place.owner,
            _ => first_hold(event) == Some(place.owner),
        };
        if waits_on && let Some((since, passed)) = lost.filter(|(since, _)| since.at < event.at) {
            (swept, overtaken, lost) = (swept + 1, overtaken + passed, None);
            let _ = since;
        }
        if let Some(now) = waiters(event) {
            let before = told.iter().rev().filter(|(earlier, _)| earlier < number);
            let mut before = before.filter(|(_, earlier)| earlier.host == event.host);
            let had = before
                .find_map(|(_, earlier)| waiters(earlier))
                .is_some_and(|had| had.contains(&place.owner));
            if now.contains(&place.owner) {
                lost = None;
            } else if had && alive(*number) && lost.is_none() {
                lost = Some((event, 0));
            }
        }
        if let Some(granted) = first_hold(event).filter(|granted| *granted != place.owner) {
            let of_granted = places.iter().find(|other| other.owner == granted && other.lasts(*number));
            if alive(*number) && of_granted.is_none_or(|other| place.taken < other.taken) {
                match &mut lost {
                    Some((_, passed)) => *passed += 1,
                    None => overtaken += 1,
                }
            }
        }
    }
    match lost {
        Some((_, passed)) if place.ended.is_none() => (swept + 1, overtaken + passed),
        _ => (swept, overtaken),
    }
}

pub(crate) fn judge(history: &History) -> Answer {
    let fair = |lock: &Lock| history.lock(*lock).kind == LockKind::Fair;
    let calls = calls(history);
    let (mut swept, mut overtakes, mut queued_behind) = (0, 0, false);
    for lock in history.header.locks().filter(fair) {
        let events = history.events.iter().enumerate();
        let told: Told<'_> = events.filter(|(_, event)| event.kind.lock() == Some(lock)).collect();
        queued_behind |=
            told.iter().any(|(_, event)| waiters(event).is_some_and(|waiters| waiters.len() > 1));
        let acquires = calls.iter().filter(|call| call.lock == lock && call.acquires());
        let acquires: Vec<Asked<'_>> = acquires.copied().collect();
        let mut all: Vec<Place> = Vec::new();
        for owner in (0..history.owners.len() as u32).map(Owner) {
            let own = acquires.iter().filter(|call| call.owner == owner).copied().collect::<Vec<_>>();
            all.extend(places(&told, &own, owner));
        }
        for place in &all {
            let wrong = wrongs(history, &told, &acquires, place, &all);
            (swept, overtakes) = (swept + wrong.0, overtakes + wrong.1);
        }
    }
    let word = match swept + overtakes {
        1.. => "violated",
        0 if given_up(history) || !queued_behind => "undecided",
        0 => "holds",
    };
    Answer::of(word).count("overtakes", overtakes).count("swept", swept)
}
