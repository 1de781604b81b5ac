//! The definition of `fairness`. A master's queue is the queue that it was last seen to have. A
//! replica has none; when it is promoted, its queue is the one it was last seen to have since it
//! became a replica.
//!
//! An owner stands in line for a fair lock from when it is first in any queue. It has given its
//! place up when a call of its own is over, or from the start if it has no call under way then,
//! until it next reports that it waits. The place ends when the owner is granted the lock; when,
//! given up, it is in no queue at the end of an instant; and when, given up, it appears in a queue
//! that was seen without it, which is another place. A place is alive while it is not given up, its
//! owner has a call under way, and its host does not stand still. A grant of a first hold overtakes
//! every live place before that of its owner, and all live places if its owner has none.
//!
//! A place that is not given up is lost when its owner, whose call is under way, leaves the queue
//! of a node that had it. Later events show if the owner had given up. It had not if it is seen to
//! wait on, at a later instant before its call is over: it is woken, granted or in a queue again,
//! reports that it waits, or the run ends while its host does not stand still. Then grants in the
//! meantime overtook it, and it was swept if its place was alive when it was lost. Otherwise
//! neither counts. A place that is lost and in a queue again at the same instant was not lost.
//!
//! The layer is violated iff an owner was overtaken or swept. Nothing is judged without a fair
//! lock, or if no owner was ever behind another in a queue.

use lockstorm::judge::history::{Event, EventKind, History, Host, Lock, LockKind, Owner, Role};

use crate::{
    Answer,
    past::{Asked, calls, given_up, still},
};

/// A place in line: the event at which its owner was first in a queue, and the event that ended it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    owner: Owner,
    /// The number of the event, and the number of owners before it in that queue.
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

fn waits(event: &Event, whose: Owner) -> bool {
    matches!(&event.kind, EventKind::Waiting { owner, .. } if *owner == whose)
}

fn is_woken(event: &Event, whose: Owner) -> bool {
    matches!(&event.kind, EventKind::Woken { owner, .. } if *owner == whose)
}

/// The events and calls about one lock.
struct Told<'a> {
    history: &'a History,
    lock: Lock,
    /// Every call to acquire it.
    calls: Vec<Asked<'a>>,
    /// The numbers of the events about it and about the roles of nodes, and of those that ended a
    /// call.
    numbers: Vec<usize>,
}

impl<'a> Told<'a> {
    fn new(history: &'a History, lock: Lock, calls: &[Asked<'a>]) -> Self {
        let of_lock = calls.iter().filter(|call| call.lock == lock && call.acquires());
        let calls: Vec<Asked<'_>> = of_lock.copied().collect();
        let is_told = |(number, event): &(usize, &Event)| {
            event.kind.lock() == Some(lock)
                || matches!(event.kind, EventKind::Became { .. })
                || calls.iter().any(|call| call.ended == Some(*number))
        };
        let numbers = history.events.iter().enumerate().filter(is_told).map(|(number, _)| number).collect();
        Self { history, lock, calls, numbers }
    }

    fn event(&self, number: usize) -> &'a Event {
        &self.history.events[number]
    }

    /// The events of a node before this one, latest first.
    fn before(&self, node: Host, number: usize) -> impl Iterator<Item = &'a Event> {
        self.history.events[..number].iter().rev().filter(move |event| event.host == node)
    }

    fn is_replica(&self, node: Host, number: usize) -> bool {
        let role = |event: &Event| {
            if let EventKind::Became { role } = event.kind { Some(role) } else { None }
        };
        self.before(node, number).find_map(role) == Some(Role::Replica)
    }

    /// The queue that a node was last seen to have before an event, its own or a copy, since it
    /// last became a replica.
    fn kept(&self, node: Host, number: usize) -> Option<&'a [Owner]> {
        let became = |event: &&Event| !matches!(event.kind, EventKind::Became { role: Role::Replica });
        let mut since = self.before(node, number).take_while(became);
        since.find_map(|event| match &event.kind {
            EventKind::Queue { lock, waiters } if *lock == self.lock => Some(&**waiters),
            _ => None,
        })
    }

    /// A master's queue before an event; `None` for a replica.
    fn queue(&self, node: Host, number: usize) -> Option<&'a [Owner]> {
        self.kept(node, number).filter(|_| !self.is_replica(node, number))
    }

    /// The queue that an event shows; `None` if it shows none.
    fn shows(&self, number: usize) -> Option<&'a [Owner]> {
        let event = self.event(number);
        let replica = self.is_replica(event.host, number);
        match &event.kind {
            EventKind::Queue { lock, waiters } if *lock == self.lock && !replica => Some(waiters),
            EventKind::Became { role: Role::Master } if replica => self.kept(event.host, number),
            _ => None,
        }
    }

    /// Returns true if an owner is in any queue after an event.
    fn is_queued(&self, owner: Owner, after: usize) -> bool {
        let nodes = (0..self.history.header.hosts.len() as u16).map(Host);
        nodes.filter_map(|node| self.queue(node, after + 1)).any(|queue| queue.contains(&owner))
    }

    fn own(&self, owner: Owner) -> impl Iterator<Item = &Asked<'a>> {
        self.calls.iter().filter(move |call| call.owner == owner)
    }

    fn ends_call(&self, owner: Owner, number: usize) -> bool {
        self.own(owner).any(|call| call.ended == Some(number))
    }

    /// Returns true if an owner has given up, after an event, the place that it took at an earlier
    /// one.
    fn given_up(&self, owner: Owner, taken: usize, after: usize) -> bool {
        let since = self.numbers.iter().rev().copied().filter(|number| (taken + 1..=after).contains(number));
        let says = |number: usize| {
            let of_lock = self.event(number).kind.lock() == Some(self.lock);
            match self.ends_call(owner, number) {
                true => Some(true),
                false => (of_lock && waits(self.event(number), owner)).then_some(false),
            }
        };
        let asked = self.own(owner).any(|call| call.under_way(taken));
        since.filter_map(says).next().unwrap_or(!asked)
    }

    /// The places that an owner takes.
    fn places(&self, owner: Owner) -> Vec<Place> {
        let mut places: Vec<Place> = Vec::new();
        for (at, number) in self.numbers.iter().copied().enumerate() {
            let event = self.event(number);
            let stands =
                self.shows(number).and_then(|queue| queue.iter().position(|waiter| *waiter == owner));
            if let Some(place) = places.last_mut().filter(|place| place.ended.is_none()) {
                let granted = event.kind.lock() == Some(self.lock) && first_hold(event) == Some(owner);
                let joins = stands.is_some()
                    && self.queue(event.host, number).is_some_and(|before| !before.contains(&owner))
                    && self.given_up(owner, place.taken.0, number);
                place.ended = (granted || joins).then_some(number);
            }
            if let Some(before) = stands
                && places.last().is_none_or(|place| place.ended.is_some())
            {
                places.push(Place { owner, taken: (number, before), ended: None });
            }
            let next = self.numbers.get(at + 1);
            if next.is_none_or(|next| self.event(*next).at > event.at)
                && let Some(place) = places.last_mut().filter(|place| place.ended.is_none())
            {
                let over = self.given_up(owner, place.taken.0, number) && !self.is_queued(owner, number);
                place.ended = over.then_some(number);
            }
        }
        places
    }

    /// Returns how often a place was swept, and how often it was overtaken.
    fn wrongs(&self, place: &Place, places: &[Place]) -> (usize, usize) {
        let Place { owner, taken, .. } = *place;
        let waiting =
            |at: usize| self.own(owner).any(|call| call.under_way(at)) && !self.given_up(owner, taken.0, at);
        let is_still = |at: usize| still(self.history, self.history.client_of(owner), at);
        let alive = |at: usize| waiting(at) && !is_still(at);
        // The event at which it was lost, while it is, 1 if it was alive then, and the number of
        // grants that passed it since.
        let mut lost: Option<(&Event, usize, usize)> = None;
        let (mut swept, mut overtaken) = (0, 0);
        for number in self.numbers.iter().copied().filter(|number| place.lasts(*number)) {
            let event = self.event(number);
            let shown = self.shows(number);
            let granted = first_hold(event).filter(|_| event.kind.lock() == Some(self.lock));
            let of_lock = event.kind.lock() == Some(self.lock);
            let waits_on = (of_lock && (waits(event, owner) || is_woken(event, owner)))
                || granted == Some(owner)
                || shown.is_some_and(|waiters| waiters.contains(&owner));
            if waits_on && let Some((_, was_alive, passed)) = lost.filter(|(since, ..)| since.at < event.at) {
                (swept, overtaken, lost) = (swept + was_alive, overtaken + passed, None);
            }
            if self.ends_call(owner, number) {
                lost = None;
            }
            if let Some(now) = shown {
                let had = self.queue(event.host, number).is_some_and(|had| had.contains(&owner));
                if now.contains(&owner) {
                    lost = None;
                } else if had && waiting(number) && lost.is_none() {
                    lost = Some((event, usize::from(alive(number)), 0));
                }
            }
            if let Some(granted) = granted.filter(|granted| *granted != owner) {
                let of_granted = places.iter().find(|other| other.owner == granted && other.lasts(number));
                if alive(number) && of_granted.is_none_or(|other| taken < other.taken) {
                    match &mut lost {
                        Some((.., passed)) => *passed += 1,
                        None => overtaken += 1,
                    }
                }
            }
        }
        let last = self.history.events.len() - 1;
        match lost {
            Some((_, was_alive, passed)) if place.ended.is_none() && !is_still(last) => {
                (swept + was_alive, overtaken + passed)
            }
            _ => (swept, overtaken),
        }
    }
}

pub(crate) fn judge(history: &History) -> Answer {
    let fair = |lock: &Lock| history.lock(*lock).kind == LockKind::Fair;
    let calls = calls(history);
    let (mut swept, mut overtakes, mut queued_behind) = (0, 0, false);
    for lock in history.header.locks().filter(fair) {
        let told = Told::new(history, lock, &calls);
        let mut shown = told.numbers.iter().filter_map(|number| told.shows(*number));
        queued_behind |= shown.any(|waiters| waiters.len() > 1);
        let owners = (0..history.owners.len() as u32).map(Owner);
        let all: Vec<Place> = owners.flat_map(|owner| told.places(owner)).collect();
        for place in &all {
            let wrong = told.wrongs(place, &all);
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
