//! The definition of `commands`. An asker is an owner, or a client if the lock needs a quorum. A
//! try is a wake-up of a waiter, or the first grant by a node after the latest call of the same
//! asker for the same lock, if no wake-up came in between. A try is one of the owner that wakes up,
//! or that made this call; without a call, of the owner of the grant. `busiest` is the largest
//! number of tries of one owner for one lock within less than a second; the layer is violated iff
//! it exceeds the bound. `herd` is the largest number of tries for a lock between one moment at
//! which it becomes free on some node, all holds given back, and the next such moment. `commands`
//! counts the commands that clients sent. A hand-off is a promise to another owner than the promise
//! before it: `hand_offs` counts them, and `per_hand_off` is commands divided by hand-offs.

use std::time::Duration;

use lockstorm::judge::{
    history::{Call, Event, EventKind, History, HostKind, Lock, Owner},
    verdict::Quantity,
};

use crate::{
    Answer,
    past::{given_up, of_all, promised},
};

/// The lock and the owner of a try; `None` if the event is not a try.
fn is_try(history: &History, number: usize) -> Option<(Lock, Owner)> {
    let event = &history.events[number];
    let (lock, owner) = event.kind.lock().zip(event.kind.owner())?;
    let same_asker = |other: &Event| {
        let of_lock = other.kind.lock() == Some(lock);
        of_lock
            && other.kind.owner().is_some_and(|other| match history.lock(lock).authority.quorum {
                1 => other == owner,
                _ => history.client_of(other) == history.client_of(owner),
            })
    };
    let asks = |kind: &EventKind| matches!(kind, EventKind::Invoke { call: Call::Acquire { .. }, .. });
    let answered = |kind: &EventKind| matches!(kind, EventKind::Woken { .. } | EventKind::Granted { .. });
    match event.kind {
        EventKind::Woken { .. } => Some((lock, owner)),
        EventKind::Granted { .. } => {
            let before = history.events[..number].iter().rev().filter(|other| same_asker(other));
            let latest = before.map(|other| &other.kind).find(|kind| asks(kind) || answered(kind));
            let caller = latest.and_then(EventKind::owner).unwrap_or(owner);
            latest.is_none_or(asks).then_some((lock, caller))
        }
        _ => None,
    }
}

pub(crate) fn judge(history: &History) -> Answer {
    let tried: Vec<Option<(Lock, Owner)>> =
        (0..history.events.len()).map(|number| is_try(history, number)).collect();
    let mut busiest = 0;
    let mut herd = 0;
    for (number, event) in history.events.iter().enumerate() {
        let after = &history.events[number..];
        if tried[number].is_some() {
            let soon = after.iter().take_while(|later| later.at.since(event.at) < Duration::from_secs(1));
            let same = tried[number..][..soon.count()].iter().filter(|later| **later == tried[number]);
            busiest = busiest.max(same.count());
        }
        if let EventKind::Released { lock, left: 0, .. } = event.kind {
            let next = |later: &&Event| matches!(later.kind, EventKind::Released { lock: of, left: 0, .. } if of == lock);
            let until_next = after[1..].iter().take_while(|later| !next(later)).count();
            let drawn = tried[number + 1..][..until_next].iter().flatten();
            herd = herd.max(drawn.filter(|(of, _)| *of == lock).count());
        }
    }
    let of_client = |count: &&lockstorm::judge::history::CommandCount| {
        history.header.hosts[usize::from(count.client.0)].kind == HostKind::Client
    };
    let commands: u64 = history.commands.iter().filter(of_client).map(|count| count.count).sum();
    let mut promises = of_all(history, promised);
    promises.sort_by_key(|promise| (promise.lock, promise.from, promise.owner));
    let passes =
        |pair: &&[crate::past::Stretch]| pair[0].lock == pair[1].lock && pair[0].owner != pair[1].owner;
    let hand_offs = promises.windows(2).filter(passes).count();
    let word = match busiest {
        tries if tries > history.header.bounds.attempts_per_second as usize => "violated",
        tries if given_up(history) || tries == 0 => "undecided",
        _ => "holds",
    };
    let each = if hand_offs == 0 { 0.0 } else { commands as f64 / hand_offs as f64 };
    Answer::of(word)
        .count("busiest", busiest)
        .count("commands", commands as usize)
        .count("hand_offs", hand_offs)
        .measured("per_hand_off", Quantity::Number(each))
        .count("herd", herd)
}
