//! Windows, as they are defined: of locks that one group of several nodes decides and not more than one owner may have, each pair of
//! promises that clash at an instant is a double grant. It is made by the host of the first grant or renewal of the later
//! hold at that instant; of two that begin at once, the later one is that of the owner with the greater number. Of the
//! events about the earlier hold from its beginning to that instant:
//!
//! * the last one on that host says that the hold vanished in a crash: it is a `crash`;
//! * it says that the hold expired, and the wall clock of the host showed no less than the last expiry that was set before: `clock`, if
//!   less true time than its lease had passed since it was set;
//! * it says so, and the clock showed less than that expiry, but no less than some earlier one of the hold or of one before it of that owner
//!   and mode: `crash` if the host itself had set the last one and has crashed since, or else as for a failover;
//! * it says that a failover lost the hold: as for a failover, and `failover` where that explains nothing;
//! * there is none on that host: as for a failover;
//! * it says that the owner has the hold: `failover` if the host has since done what ends a master, up to the grant;
//! * anything else: `unexplained`.
//!
//! As for a failover: the last other host that granted or renewed the hold is looked at. If the last thing that it says of the hold is that it was
//! deleted, overwritten, flushed or evicted, before the granting host last began to be a master, it is `unexplained`. Otherwise it is `two_masters` if
//! that host has done nothing since its grant that ends a master, up to the instant, and `failover` if it has.
//!
//! A master ends by becoming a replica, by a crash, and by not answering for the slot any more. `both_served` is the longest time from when the
//! later of the two last began to be a master, or to answer for the slot (or of the run), to the first end of one of them after the
//! instant, or of the run. Two beliefs that clash are `unexplained` as well, unless a double grant of the two owners that has a reason has an instant in
//! common with them, the ends among these. The layer is violated iff something is unexplained; it holds if something
//! was promised that two owners wanted.

use std::time::Duration;

use lockstorm::history::{ClockId, Event, EventKind, History, Host, Life, Lock, LossCause, Role};
use lockstorm_sim::time::True;

use crate::{
    Answer,
    past::{Stretch, believed, clash, contenders, excludes, given_up, of_all, promised},
};

/// What a double grant came of.
enum Reason {
    Failover,
    TwoMasters(Duration),
    Crash,
    Clock,
}

/// Two holds, the earlier one first, and the time that they have in common.
type Pair<'a> = (&'a Stretch, &'a Stretch, (True, True));

pub(crate) fn judge(history: &History) -> Answer {
    let replicated = |lock: Lock| {
        let groups = &history.lock(lock).authority.groups;
        excludes(history, lock) && groups.len() == 1 && groups[0].len() > 1
    };
    let asked = |stretches: Vec<Stretch>| -> Vec<Stretch> {
        stretches.into_iter().filter(|stretch| replicated(stretch.lock)).collect()
    };
    let (promises, beliefs) = (asked(of_all(history, promised)), asked(of_all(history, believed)));
    let grants = pairs(&promises);
    let reasons: Vec<Option<Reason>> =
        grants.iter().map(|(first, second, (at, _))| reason(history, first, second, *at)).collect();
    let explained = |(one, other, (from, until)): &Pair<'_>| {
        grants.iter().zip(&reasons).any(|((first, second, (begin, end)), reason)| {
            reason.is_some()
                && first.lock == one.lock
                && ((first.owner, second.owner) == (one.owner, other.owner)
                    || (second.owner, first.owner) == (one.owner, other.owner))
                && begin <= until
                && from <= end
        })
    };
    let (mut failover, mut two_masters, mut crash, mut clock, mut unexplained) = (0, 0, 0, 0, 0);
    let mut both_served = Duration::ZERO;
    for reason in &reasons {
        match reason {
            Some(Reason::Failover) => failover += 1,
            Some(Reason::TwoMasters(length)) => {
                two_masters += 1;
                both_served = both_served.max(*length);
            }
            Some(Reason::Crash) => crash += 1,
            Some(Reason::Clock) => clock += 1,
            None => unexplained += 1,
        }
    }
    unexplained += pairs(&beliefs).iter().filter(|pair| !explained(pair)).count();
    let tested = promises.iter().any(|stretch| contenders(history, stretch.lock).len() > 1);
    let word = match unexplained {
        1.. => "violated",
        0 if given_up(history) || !tested => "undecided",
        0 => "holds",
    };
    Answer::of(word)
        .count("failover", failover)
        .count("two_masters", two_masters)
        .count("crash", crash)
        .count("clock", clock)
        .count("unexplained", unexplained)
        .time("both_served", both_served)
}

fn pairs(stretches: &[Stretch]) -> Vec<Pair<'_>> {
    let mut pairs = Vec::new();
    for (at, one) in stretches.iter().enumerate() {
        for other in &stretches[at + 1..] {
            if let Some(span) = clash(one, other) {
                let is_first = (one.from, one.owner) <= (other.from, other.owner);
                let (first, second) = if is_first { (one, other) } else { (other, one) };
                pairs.push((first, second, span));
            }
        }
    }
    pairs
}

fn reason(history: &History, first: &Stretch, second: &Stretch, at: True) -> Option<Reason> {
    let group = &history.lock(first.lock).authority.groups[0];
    let about = |stretch: &Stretch| {
        let hold = (stretch.lock, stretch.owner, stretch.mode);
        let numbered = history.events.iter().enumerate();
        let of_hold = numbered.filter(|(_, event)| {
            event.kind.hold() == Some(hold) && group.contains(&event.host) && event.at <= at
        });
        of_hold.collect::<Vec<(usize, &Event)>>()
    };
    let grants = |event: &Event| matches!(event.kind, EventKind::Granted { .. } | EventKind::Extended { .. });
    let granting = about(second).into_iter().find(|(_, event)| event.at == at && grants(event))?;
    let here = granting.1.host;
    let earlier: Vec<(usize, &Event)> =
        about(first).into_iter().filter(|(_, event)| event.at >= first.from).collect();
    let last = earlier.iter().rev().find(|(_, event)| event.host == here);
    let ends = |number: usize, host| ends_a_master(&history.events[number], first.lock, host);
    let begins = |number: usize, host| {
        let event = &history.events[number];
        event.host == host && begins_a_master(event, first.lock)
    };
    let (past, future): (Vec<usize>, Vec<usize>) =
        (0..history.events.len()).partition(|number| history.events[*number].at <= at);
    let by_replication = || {
        let other = earlier.iter().rev().find(|(_, event)| event.host != here && grants(event))?;
        let host = other.1.host;
        let began = past.iter().rev().find(|number| begins(**number, here));
        let (said, about_it) = earlier.iter().rev().find(|(_, event)| event.host == host)?;
        let taken = match about_it.kind {
            EventKind::Vanished { how, .. } => match how {
                LossCause::Expired | LossCause::Crash | LossCause::Failover => false,
                LossCause::Evicted | LossCause::Flushed => true,
                LossCause::Deleted(_) | LossCause::Overwritten(_) => true,
            },
            _ => false,
        };
        if taken && began.is_some_and(|began| said < began) {
            return None;
        }
        if past.iter().any(|number| *number > other.0 && ends(*number, host)) {
            return Some(Reason::Failover);
        }
        let end = |host| {
            let over = future.iter().find(|number| ends(**number, host));
            over.map_or(history.header.end, |number| history.events[*number].at)
        };
        let begin = |host| {
            let from = past.iter().rev().find(|number| begins(**number, host));
            from.map_or(True::ZERO, |number| history.events[*number].at)
        };
        let (from, until) = (begin(here).max(begin(host)), end(here).min(end(host)));
        Some(Reason::TwoMasters(until.since(from)))
    };
    let Some((number, last)) = last else { return by_replication() };
    let lost = match last.kind {
        EventKind::Vanished { how, .. } => how,
        _ => {
            let followed = past.iter().any(|one| number < one && *one < granting.0 && ends(*one, here));
            return followed.then_some(Reason::Failover);
        }
    };
    match lost {
        LossCause::Crash => Some(Reason::Crash),
        LossCause::Failover => Some(by_replication().unwrap_or(Reason::Failover)),
        LossCause::Expired => {
            let shows = history.clock(here).reading(ClockId::Wall, last.at);
            let before = about(first).into_iter().filter(|(earlier, _)| earlier < number);
            let set = before.filter_map(|(number, event)| match event.kind {
                EventKind::Granted { until, lease_ms, .. }
                | EventKind::Extended { until, lease_ms, .. }
                | EventKind::Released { until, lease_ms, .. } => Some((number, until?, lease_ms)),
                _ => None,
            });
            let set: Vec<_> = set.collect();
            let (latest, expiry, lease_ms) = set.last()?;
            if shows >= expiry.as_nanos() {
                let passed = last.at.since(history.events[*latest].at);
                return (passed < Duration::from_millis(lease_ms.unwrap_or(0))).then_some(Reason::Clock);
            }
            if !set.iter().any(|(_, expiry, _)| shows >= expiry.as_nanos()) {
                return None;
            }
            let crashed = |number: &usize| {
                let event = &history.events[*number];
                event.host == here && matches!(event.kind, EventKind::Life { life: Life::Crashed })
            };
            let came_back = past.iter().any(|one| latest < one && one < number && crashed(one));
            if history.events[*latest].host == here && came_back {
                Some(Reason::Crash)
            } else {
                by_replication()
            }
        }
        _ => None,
    }
}

fn ends_a_master(event: &Event, lock: Lock, host: Host) -> bool {
    event.host == host
        && match event.kind {
            EventKind::Became { role } => role == Role::Replica,
            EventKind::Life { life } => life == Life::Crashed,
            EventKind::Serves { lock: of, how } => of == lock && !how.answers(),
            _ => false,
        }
}

fn begins_a_master(event: &Event, lock: Lock) -> bool {
    match event.kind {
        EventKind::Became { role } => role == Role::Master,
        EventKind::Serves { lock: of, how } => of == lock && how.answers(),
        _ => false,
    }
}
