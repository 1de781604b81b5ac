//! The definition of `windows`, for locks that one group of several nodes decides and that at most
//! one owner may have. Each pair of promises that clash at an instant is a double grant. The
//! granting host is the host of the first grant or renewal of the later hold at that instant.
//! Without one, it is the host that came back with the later hold, if the owner reports its belief
//! in it then. Of two holds that begin at the same instant, the later one is that of the owner with
//! the greater number.
//!
//! A hold begins with its promise. But if the last event of its group about it before that (a
//! grant, a renewal for its owner, a complete release, a loss or a return) is that a host came back
//! with it, the hold begins with that event. From then on that host counts as one that granted it,
//! except for `lag`.
//!
//! A host is a master of a lock while it owns the lock's slot, if any host reports the slot's
//! owner; otherwise while it is not a replica. A host that has not reported a role is a master. In
//! a cluster a crash ends that. A master serves while it is up and, in a cluster, answers. The
//! granting host's knowledge of the earlier hold, from the beginning of that hold to the instant,
//! is the first of these that exists:
//!
//! * its own word: its last report of the hold since it became a master, or its last report at all
//!   if it has been a master from the beginning or does not serve;
//! * an heir's word, if the hold was granted or renewed before the host became a master: the last
//!   report of any host before that, without the losses of hosts that were not masters then; but
//!   nothing if that is a loss, and a grant or renewal follows after the host became a master;
//! * nothing.
//!
//! The word, or its absence, determines the reason:
//!
//! * the hold vanished in a crash: `crash`;
//! * it expired, and the wall clock of the reporting host showed at least the last expiry set
//!   before: `clock`, if less true time than its lease had passed since it was set; else, if it
//!   came back with that expiry, as in the next case, for the last expiry that was set in another
//!   way;
//! * it expired, and that clock showed less than that expiry, but at least an earlier expiry of the
//!   hold or of an earlier hold of that owner and mode: `crash` if the reporting host had set the
//!   last expiry itself and has crashed since; else as for a failover, or, if the reporting host is
//!   not the granting one, `failover` if it had not set the last expiry;
//! * a failover lost it: as for a failover, and `failover` if that explains nothing;
//! * an heir's word that the owner has it, with an expiry that the heir's wall clock had reached
//!   when it became a master: `clock`, if less true time than the lease had passed;
//! * nothing: as for a failover;
//! * any other word: `unexplained`.
//!
//! As for a failover: the last other host that granted or renewed the hold decides. If its last
//! report of the hold is a deletion, an overwrite, a flush or an eviction before the granting host
//! became a master, the reason is `unexplained`. Otherwise it is `two_masters` if that host has
//! served from its grant to the double grant, and `failover` if it has not.
//!
//! `both_served` is the longest time from when the later of two masters began to serve until the
//! first of them stopped, or the run ended. `lag` is the longest time from the last grant or
//! renewal of an earlier hold by another host than the granting one, before the granting one became
//! a master, to that moment; or to the end of the other host's service, if it served and that came
//! first. It counts if the granting host has reported since that a failover lost the hold.
//!
//! Two beliefs that clash are `unexplained` as well, unless each instant of them belongs to a
//! double grant of the two owners with a reason. The layer is violated iff something is
//! unexplained; it holds if something was promised that two owners wanted. In real time a result is
//! undecided if it would differ with one of the two earlier or later by 100 ms, or with each double
//! grant beginning that much earlier and ending that much later.

use std::time::Duration;

use lockstorm::judge::history::{
    ClockId, Event, EventKind, History, Host, Life, Lock, LossCause, Role, Serving,
};
use lockstorm_world::time::True;

use crate::{
    Answer,
    past::{
        Stretch, believed, clash, contenders, excludes, given_up, is_certain, moved, of_all, own, promised,
    },
};

/// The cause of a double grant.
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
    let explained = |(one, other, (from, until)): &Pair<'_>, wider_by: i64| {
        let with_reason = grants.iter().zip(&reasons).filter(|(_, reason)| reason.is_some());
        let same = with_reason.map(|(pair, _)| pair).filter(|(first, second, _)| {
            let owners = [first.owner, second.owner];
            first.lock == one.lock
                && (owners == [one.owner, other.owner] || owners == [other.owner, one.owner])
        });
        let wider = |span: (True, True)| (moved(span.0, -wider_by), moved(span.1, wider_by));
        let spans: Vec<(True, True)> = same.map(|(_, _, span)| wider(*span)).collect();
        // Nothing changes between two neighbouring instants, so their middle decides.
        let mut changes = vec![*from, *until];
        changes.extend(spans.iter().flat_map(|(begin, end)| [*begin, *end]));
        changes.retain(|change| (*from..=*until).contains(change));
        changes.sort();
        let covers = |begin: True, end: True| spans.iter().any(|span| span.0 <= begin && end <= span.1);
        changes.windows(2).all(|pair| covers(pair[0], pair[1]))
    };
    let (mut failover, mut two_masters, mut crash, mut clock, mut unexplained) = (0, 0, 0, 0, 0);
    let (mut both_served, mut unsure) = (Duration::ZERO, 0);
    let lags = grants.iter().filter_map(|(first, second, (at, _))| lag(history, first, second, *at));
    let lag = lags.max().unwrap_or_default();
    let is_certain =
        |(one, other, _): &Pair<'_>| is_certain(history, |shift| clash(&one.moved(shift), other).is_some());
    for (grant, reason) in grants.iter().zip(&reasons) {
        match reason {
            Some(Reason::Failover) => failover += 1,
            Some(Reason::TwoMasters(length)) => {
                two_masters += 1;
                both_served = both_served.max(*length);
            }
            Some(Reason::Crash) => crash += 1,
            Some(Reason::Clock) => clock += 1,
            None if is_certain(grant) => unexplained += 1,
            None => unsure += 1,
        }
    }
    for pair in pairs(&beliefs).iter().filter(|pair| !explained(pair, 0)) {
        if is_certain(pair) && !(history.header.is_real() && explained(pair, 100)) {
            unexplained += 1
        } else {
            unsure += 1
        }
    }
    let tested = promises.iter().any(|stretch| contenders(history, stretch.lock).len() > 1);
    let word = match unexplained {
        1.. => "violated",
        0 if unsure > 0 || given_up(history) || !tested => "undecided",
        0 => "holds",
    };
    Answer::of(word)
        .count("failover", failover)
        .count("two_masters", two_masters)
        .count("crash", crash)
        .count("clock", clock)
        .count("unexplained", unexplained)
        .time("both_served", both_served)
        .time("lag", lag)
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

/// The state of one host and one lock before an event.
struct Standing {
    /// The time when it became a master, if it is one: the number of that event plus one, or 0 for
    /// the beginning.
    master: Option<usize>,
    /// The time when it began to serve, in the same form.
    serves: Option<usize>,
}

fn standing(history: &History, lock: Lock, host: Host, before: usize) -> Standing {
    let says = |event: &Event| matches!(event.kind, EventKind::Serves { lock: of, .. } if of == lock);
    let by_slot = history.events.iter().any(says);
    let from_the_beginning = (!by_slot).then_some(0);
    let (mut own, mut answers, mut up) = (!by_slot, !by_slot, true);
    let (mut master, mut serves) = (from_the_beginning, from_the_beginning);
    for (number, event) in history.events[..before].iter().enumerate() {
        match event.kind {
            _ if event.host != host => continue,
            EventKind::Serves { lock: of, how } if of == lock => {
                own = how != Serving::Elsewhere && how != Serving::Importing;
                answers = own && how != Serving::Closed;
            }
            EventKind::Became { role } if !by_slot => {
                (own, answers) = (role == Role::Master, role == Role::Master)
            }
            EventKind::Life { life: Life::Crashed } if by_slot => (own, answers, up) = (false, false, false),
            EventKind::Life { life: Life::Crashed } => up = false,
            EventKind::Life { life: Life::Started } => up = true,
            _ => {}
        }
        master = own.then(|| master.unwrap_or(number + 1));
        serves = (up && answers).then(|| serves.unwrap_or(number + 1));
    }
    Standing { master, serves }
}

/// The events of the lock's group about a hold, up to an instant.
fn about<'a>(history: &'a History, stretch: &Stretch, at: True) -> Vec<(usize, &'a Event)> {
    let group = &history.lock(stretch.lock).authority.groups[0];
    let hold = (stretch.lock, stretch.owner, stretch.mode);
    let numbered = history.events.iter().enumerate();
    let of_hold = numbered.filter(|(_, event)| {
        event.kind.hold() == Some(hold) && group.contains(&event.host) && event.at <= at
    });
    of_hold.collect()
}

fn grants(event: &Event) -> bool {
    matches!(event.kind, EventKind::Granted { .. } | EventKind::Extended { .. })
}

fn grants_or_came_back(event: &Event) -> bool {
    grants(event) || matches!(event.kind, EventKind::Regained { .. })
}

/// If the hold of a stretch came back with a node: the event with which it came back, the last one
/// before event number `before`.
fn came_back<'a>(history: &'a History, stretch: &Stretch, before: usize) -> Option<(usize, &'a Event)> {
    let mut done = about(history, stretch, True::MAX).into_iter().filter(|(number, event)| {
        let counts = match event.kind {
            EventKind::Extended { by, .. } => own(history, stretch.owner, by),
            EventKind::Released { left, .. } => left == 0,
            _ => true,
        };
        *number < before && counts
    });
    done.next_back().filter(|(_, event)| matches!(event.kind, EventKind::Regained { .. }))
}

/// The events about the earlier hold, from its beginning to an instant.
fn of_earlier<'a>(history: &'a History, first: &Stretch, at: True) -> Vec<(usize, &'a Event)> {
    let promised = history.events.iter().position(|event| event.at >= first.from).unwrap_or(0);
    let begin = came_back(history, first, promised).map_or(promised, |(number, _)| number);
    about(history, first, at).into_iter().filter(|(number, _)| *number >= begin).collect()
}

/// The event with which the later hold is granted at an instant, or with which its owner learns of
/// it, and the granting host.
fn granting(history: &History, second: &Stretch, at: True) -> Option<(usize, Host)> {
    let granted = about(history, second, at).into_iter().find(|(_, event)| event.at == at && grants(event));
    let told = || {
        let hold = Some((second.lock, second.owner, second.mode));
        let believes = |event: &Event| {
            event.at == at && event.kind.hold() == hold && matches!(event.kind, EventKind::Believes { .. })
        };
        let number = history.events.iter().position(believes)?;
        Some((number, came_back(history, second, number)?.1.host))
    };
    granted.map(|(number, event)| (number, event.host)).or_else(told)
}

fn lag(history: &History, first: &Stretch, second: &Stretch, at: True) -> Option<Duration> {
    let granting = granting(history, second, at)?;
    let here = granting.1;
    let at_grant = standing(history, first.lock, here, granting.0);
    let since = at_grant.serves.and(at_grant.master)?.checked_sub(1)?;
    let lost = EventKind::Vanished {
        lock: first.lock,
        owner: first.owner,
        mode: first.mode,
        how: LossCause::Failover,
    };
    let of_hold = of_earlier(history, first, at);
    of_hold.iter().find(|(number, event)| *number >= since && event.host == here && event.kind == lost)?;
    let before = of_hold
        .iter()
        .rev()
        .find(|(number, event)| *number < since && event.host != here && grants(event))?;
    let serves = |number: usize| standing(history, first.lock, before.1.host, number + 1).serves.is_some();
    let over = (before.0 + 1..since).find(|number| !serves(*number)).filter(|_| serves(before.0));
    let end = over.unwrap_or(since);
    Some(history.events[end].at.since(before.1.at))
}

fn reason(history: &History, first: &Stretch, second: &Stretch, at: True) -> Option<Reason> {
    let about = |stretch: &Stretch| about(history, stretch, at);
    let granting = granting(history, second, at)?;
    let here = granting.1;
    let earlier = of_earlier(history, first, at);
    let at_grant = standing(history, first.lock, here, granting.0);
    // The host is the master that it is for events from this number on; 0 if it always was, or does
    // not serve.
    let since = at_grant.serves.and(at_grant.master).unwrap_or(0);
    let serves = |host, before| standing(history, first.lock, host, before).serves;
    let as_failover = || {
        let (given, host) = earlier.iter().rev().find_map(|(number, event)| {
            (event.host != here && grants_or_came_back(event)).then_some((*number, event.host))
        })?;
        let (said, about_it) = earlier.iter().rev().find(|(_, event)| event.host == host)?;
        let taken = match about_it.kind {
            EventKind::Vanished { how, .. } => match how {
                LossCause::Expired | LossCause::Crash | LossCause::Failover => false,
                LossCause::Evicted | LossCause::Flushed => true,
                LossCause::Deleted(_) | LossCause::Overwritten(_) => true,
            },
            _ => false,
        };
        if taken && said + 1 < since {
            return None;
        }
        let was = serves(host, given + 1);
        let is = serves(host, granting.0 + 1);
        if was.is_none() || was != is {
            return Some(Reason::Failover);
        }
        let end = |host| {
            let over = (granting.0 + 1..=history.events.len()).find(|before| serves(host, *before).is_none());
            over.map_or(history.header.end, |before| history.events[before - 1].at)
        };
        let begin =
            |since: usize| since.checked_sub(1).map_or(True::ZERO, |number| history.events[number].at);
        let length = match at_grant.serves {
            Some(mine) => end(here).min(end(host)).since(begin(mine).max(begin(was.unwrap_or(0)))),
            None => Duration::ZERO,
        };
        Some(Reason::TwoMasters(length))
    };
    let own = earlier.iter().rev().find(|(number, event)| event.host == here && *number >= since);
    let is_loss = |event: &Event| matches!(event.kind, EventKind::Vanished { .. });
    let (before, after): (Vec<_>, Vec<_>) = earlier.iter().partition(|(number, _)| number + 1 < since);
    let is_heir = before.iter().any(|(_, event)| grants_or_came_back(event));
    let of_group = before.iter().rev().find(|(number, event)| {
        !is_loss(event) || standing(history, first.lock, event.host, *number).master.is_some() || {
            // A host of a cluster reports the losses of a crash before it reports its role.
            let mut said = history.events[..*number].iter().rev().filter(|one| one.host == event.host);
            let last = said.find_map(|one| match one.kind {
                EventKind::Serves { lock, how } if lock == first.lock => Some(how),
                _ => None,
            });
            last.is_some_and(|how| how != Serving::Elsewhere && how != Serving::Importing)
        }
    });
    let again = after.iter().any(|(_, event)| grants_or_came_back(event));
    let heirs = of_group.filter(|(_, event)| is_heir && !(again && is_loss(event)));
    let Some((number, word)) = own.or(heirs) else { return as_failover() };
    let lost = match word.kind {
        EventKind::Vanished { how, .. } => how,
        EventKind::Granted { until, lease_ms, .. }
        | EventKind::Extended { until, lease_ms, .. }
        | EventKind::Regained { until, lease_ms, .. }
        | EventKind::Released { until, lease_ms, .. } => {
            let became = history.events[since.checked_sub(1).filter(|_| own.is_none())?].at;
            let early = became.since(word.at) < Duration::from_millis(lease_ms.unwrap_or(0));
            let reached = history.clock(here).reading(ClockId::Wall, became) >= until?.as_nanos();
            return (early && reached).then_some(Reason::Clock);
        }
        _ => return None,
    };
    match lost {
        LossCause::Crash => Some(Reason::Crash),
        LossCause::Failover => Some(as_failover().unwrap_or(Reason::Failover)),
        LossCause::Expired => {
            let shows = history.clock(word.host).reading(ClockId::Wall, word.at);
            let before = about(first).into_iter().filter(|(earlier, _)| earlier < number);
            let set = before.filter_map(|(number, event)| match event.kind {
                EventKind::Granted { until, lease_ms, .. }
                | EventKind::Extended { until, lease_ms, .. }
                | EventKind::Regained { until, lease_ms, .. }
                | EventKind::Released { until, lease_ms, .. } => Some((number, until?, lease_ms)),
                _ => None,
            });
            let set: Vec<_> = set.collect();
            let (mut latest, expiry, lease_ms) = *set.last()?;
            let came_back = |number: usize| matches!(history.events[number].kind, EventKind::Regained { .. });
            if shows >= expiry.as_nanos() {
                let passed = word.at.since(history.events[latest].at);
                if passed < Duration::from_millis(lease_ms.unwrap_or(0)) {
                    return Some(Reason::Clock);
                }
                if !came_back(latest) {
                    return None;
                }
                latest = set.iter().rev().find(|(number, ..)| !came_back(*number))?.0;
            } else if !set.iter().any(|(_, expiry, _)| shows >= expiry.as_nanos()) {
                return None;
            }
            let crashed = |number: &usize| {
                let event = &history.events[*number];
                event.host == word.host && matches!(event.kind, EventKind::Life { life: Life::Crashed })
            };
            let restarted = (latest + 1..*number).any(|one| crashed(&one));
            let set_by_itself = history.events[latest].host == word.host;
            if set_by_itself && restarted {
                Some(Reason::Crash)
            } else if word.host != here {
                (!set_by_itself).then_some(Reason::Failover)
            } else {
                as_failover()
            }
        }
        _ => None,
    }
}
