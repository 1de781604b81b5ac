//! The terms that the definitions share, computed the slow way: the owners entitled to a lock at an
//! instant, the owners that believed they held it, the owners that had asked.
//!
//! Everything is evaluated at instants. A property that is true at one instant stays so until the
//! next instant at which anything could change it; a stretch is a maximal sequence of such
//! intervals in which it is true.

use std::{collections::BTreeSet, time::Duration};

use lockstorm::judge::history::{
    Call, Deadline, Ended, Event, EventKind, Fence, Header, History, Host, HostKind, Life, Lock, LockKind,
    Mode, Outcome, Owner, Party, Reason,
};
use lockstorm_world::time::True;

/// A stretch of true time in which an owner had a lock, by promise or by belief; its end is
/// exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) lock: Lock,
    pub(crate) owner: Owner,
    pub(crate) mode: Mode,
    pub(crate) from: True,
    pub(crate) until: True,
}

/// The begin and end of a time for which one reason holds.
type Span = (True, True);

/// Every lock with every owner.
pub(crate) fn pairs(history: &History) -> Vec<(Lock, Owner)> {
    let owners = 0..history.owners.len() as u32;
    history.header.locks().flat_map(|lock| owners.clone().map(move |owner| (lock, Owner(owner)))).collect()
}

/// Returns true if the run was given up before its end.
pub(crate) fn given_up(history: &History) -> bool {
    history.header.ended != Ended::Complete
}

/// Returns true if only one owner, or readers alone, may have the lock at an instant.
pub(crate) fn excludes(history: &History, lock: Lock) -> bool {
    matches!(history.lock(lock).kind, LockKind::Exclusive | LockKind::Fair | LockKind::ReadWrite)
}

/// The resource's rule for refusing writes.
pub(crate) fn fence(header: &Header) -> Fence {
    header.resource.as_ref().map_or(Fence::None, |resource| resource.fence)
}

/// Returns true if a command was sent by the owner itself: it names this owner, or names none and
/// comes from the owner's client.
pub(crate) fn own(history: &History, owner: Owner, by: Party) -> bool {
    match by.owner {
        Some(named) => named == owner,
        None => by.client == history.client_of(owner),
    }
}

/// The history without the probe: without its actions, and without its owners in nodes and queues.
pub(crate) fn without_probe(history: &History) -> History {
    let is_probe = |host: Host| history.header.hosts[usize::from(host.0)].kind == HostKind::Probe;
    let is_its = |owner: &Owner| is_probe(history.client_of(*owner));
    let mut left = history.clone();
    left.events.clear();
    for event in &history.events {
        let mut event = event.clone();
        match &mut event.kind {
            _ if is_probe(event.host) => continue,
            EventKind::Passed { by, .. } if is_probe(by.client) => continue,
            EventKind::Queue { waiters, .. } => {
                *waiters = waiters.iter().filter(|waiter| !is_its(waiter)).copied().collect();
            }
            kind if kind.owner().as_ref().is_some_and(is_its) => continue,
            _ => {}
        }
        left.events.push(event);
    }
    left.commands.retain(|count| !is_probe(count.client));
    left.keys_left.retain(|key| !key.owner.as_ref().is_some_and(is_its));
    left
}

/// An owner's hold of a lock in one mode.
type Hold = (Lock, Owner, Mode);

/// An owner may hold a lock in both modes, and the two holds are independent.
fn in_each_mode(lock: Lock, owner: Owner) -> [Hold; 2] {
    [Mode::Exclusive, Mode::Shared].map(|mode| (lock, owner, mode))
}

/// The events about a hold on any host of a group, with their numbers.
fn about<'a>(
    history: &'a History,
    hold: Hold,
    group: &'a [Host],
) -> impl DoubleEndedIterator<Item = (usize, &'a Event)> {
    let wanted =
        move |event: &(usize, &Event)| event.1.kind.hold() == Some(hold) && group.contains(&event.1.host);
    history.events.iter().enumerate().filter(wanted)
}

/// The numbers of the events with which an owner gave a hold back in vain: it begins to release a
/// hold that the group has lost, or the group loses a hold that it has begun to release.
///
/// A hold is lost if that is the last event of the group about it, other than a grant, a renewal or
/// a return with it. It is given back if the owner has begun to release it since the group last
/// granted it or [told the owner](told) of it, and since the owner last believed in it.
fn in_vain(history: &History, hold: Hold, group: &[Host]) -> Vec<usize> {
    let owner = hold.1;
    let lost = |before: usize| {
        let changes = |event: &Event| match &event.kind {
            EventKind::Granted { .. } | EventKind::Vanished { .. } | EventKind::Regained { .. } => true,
            EventKind::Extended { by, .. } => own(history, owner, *by),
            _ => false,
        };
        let latest = about(history, hold, group).rfind(|(number, event)| *number < before && changes(event));
        latest.is_some_and(|(_, event)| matches!(event.kind, EventKind::Vanished { .. }))
    };
    let releases = |event: &Event| {
        event.kind.hold() == Some(hold)
            && matches!(event.kind, EventKind::Disbelieves { why: Reason::Released, .. })
    };
    let told: Vec<usize> = told(history, hold, group).into_iter().map(|(number, _)| number).collect();
    let has_it_again = |number: usize| {
        let event = &history.events[number];
        let granted = group.contains(&event.host) && matches!(event.kind, EventKind::Granted { .. });
        let believes = matches!(event.kind, EventKind::Believes { .. });
        told.contains(&number) || (event.kind.hold() == Some(hold) && (granted || believes))
    };
    let given_back = |before: usize| {
        let since = (0..before).rfind(|number| has_it_again(*number)).unwrap_or(0);
        history.events[since..before].iter().any(releases)
    };
    let loses = |event: &Event| {
        group.contains(&event.host)
            && event.kind.hold() == Some(hold)
            && matches!(event.kind, EventKind::Vanished { .. })
    };
    let all = history.events.iter().enumerate();
    let ends = all.filter(|(number, event)| {
        (releases(event) && lost(*number)) || (loses(event) && given_back(*number))
    });
    ends.map(|(number, _)| number).collect()
}

/// The numbers of the events with which an owner learned of a hold that a node of the group had
/// come back with, each with the end of the lease that the node came back with.
///
/// That is the first renewal that the owner sent itself, or, if no other group grants the lock, the
/// first belief in the hold; but not if in the meantime the group has granted it, has come back
/// with it again, or it was given back or lost.
fn told(history: &History, hold: Hold, group: &[Host]) -> Vec<(usize, True)> {
    let authority = &history.lock(hold.0).authority;
    let mut told = Vec::new();
    for (number, event) in about(history, hold, group) {
        let EventKind::Regained { lease_ms, .. } = event.kind else { continue };
        let mut later = history.events.iter().enumerate().skip(number + 1);
        // `Some` if this event ends the search; true if the owner learns of the hold.
        let says = |later: &Event| {
            let here = group.contains(&later.host);
            match &later.kind {
                _ if later.kind.hold() != Some(hold) => None,
                EventKind::Believes { .. } => (authority.groups.len() == 1).then_some(true),
                EventKind::Extended { by, .. } => (here && own(history, hold.1, *by)).then_some(true),
                EventKind::Granted { .. }
                | EventKind::Regained { .. }
                | EventKind::Released { left: 0, .. }
                | EventKind::Vanished { .. } => here.then_some(false),
                _ => None,
            }
        };
        let found = later.find_map(|(number, later)| Some((number, says(later)?)));
        told.extend(
            found
                .filter(|(_, is_told)| *is_told)
                .map(|(at, _)| (at, owed(history, hold.0, event.at, lease_ms))),
        );
    }
    told
}

/// The instant until which a grant of a lock is owed.
fn owed(history: &History, lock: Lock, at: True, lease_ms: Option<u64>) -> True {
    let drift = history.lock(lock).authority.drift;
    match lease_ms {
        None => True::MAX,
        Some(lease) => {
            let whole = Duration::from_millis(lease);
            let allowed = whole * drift.per_mille as u32 / 1_000 + Duration::from_millis(drift.plus_ms);
            at + whole.saturating_sub(allowed)
        }
    }
}

/// The spans in which a group owed the lock to an owner: one for each grant and renewal, and one
/// for each hold that a reply [told](told) the owner of.
///
/// A grant at *t* for the lease *L* is a promise until *t + L*, less the allowance for drift if
/// there is one. So is a renewal that the owner sent itself, and a hold that came back with a node
/// for the lease *L* at *t*, from when the owner believes in it. The promise is over when the owner
/// has given all its holds back; the promise of a nested hold also when the owner has given that
/// level back, or when the node grants a hold of that depth again; and when it was given back in
/// vain. Nothing else ends a promise. If a node comes back with more levels than it last reported
/// while the promise lasts, they lie below it and increase its depth by their number.
fn promises_of_group(history: &History, hold: Hold, group: &[Host]) -> Vec<Span> {
    let (lock, owner, _) = hold;
    let in_vain = in_vain(history, hold, group);
    let told = told(history, hold, group);
    let mut spans = Vec::new();
    for (number, event) in history.events.iter().enumerate() {
        let here = group.contains(&event.host) && event.kind.hold() == Some(hold);
        // A renewal is for all levels of the owner: it is as deep as the outermost hold.
        let (depth, end) = match &event.kind {
            EventKind::Granted { count, lease_ms, .. } if here => {
                (*count, owed(history, lock, event.at, *lease_ms))
            }
            EventKind::Extended { by, lease_ms, .. } if here && own(history, owner, *by) => {
                (1, owed(history, lock, event.at, *lease_ms))
            }
            EventKind::Believes { .. } => match told.iter().find(|(told, _)| *told == number) {
                Some((_, end)) => (1, *end),
                None => continue,
            },
            _ => continue,
        };
        let mut depth = depth;
        let mut ended = None;
        for (later, event) in about(history, hold, group).filter(|(later, _)| *later > number) {
            let ends_it = match &event.kind {
                EventKind::Released { by, left, .. } => own(history, owner, *by) && *left < depth,
                EventKind::Granted { count, .. } => *count <= depth,
                EventKind::Regained { count, .. } => {
                    depth += count.saturating_sub(levels(history, hold, group, later));
                    false
                }
                _ => false,
            };
            if ends_it {
                ended = Some(event.at);
                break;
            }
        }
        let given_back = in_vain.iter().find(|later| **later > number).map(|later| history.events[*later].at);
        let ends = [ended, given_back].into_iter().flatten().min();
        spans.push((event.at, end.min(ends.unwrap_or(True::MAX))));
    }
    spans
}

/// The last number of a hold's levels that a group reported before an event: granted, left to the
/// owner, or come back with.
fn levels(history: &History, hold: Hold, group: &[Host], before: usize) -> u32 {
    let said = |(_, event): (usize, &Event)| match &event.kind {
        EventKind::Granted { count, .. } | EventKind::Regained { count, .. } => Some(*count),
        EventKind::Released { by, left, .. } => own(history, hold.1, *by).then_some(*left),
        _ => None,
    };
    about(history, hold, group).rev().filter(|(number, _)| *number < before).find_map(said).unwrap_or(0)
}

/// The stretches in which an owner was promised a lock: as many groups as its authority needs owed
/// it to the owner.
///
/// A promise that the owner gave back is separate from its next one, even at the same instant.
pub(crate) fn promised(history: &History, lock: Lock, owner: Owner) -> Vec<Stretch> {
    in_each_mode(lock, owner).into_iter().flat_map(|hold| promised_in(history, hold)).collect()
}

fn promised_in(history: &History, hold: Hold) -> Vec<Stretch> {
    let (lock, owner, mode) = hold;
    let authority = &history.lock(lock).authority;
    let groups: Vec<Vec<Span>> =
        authority.groups.iter().map(|group| promises_of_group(history, hold, group)).collect();
    let given_back = |event: &&Event| match &event.kind {
        EventKind::Released { by, left: 0, .. } => {
            event.kind.hold() == Some(hold)
                && authority.groups.len() == 1
                && authority.groups[0].contains(&event.host)
                && own(history, owner, *by)
        }
        _ => false,
    };
    let mut cuts: BTreeSet<True> = history.events.iter().filter(given_back).map(|event| event.at).collect();
    if let [group] = &authority.groups[..] {
        cuts.extend(in_vain(history, hold, group).into_iter().map(|number| history.events[number].at));
    }
    let so = |at: True| groups.iter().filter(|group| group.iter().any(|span| within(*span, at))).count();
    let spans = stretches(&groups.concat(), &cuts, history.header.end, |at| so(at) >= authority.quorum);
    spans.into_iter().map(|(from, until)| Stretch { lock, owner, mode, from, until }).collect()
}

/// Returns true if an event ends an owner's belief in a lock: the owner reports it, or its client
/// loses its memory.
pub(crate) fn ends_belief(history: &History, hold: Hold, event: &Event) -> bool {
    match &event.kind {
        EventKind::Disbelieves { .. } => event.kind.hold() == Some(hold),
        EventKind::Life { life: Life::Crashed | Life::Started } => event.host == history.client_of(hold.1),
        _ => false,
    }
}

/// Returns true if an owner still believes it holds a lock at the end of the run: that was its
/// latest report, some time ago, and its clock does not show the end of the lease yet.
pub(crate) fn believes_at_the_end(history: &History, lock: Lock, owner: Owner) -> bool {
    let in_mode = |hold: Hold| {
        let events = history.events.iter().rev();
        let about = |event: &&Event| {
            let says = matches!(event.kind, EventKind::Believes { .. }) && event.kind.hold() == Some(hold);
            says || ends_belief(history, hold, event)
        };
        let latest = events.clone().find(about);
        let Some((event, EventKind::Believes { until, .. })) = latest.map(|event| (event, &event.kind))
        else {
            return false;
        };
        let lapsed = until.map_or(True::MAX, |until| shown(history, event.host, until, event.at));
        // A belief taken up in the last instant lasts for no time; it is separate from one that was
        // given up in that instant.
        let given_up = |from: True| {
            history.events.iter().any(|event| event.at > from && ends_belief(history, hold, event))
        };
        let end = history.header.end;
        let some_time =
            believed_in(history, hold).iter().any(|belief| belief.until == end && !given_up(belief.from));
        some_time && lapsed > history.header.end
    };
    in_each_mode(lock, owner).into_iter().any(in_mode)
}

/// The stretches in which an owner believed it held a lock.
///
/// A belief lasts from its report until the owner reports the contrary, its client crashes or
/// starts, or the clock that it named has shown the reading that it named. A belief that it gave up
/// is separate from the next one.
pub(crate) fn believed(history: &History, lock: Lock, owner: Owner) -> Vec<Stretch> {
    in_each_mode(lock, owner).into_iter().flat_map(|hold| believed_in(history, hold)).collect()
}

fn believed_in(history: &History, hold: Hold) -> Vec<Stretch> {
    let (lock, owner, mode) = hold;
    let ends = |event: &Event| ends_belief(history, hold, event);
    let mut spans = Vec::new();
    for (number, event) in history.events.iter().enumerate() {
        let EventKind::Believes { until, .. } = &event.kind else { continue };
        if event.kind.hold() != Some(hold) {
            continue;
        }
        let says = |later: &&Event| {
            let again = matches!(later.kind, EventKind::Believes { .. }) && later.kind.hold() == Some(hold);
            again || ends(later)
        };
        let told = history.events[number + 1..].iter().find(says).map_or(True::MAX, |later| later.at);
        let lapsed = until.map_or(True::MAX, |until| shown(history, event.host, until, event.at));
        spans.push((event.at, told.min(lapsed)));
    }
    let cuts = history.events.iter().filter(|event| ends(event)).map(|event| event.at).collect();
    let so = |at: True| spans.iter().any(|span| within(*span, at));
    let stretch = |(from, until)| Stretch { lock, owner, mode, from, until };
    stretches(&spans, &cuts, history.header.end, so).into_iter().map(stretch).collect()
}

fn within((from, until): Span, at: True) -> bool {
    from <= at && at < until
}

/// The longest stretches before `end` in which `so` is true, if only the ends of these spans change
/// it; none continues through a cut.
fn stretches(spans: &[Span], cuts: &BTreeSet<True>, end: True, so: impl Fn(True) -> bool) -> Vec<Span> {
    let edges = spans.iter().flat_map(|(from, until)| [*from, *until]).chain(cuts.iter().copied());
    let mut instants: BTreeSet<True> = edges.filter(|at| *at < end).collect();
    instants.insert(end);
    let instants: Vec<True> = instants.into_iter().collect();
    let mut found: Vec<Span> = Vec::new();
    for pair in instants.windows(2) {
        let (from, until) = (pair[0], pair[1]);
        match found.last_mut() {
            _ if !so(from) => {}
            Some(last) if last.1 == from && !cuts.contains(&from) => last.1 = until,
            _ => found.push((from, until)),
        }
    }
    found
}

/// The first instant, not before `from`, at which a host's clock shows `reading` or more; the end
/// of time if that is not during the run. Searches piece by piece, because a clock never goes back
/// within a piece.
pub(crate) fn shown(history: &History, host: Host, reading: Deadline, from: True) -> True {
    let clock = history.clock(host);
    let shows = |at: i64| clock.reading(reading.clock, True::from_nanos(at)) >= reading.nanos;
    let pieces = clock.segments();
    for (number, piece) in pieces.iter().enumerate() {
        let end = history.header.end + Duration::from_nanos(1);
        let next = pieces.get(number + 1).map_or(end, |next| next.from);
        let (mut no, last) = (piece.from.max(from).as_nanos(), next.as_nanos() - 1);
        if no > last {
            continue;
        }
        if shows(no) {
            return True::from_nanos(no);
        }
        if !shows(last) {
            continue;
        }
        let mut yes = last;
        while yes - no > 1 {
            let middle = no + (yes - no) / 2;
            if shows(middle) { yes = middle } else { no = middle }
        }
        return True::from_nanos(yes);
    }
    True::MAX
}

/// All promises, or all beliefs, of every owner in every lock.
pub(crate) fn of_all(history: &History, one: fn(&History, Lock, Owner) -> Vec<Stretch>) -> Vec<Stretch> {
    pairs(history).into_iter().flat_map(|(lock, owner)| one(history, lock, owner)).collect()
}

/// The time in which two stretches exclude each other: they have different owners in one lock, and
/// are not both readers.
pub(crate) fn clash(one: &Stretch, other: &Stretch) -> Option<Span> {
    let (from, until) = (one.from.max(other.from), one.until.min(other.until));
    let apart = one.lock != other.lock || one.owner == other.owner;
    let readers = one.mode == Mode::Shared && other.mode == Mode::Shared;
    (!apart && !readers && from < until).then_some((from, until))
}

#[derive(Debug, Default)]
pub(crate) struct Clashes {
    /// The duration of each clash.
    pub(crate) lengths: Vec<Duration>,
    /// The number of clashes that would not exist with one of the two earlier or later by the error
    /// of a run in real time.
    pub(crate) unsure: usize,
}

impl Clashes {
    pub(crate) fn among(history: &History, stretches: &[Stretch]) -> Clashes {
        let mut found = Clashes::default();
        for (number, one) in stretches.iter().enumerate() {
            for other in &stretches[number + 1..] {
                if let Some((from, until)) = clash(one, other) {
                    let is_certain = is_certain(history, |shift| clash(&one.moved(shift), other).is_some());
                    found.add(until.since(from), is_certain);
                }
            }
        }
        found
    }

    pub(crate) fn add(&mut self, length: Duration, is_certain: bool) {
        if is_certain { self.lengths.push(length) } else { self.unsure += 1 }
    }

    pub(crate) fn longest(&self) -> Duration {
        self.lengths.iter().max().copied().unwrap_or(Duration::ZERO)
    }
}

/// Returns true if a clash remains one with one of the two moved by the error of a run in real
/// time, in milliseconds.
pub(crate) fn is_certain(history: &History, is_clash: impl Fn(i64) -> bool) -> bool {
    !history.header.is_real() || [-100, 100].into_iter().all(is_clash)
}

pub(crate) fn moved(at: True, millis: i64) -> True {
    True::from_nanos(at.as_nanos().saturating_add(millis * 1_000_000))
}

impl Stretch {
    pub(crate) fn moved(&self, millis: i64) -> Stretch {
        Stretch { from: moved(self.from, millis), until: moved(self.until, millis), ..*self }
    }
}

/// A call, from the event that made it to the event that ended it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) lock: Lock,
    pub(crate) owner: Owner,
    pub(crate) call: Call,
    /// The numbers of the events; `ended` is `None` if the call was under way at the end of the
    /// run.
    pub(crate) made: usize,
    pub(crate) ended: Option<usize>,
    /// The outcome of the call; a client that crashed or started again never sees the reply to an
    /// earlier request.
    pub(crate) outcome: Option<&'a Outcome>,
}

impl Asked<'_> {
    pub(crate) fn acquires(&self) -> bool {
        matches!(self.call, Call::Acquire { .. })
    }

    /// Returns true if the call was under way after an event.
    pub(crate) fn under_way(&self, after: usize) -> bool {
        self.made <= after && self.ended.is_none_or(|ended| after < ended)
    }

    pub(crate) fn is(&self, lock: Lock, owner: Owner) -> bool {
        (self.lock, self.owner) == (lock, owner)
    }

    /// The time of the call, and the latest time at which it was over.
    pub(crate) fn times(&self, history: &History) -> (True, True) {
        let over = self.ended.map_or(history.header.end, |ended| history.events[ended].at);
        (history.events[self.made].at, over)
    }
}

/// Every call, in the order in which they were made.
pub(crate) fn calls(history: &History) -> Vec<Asked<'_>> {
    let mut calls = Vec::new();
    for (made, event) in history.events.iter().enumerate() {
        let EventKind::Invoke { op, lock, owner, call } = &event.kind else { continue };
        let mut later = history.events.iter().enumerate().skip(made + 1);
        let found = later.find_map(|(number, later)| match &later.kind {
            EventKind::Return { op: of, outcome } if of == op => Some((number, Some(outcome))),
            EventKind::Life { life: Life::Crashed | Life::Started } if later.host == event.host => {
                Some((number, None))
            }
            _ => None,
        });
        let (ended, outcome) = found.map_or((None, None), |(number, outcome)| (Some(number), outcome));
        calls.push(Asked { lock: *lock, owner: *owner, call: *call, made, ended, outcome });
    }
    calls
}

/// Returns true if a host's software stood still after an event: it had crashed or was paused, and
/// had not been started or resumed since.
pub(crate) fn still(history: &History, host: Host, after: usize) -> bool {
    let life = |event: &Event| match event.kind {
        EventKind::Life { life } if event.host == host => Some(life),
        _ => None,
    };
    let latest = history.events[..=after].iter().rev().find_map(life);
    matches!(latest, Some(Life::Crashed | Life::Paused | Life::Suspended))
}

/// The owners that ever tried to acquire a lock, were promised it or believed in it.
pub(crate) fn contenders(history: &History, lock: Lock) -> BTreeSet<Owner> {
    let asked = |owner: Owner| {
        let acquires = |event: &Event| match &event.kind {
            EventKind::Invoke { lock: of, owner: whose, call: Call::Acquire { .. }, .. } => {
                (*of, *whose) == (lock, owner)
            }
            _ => false,
        };
        history.events.iter().any(acquires)
    };
    let had = |owner: Owner| {
        !promised(history, lock, owner).is_empty() || !believed(history, lock, owner).is_empty()
    };
    let owners = (0..history.owners.len() as u32).map(Owner);
    owners.filter(|owner| asked(*owner) || had(*owner)).collect()
}
