//! The rows of the page's timeline, with their bars and marks in true time.

use std::collections::BTreeMap;

use lockstorm_world::time::True;

use super::timeline::sentence;
use crate::judge::{
    checker::{Evidence, Stretch, evidence::words},
    history::{Call, Event, EventKind, Fence, History, Host, HostKind, Life, Lock, Mode, Op, Owner},
};

/// A bar from one instant to another.
#[derive(Debug, Clone)]
pub(super) struct Bar {
    pub(super) from: True,
    pub(super) until: True,
    /// The owner that gives it its colour; `None` for a bar of a host.
    pub(super) owner: Option<Owner>,
    /// The kind of bar, for the style sheet.
    pub(super) class: &'static str,
    pub(super) label: String,
    pub(super) title: String,
}

/// A row with its bars, and with marks of what happened at an instant.
#[derive(Debug, Default)]
pub(super) struct Lane {
    pub(super) label: String,
    pub(super) bars: Vec<Bar>,
    pub(super) marks: Vec<(True, String)>,
}

/// Returns the owner in whose row `owner` is shown, and the name of the row. A Redlock has a new
/// owner for each try: if its client works in one line, the row of that line shows them all.
pub(super) fn row(history: &History, owner: Owner) -> (Owner, String) {
    let client = history.owners[owner.0 as usize].client;
    let prefix = format!("{}:", history.host_name(client));
    let of_client = (0..).zip(&history.owners).filter(|(_, info)| info.client == client);
    let mut lines = of_client.filter(|(_, info)| info.name.starts_with(&prefix));
    match (lines.next(), lines.next()) {
        (Some((line, _)), None) => (Owner(line), history.host_name(client).to_owned()),
        _ => (owner, history.owner_name(owner)),
    }
}

fn running(title: &str, from: True, until: True) -> String {
    format!("{title}\n{} to {}", words::instant(from), words::instant(until))
}

/// Returns a row per node, with the owners whose key it had.
pub(super) fn nodes(history: &History) -> Vec<Lane> {
    // An owner may have the key in both modes.
    type Of = (Host, Lock, Owner, Mode);
    let mut open: BTreeMap<Of, (True, True)> = BTreeMap::new();
    let mut bars: BTreeMap<Host, Vec<Bar>> = BTreeMap::new();
    let end = history.header.end;
    let mut close = |(host, lock, owner, _): Of, (from, over): (True, True), at: True, how: &str| {
        let (until, how) = if over < at { (over, "expired") } else { (at, how) };
        let (owner, name) = row(history, owner);
        let key = &history.lock(lock).name;
        let title =
            running(&format!("{} had `{key}` for {name}; {how}", history.host_name(host)), from, until);
        bars.entry(host).or_default().push(Bar {
            from,
            until,
            owner: Some(owner),
            class: "key",
            label: name,
            title,
        });
    };
    for event in &history.events {
        if let EventKind::Life { life: Life::Crashed } = event.kind {
            let here: Vec<_> = open.keys().filter(|key| key.0 == event.host).copied().collect();
            for key in here {
                if let Some(state) = open.remove(&key) {
                    close(key, state, event.at, "the node crashed");
                }
            }
        }
        let Some((lock, owner, mode)) = event.kind.hold() else { continue };
        let key = (event.host, lock, owner, mode);
        let expires = |until: &Option<lockstorm_world::time::Wall>| {
            until.and_then(|until| history.clock(event.host).expires(until, event.at)).unwrap_or(True::MAX)
        };
        match &event.kind {
            EventKind::Granted { until, .. }
            | EventKind::Extended { until, .. }
            | EventKind::Regained { until, .. } => {
                if open.get(&key).is_some_and(|(_, over)| *over < event.at)
                    && let Some(state) = open.remove(&key)
                {
                    close(key, state, event.at, "expired");
                }
                open.entry(key).or_insert((event.at, True::MAX)).1 = expires(until);
            }
            EventKind::Released { left: 0, .. } => {
                if let Some(state) = open.remove(&key) {
                    close(key, state, event.at, "released");
                }
            }
            EventKind::Vanished { .. } => {
                if let Some(state) = open.remove(&key) {
                    close(key, state, event.at, &sentence(history, event));
                }
            }
            _ => {}
        }
    }
    for (key, state) in open {
        close(key, state, end, "still there when the run ended");
    }
    let lane = |host| Lane {
        label: history.host_name(host).to_owned(),
        bars: bars.remove(&host).unwrap_or_default(),
        marks: Vec::new(),
    };
    history.header.hosts_of(HostKind::Node).map(lane).collect()
}

/// Returns a row per node that ever was a master of a replicated lock, with the times at which it
/// was.
pub(super) fn masters(evidence: &Evidence<'_>, lock: Lock) -> Vec<Lane> {
    let history = evidence.history;
    let mut lanes: BTreeMap<Host, Lane> = BTreeMap::new();
    let key = &history.lock(lock).name;
    for (host, from, until) in evidence.mastered(lock) {
        let node = history.host_name(host);
        let several = history.header.locks.len() > 1;
        let label = if several { format!("{node} {key}") } else { node.to_owned() };
        let title = running(&format!("{node} was a master of `{key}`"), from, until);
        let lane = lanes.entry(host).or_insert_with(|| Lane { label, ..Lane::default() });
        let (label, class) = ("master".to_owned(), "role");
        lane.bars.push(Bar { from, until, owner: None, class, label, title });
    }
    lanes.into_values().collect()
}

/// Returns a row per Sentinel and node of a cluster, with its reports of the others.
pub(super) fn failure_detection(history: &History) -> Vec<Lane> {
    let mut lanes: BTreeMap<Host, Lane> = BTreeMap::new();
    let is_said = |kind: &EventKind| matches!(kind, EventKind::Cluster { .. } | EventKind::Sentinel { .. });
    for event in history.events.iter().filter(|event| is_said(&event.kind)) {
        let name = history.host_name(event.host);
        let lane =
            lanes.entry(event.host).or_insert_with(|| Lane { label: name.to_owned(), ..Lane::default() });
        let said = sentence(history, event);
        lane.marks.push((event.at, format!("{name} {said}\n{}", words::instant(event.at))));
    }
    lanes.into_values().collect()
}

/// Returns a row per owner, and per lock if there are several, with the promises of the servers.
pub(super) fn promised(evidence: &Evidence<'_>) -> Vec<Lane> {
    let history = evidence.history;
    by_owner(history, bars(history, evidence.promised(), "promise"))
}

/// Returns a row per owner, and per lock if there are several, with its tries to acquire the lock
/// and its beliefs that it holds the lock.
pub(super) fn believed(evidence: &Evidence<'_>) -> Vec<Lane> {
    let history = evidence.history;
    let mut all: Vec<(Lock, Bar)> = asked(history);
    all.extend(bars(history, evidence.believed(), "belief"));
    by_owner(history, all)
}

fn bars(history: &History, held: Vec<Stretch>, class: &'static str) -> Vec<(Lock, Bar)> {
    let bar = |Stretch { lock, owner, from, until, words }: Stretch| {
        let owner = row(history, owner).0;
        (lock, Bar { from, until, owner: Some(owner), class, label: String::new(), title: words })
    };
    held.into_iter().map(bar).collect()
}

fn by_owner(history: &History, bars: Vec<(Lock, Bar)>) -> Vec<Lane> {
    let mut lanes: BTreeMap<(Owner, Lock), Vec<Bar>> = BTreeMap::new();
    for (lock, bar) in bars {
        if let Some(owner) = bar.owner {
            lanes.entry((owner, lock)).or_default().push(bar);
        }
    }
    let label = |owner, lock| match &history.header.locks[..] {
        [_] => row(history, owner).1,
        _ => format!("{} {}", row(history, owner).1, history.lock(lock).name),
    };
    lanes
        .into_iter()
        .map(|((owner, lock), bars)| Lane { label: label(owner, lock), bars, ..Lane::default() })
        .collect()
}

/// Returns the calls to acquire a lock, each from its beginning to its return.
fn asked(history: &History) -> Vec<(Lock, Bar)> {
    let mut open: BTreeMap<Op, (True, Lock, Owner)> = BTreeMap::new();
    let mut bars = Vec::new();
    let bar = |from: True, until: True, lock: Lock, owner: Owner, how: &str| {
        let what = match &history.header.locks[..] {
            [_] => "the lock".to_owned(),
            _ => format!("`{}`", history.lock(lock).name),
        };
        let (owner, name) = row(history, owner);
        let title = running(&format!("{name} asked for {what}{how}"), from, until);
        (lock, Bar { from, until, owner: Some(owner), class: "ask", label: String::new(), title })
    };
    for event in &history.events {
        match &event.kind {
            EventKind::Invoke { op, lock, owner, call: Call::Acquire { .. } } => {
                open.insert(*op, (event.at, *lock, *owner));
            }
            EventKind::Return { op, .. } => {
                if let Some((from, lock, owner)) = open.remove(op) {
                    bars.push(bar(from, event.at, lock, owner, ""));
                }
            }
            _ => {}
        }
    }
    let end = history.header.end;
    bars.extend(
        open.into_values().map(|(from, lock, owner)| bar(from, end, lock, owner, " and was never answered")),
    );
    bars
}

/// Returns the times at which hosts were paused, suspended or down.
pub(super) fn lives(history: &History) -> BTreeMap<Host, Vec<Bar>> {
    let mut open: BTreeMap<Host, (True, &'static str)> = BTreeMap::new();
    let mut bars: BTreeMap<Host, Vec<Bar>> = BTreeMap::new();
    let mut close = |host: Host, from: True, until: True, class: &'static str| {
        let title = running(&format!("{} was {class}", history.host_name(host)), from, until);
        bars.entry(host).or_default().push(Bar {
            from,
            until,
            owner: None,
            class,
            label: class.to_owned(),
            title,
        });
    };
    for event in &history.events {
        let EventKind::Life { life } = event.kind else { continue };
        if let Some((from, class)) = open.remove(&event.host) {
            close(event.host, from, event.at, class);
        }
        let class = match life {
            Life::Crashed => "down",
            Life::Paused => "paused",
            Life::Suspended => "suspended",
            Life::Started | Life::Resumed => continue,
        };
        open.insert(event.host, (event.at, class));
    }
    for (host, (from, class)) in open {
        close(host, from, history.header.end, class);
    }
    bars
}

/// A write at the resource.
#[derive(Debug)]
pub(super) struct Dot {
    pub(super) at: True,
    pub(super) owner: Owner,
    pub(super) token: Option<u64>,
    pub(super) accepted: bool,
    pub(super) title: String,
}

/// Returns the writes that arrived at the resource.
pub(super) fn writes(history: &History) -> Vec<Dot> {
    let fence = history.header.resource.as_ref().map_or(Fence::None, |resource| resource.fence);
    let dot = |event: &Event| match &event.kind {
        EventKind::Write { owner, token, accepted, .. } => {
            let accepted = fence.accepts(*accepted);
            let said = sentence(history, event);
            let title = format!(
                "{said}\narrived at {}, {}",
                words::instant(event.at),
                if accepted { "accepted" } else { "rejected" }
            );
            Some(Dot { at: event.at, owner: *owner, token: *token, accepted, title })
        }
        _ => None,
    };
    history.events.iter().filter_map(dot).collect()
}
