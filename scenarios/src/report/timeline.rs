//! The events of a run, one line each: true time, host, words.

use std::fmt::Write;

use lockstorm_world::time::True;

use crate::judge::{
    checker::evidence::words,
    history::{
        Call, ClockId, Event, EventKind, History, Host, HostKind, Life, LossCause, Mode, Outcome, Owner,
        Party, Reason, Role, Serving, Wait, Wake,
    },
};

/// Returns the timeline of a run as text of at most `lines_max` lines; one more line counts those
/// that are left out. Equal lines in a row are merged.
pub fn timeline(history: &History, lines_max: usize) -> String {
    let mut lines: Vec<(True, &str, String)> = Vec::with_capacity(history.events.len());
    for fault in &history.faults {
        lines.push((fault.from, "~", words::fault(fault)));
    }
    if let Some(calm) = history.header.calm {
        lines.push((calm, "~", "the storm is over".to_owned()));
    }
    for event in &history.events {
        lines.push((event.at, history.host_name(event.host), sentence(history, event)));
    }
    lines.sort_by_key(|line| line.0);
    let width = lines.iter().map(|line| line.1.chars().count()).max().unwrap_or(0);
    let (mut out, mut shown, mut at) = (String::new(), 0, 0);
    while at < lines.len() && shown < lines_max {
        let (when, host, words) = &lines[at];
        let alike = lines[at..].iter().take_while(|line| (line.1, &line.2) == (*host, words)).count();
        let _ = write!(out, "{:>14}  {host:<width$}  {words}", words::instant(*when));
        if alike > 1 {
            let _ = write!(out, " ({alike} times until {})", words::instant(lines[at + alike - 1].0));
        }
        out.push('\n');
        (at, shown) = (at + alike, shown + 1);
    }
    if at < lines.len() {
        let _ = writeln!(out, "{:>14}  and {} more", "...", lines.len() - at);
    }
    out
}

/// Describes an event in words.
pub(super) fn sentence(history: &History, event: &Event) -> String {
    let name = |owner: &Owner| history.owner_name(*owner);
    let lease = |lease: &Option<u64>| lease.map_or("no expiry".to_owned(), |ms| format!("{ms} ms"));
    let by = |by: &Party, owner: &Owner| match by.owner {
        Some(other) if other != *owner => format!(" by {}", name(&other)),
        None if by.client != history.client_of(*owner) => format!(" by {}", history.sender_name(by.client)),
        _ => String::new(),
    };
    let lock = event.kind.lock().map(|lock| format!("`{}`", history.lock(lock).name)).unwrap_or_default();
    match &event.kind {
        EventKind::Invoke { owner, call, .. } => {
            let asked = match call {
                Call::Acquire { wait: Wait::No, .. } => format!("tries {lock}"),
                Call::Acquire { wait: Wait::Ms(ms), .. } => format!("asks for {lock}, for {ms} ms at most"),
                Call::Acquire { wait: Wait::Unbounded, .. } => format!("asks for {lock}"),
                Call::Release => format!("releases {lock}"),
                Call::Extend { lease_ms } => format!("extends {lock} to {lease_ms} ms"),
                Call::Set => format!("sets {lock}"),
                Call::CountDown => format!("counts {lock} down"),
                Call::Await { wait: Wait::Ms(ms) } => {
                    format!("waits until {lock} is open, for {ms} ms at most")
                }
                Call::Await { .. } => format!("waits until {lock} is open"),
                Call::Delete => format!("deletes {lock}"),
                Call::Take { permits, .. } => {
                    format!("asks {lock} for {}", words::many(*permits as usize, "permit"))
                }
            };
            let reads = matches!(call, Call::Acquire { mode: Mode::Shared, .. });
            format!("{} {asked}{}", name(owner), if reads { ", to read" } else { "" })
        }
        EventKind::Return { outcome: Outcome::Ok, .. } => "call succeeded".to_owned(),
        EventKind::Return { outcome: Outcome::Refused, .. } => "call was refused".to_owned(),
        EventKind::Return { outcome: Outcome::Failed { definite, message }, .. } => {
            format!("call failed ({}): {message}", if *definite { "certainly" } else { "perhaps done" })
        }
        EventKind::Believes { owner, until, token, .. } => {
            let mut said = format!("{} believes it holds {lock}", name(owner));
            match until {
                Some(deadline) => {
                    let now = history.clock(event.host).reading(deadline.clock, event.at);
                    let rest = std::time::Duration::from_nanos(
                        deadline.nanos.saturating_sub(now).max(0).unsigned_abs(),
                    );
                    let _ = write!(said, " for {} by its {}", words::length(rest), deadline.clock);
                }
                None => said.push_str(" until told otherwise"),
            }
            if let Some(token) = token {
                let _ = write!(said, ", token {token}");
            }
            said
        }
        EventKind::Disbelieves { owner, why, .. } => {
            let why = match why {
                Reason::Released => "gives it back",
                Reason::Lost => "was told that it is lost",
                Reason::Expired => "sees its lease over by its own clock",
            };
            format!("{} no longer believes in {lock}: it {why}", name(owner))
        }
        EventKind::Abandoned { owner, .. } => {
            format!("{} has done its work, and does not give {lock} back", name(owner))
        }
        EventKind::Waiting { owner, .. } => format!("{} waits for {lock}", name(owner)),
        EventKind::Woken { owner, by: Wake::Message, .. } => format!("{} is woken by a message", name(owner)),
        EventKind::Woken { owner, by: Wake::Timer, .. } => format!("{} is woken by a timer", name(owner)),
        EventKind::Granted { owner, lease_ms, count, token, .. } => {
            let nested = if *count > 1 { format!(", hold {count}") } else { String::new() };
            let token = token.map_or(String::new(), |token| format!(", token {token}"));
            format!("grants {lock} to {}, {}{nested}{token}", name(owner), lease(lease_ms))
        }
        EventKind::Extended { owner, by: party, lease_ms, .. } => {
            format!("extends {lock} of {} to {}{}", name(owner), lease(lease_ms), by(party, owner))
        }
        EventKind::Released { owner, by: party, left, .. } => {
            let left = if *left > 0 { format!(", holds left: {left}") } else { String::new() };
            format!("releases {lock} of {}{}{left}", name(owner), by(party, owner))
        }
        EventKind::Vanished { owner, how, .. } => {
            format!("{lock} of {} is gone: {}", name(owner), gone(history, event.host, *how))
        }
        EventKind::Regained { owner, lease_ms, count, .. } => {
            let nested = if *count > 1 { format!(", holds: {count}") } else { String::new() };
            format!("comes back with {lock} of {}, {}{nested}", name(owner), lease(lease_ms))
        }
        EventKind::Queue { waiters, .. } => {
            let waiters: Vec<String> = waiters.iter().map(name).collect();
            if waiters.is_empty() {
                format!("the queue of {lock} is empty")
            } else {
                format!("queue of {lock}: {}", waiters.join(", "))
            }
        }
        EventKind::Counted { left: 0, .. } => format!("{lock} is open"),
        EventKind::Counted { left, .. } => format!("{lock} is closed until it is counted down {left} more"),
        EventKind::Passed { by, permits, .. } => {
            let permits = words::many(*permits as usize, "permit");
            format!("grants {} {permits} of {lock}", history.sender_name(by.client))
        }
        EventKind::Published { receivers, .. } => format!("publishes about {lock} to {receivers}"),
        EventKind::Sentinel { event, message } => format!("says {event} {message}"),
        EventKind::Cluster { event, about } => format!("sees {event} {about}"),
        EventKind::Serves { how, .. } => match how {
            Serving::Elsewhere => format!("has the slot of {lock} no more"),
            Serving::Closed => format!("is master of the slot of {lock}, and does not answer"),
            Serving::Whole => format!("answers for the slot of {lock}"),
            Serving::Migrating => format!("answers for what is left in the slot of {lock}"),
            Serving::Importing => format!("takes in the slot of {lock}"),
        },
        EventKind::Became { role: Role::Master } => "is a master".to_owned(),
        EventKind::Became { role: Role::Replica } => "is a replica".to_owned(),
        EventKind::Life { life } => match life {
            Life::Started => "starts".to_owned(),
            Life::Crashed => "crashes".to_owned(),
            Life::Paused => "is paused".to_owned(),
            Life::Suspended => "is suspended".to_owned(),
            Life::Resumed => "goes on".to_owned(),
        },
        EventKind::Write { owner, token, sent, accepted, .. } => {
            let token = token.map_or("no token".to_owned(), |token| format!("token {token}"));
            let stale = match (accepted.greater, accepted.at_least) {
                (_, false) => ", a stale one",
                (false, true) => ", one seen before",
                _ => "",
            };
            format!("{} writes with {token}{stale}, sent at {}", name(owner), words::instant(*sent))
        }
    }
}

fn gone(history: &History, node: Host, how: LossCause) -> String {
    match how {
        LossCause::Expired => "expired".to_owned(),
        LossCause::Evicted => "evicted".to_owned(),
        LossCause::Flushed => "flushed".to_owned(),
        LossCause::Deleted(party) => format!("deleted by {}", history.party_name(party)),
        LossCause::Overwritten(party) => format!("written over by {}", history.party_name(party)),
        LossCause::Crash => "lost in a crash".to_owned(),
        LossCause::Failover => format!("{} did not have it", history.host_name(node)),
    }
}

/// Returns the clock by which a host is shown: the wall clock of a node; for a client the clock by
/// which it counted its leases.
pub(super) fn own_clock(history: &History, host: Host) -> ClockId {
    if history.header.hosts[usize::from(host.0)].kind == HostKind::Node {
        return ClockId::Wall;
    }
    let deadline =
        history.events.iter().filter(|event| event.host == host).find_map(|event| match &event.kind {
            EventKind::Believes { until, .. } => until.map(|deadline| deadline.clock),
            _ => None,
        });
    deadline.unwrap_or(ClockId::Boottime)
}
