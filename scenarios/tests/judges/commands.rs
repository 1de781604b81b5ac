//! Commands, as they are defined: a try is a node's grant, or a waiter that woke up. `busiest` is how many tries of one owner for one lock lie within less than a second at most, and the
//! layer is violated iff those are more than the bound. `herd` is how many tries for a lock come between its being free on
//! some node, all given back, and the next time, at most. `commands` counts what clients sent. A hand-off is a promise of
//! another owner than that of the promise before it: `hand_offs` counts them, `per_hand_off` is commands by hand-offs.

use std::time::Duration;

use lockstorm::{
    history::{Event, EventKind, History, HostKind, Lock, Owner},
    verdict::Quantity,
};

use crate::{
    Answer,
    past::{given_up, of_all, promised},
};

pub(crate) fn judge(history: &History) -> Answer {
    let tried = |event: &Event| -> Option<(Lock, Owner)> {
        match &event.kind {
            EventKind::Granted { lock, owner, .. } | EventKind::Woken { lock, owner, .. } => {
                Some((*lock, *owner))
            }
            _ => None,
        }
    };
    let mut busiest = 0;
    let mut herd = 0;
    for (number, event) in history.events.iter().enumerate() {
        let after = &history.events[number..];
        if let Some(one) = tried(event) {
            let soon = after.iter().take_while(|later| later.at.since(event.at) < Duration::from_secs(1));
            busiest = busiest.max(soon.filter(|later| tried(later) == Some(one)).count());
        }
        if let EventKind::Released { lock, left: 0, .. } = event.kind {
            let next = |later: &&Event| matches!(later.kind, EventKind::Released { lock: of, left: 0, .. } if of == lock);
            let drawn = after[1..].iter().take_while(|later| !next(later));
            herd = herd.max(drawn.filter(|later| tried(later).is_some_and(|(of, _)| of == lock)).count());
        }
    }
    let of_client = |count: &&lockstorm::history::CommandCount| {
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
