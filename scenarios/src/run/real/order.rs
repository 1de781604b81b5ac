//! Sorts the events of servers and clients. Those of servers are recorded slightly late, and by
//! another clock.
//!
//! The world reads the clock once for all tasks that are ready at one moment. So a client's reply
//! may be recorded some microseconds, on a busy machine some milliseconds, before the server's
//! event that caused it. A cause happened before its reply.

use std::{collections::BTreeMap, time::Duration};

use lockstorm_world::time::True;

use crate::judge::history::{Call, Event, EventKind, Host, Op, Outcome, Owner};

/// The largest difference between the two records. A later event of a server did not cause the
/// reply.
const LATE_MAX: Duration = Duration::from_millis(50);

/// A successful call. The server executed it between `from` and `until`.
struct Done {
    owner: Owner,
    call: Call,
    from: True,
    until: True,
}

impl Done {
    /// Returns true if an event concerns the call's owner and, for an acquisition, its mode.
    fn is_about(&self, what: &EventKind) -> bool {
        let asked = if let Call::Acquire { mode, .. } = self.call { Some(mode) } else { None };
        what.hold()
            .is_some_and(|(_, owner, mode)| owner == self.owner && asked.is_none_or(|asked| asked == mode))
    }

    /// Returns true if an event is the server's execution of the call.
    fn is_done_by(&self, what: &EventKind) -> bool {
        let does = matches!(
            (self.call, what),
            (Call::Acquire { .. }, EventKind::Granted { .. })
                | (Call::Release, EventKind::Released { .. })
                | (Call::Extend { .. }, EventKind::Extended { .. })
        );
        does && self.is_about(what)
    }
}

/// Sorts the events by time, each after its cause.
///
/// The order of one server's events is certain. If one of them happened earlier than recorded, so
/// did all before it.
pub(in crate::run) fn put_in_order(events: &mut Vec<Event>) {
    events.sort_by_key(|event| event.at);
    let calls = calls(events);
    let mut servers: BTreeMap<Host, Vec<Event>> = BTreeMap::new();
    for event in events.extract_if(.., |event| is_of_a_server(&event.kind)) {
        servers.entry(event.host).or_default().push(event);
    }
    for call in calls {
        let noted = |from: True, until: True| {
            let within = servers.values().flat_map(move |list| {
                let first = list.partition_point(|event| event.at < from);
                list[first..].iter().take_while(move |event| event.at <= until)
            });
            within.filter(|event| call.is_done_by(&event.kind))
        };
        if noted(call.from, call.until).next().is_some() {
            continue;
        }
        // Take the server's first event for the owner since the call began. If that is of another
        // kind, the server did nothing for this call.
        let late = servers.values().filter_map(|list| {
            let since = &list[list.partition_point(|event| event.at < call.from)..];
            since.iter().find(|event| call.is_about(&event.kind))
        });
        let late = late.filter(|event| call.is_done_by(&event.kind) && event.at <= call.until + LATE_MAX);
        let late = late.min_by_key(|event| event.at);
        if let Some((host, at)) = late.map(|event| (event.host, event.at)) {
            let sooner = call.until - Duration::from_nanos(1);
            let before = servers.get_mut(&host).into_iter().flatten().take_while(|event| event.at <= at);
            before.for_each(|event| event.at = event.at.min(sooner));
        }
    }
    events.extend(servers.into_values().flatten());
    events.sort_by_key(|event| event.at);
}

fn is_of_a_server(what: &EventKind) -> bool {
    matches!(
        what,
        EventKind::Granted { .. }
            | EventKind::Released { .. }
            | EventKind::Extended { .. }
            | EventKind::Vanished { .. }
            | EventKind::Regained { .. }
            | EventKind::Queue { .. }
    )
}

fn calls(events: &[Event]) -> Vec<Done> {
    let mut open: BTreeMap<Op, Done> = BTreeMap::new();
    let mut all = Vec::new();
    for Event { at, kind: what, .. } in events {
        match what {
            EventKind::Invoke { op, owner, call, .. } => {
                open.insert(*op, Done { owner: *owner, call: *call, from: *at, until: True::MAX });
            }
            EventKind::Believes { owner, .. } => {
                let acquiring =
                    |done: &&mut Done| done.owner == *owner && matches!(done.call, Call::Acquire { .. });
                if let Some(done) = open.values_mut().find(acquiring) {
                    done.until = done.until.min(*at);
                }
            }
            EventKind::Return { op, outcome } => {
                if let Some(done) = open.remove(op).filter(|_| *outcome == Outcome::Ok) {
                    all.push(Done { until: done.until.min(*at), ..done });
                }
            }
            _ => {}
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::history::{Lock, Mode, story::Story};

    const LOCK: Lock = Lock(0);

    #[test]
    fn a_grant_comes_before_the_belief_that_it_made() {
        let history = Story::one_node().at(10).locks("c1", "m", 1_000).ends(2_000);
        let mut events = history.events.clone();
        let belief =
            events.iter().position(|event| matches!(event.kind, EventKind::Believes { .. })).expect("one");
        let owner = events[belief].kind.owner().expect("an event of an owner");
        let is_grant = |event: &Event| matches!(event.kind, EventKind::Granted { .. });
        let at = events[belief].at;
        let call = Call::Acquire {
            wait: crate::judge::history::Wait::No,
            lease_ms: Some(1_000),
            mode: Mode::Exclusive,
        };
        events.retain(|event| !matches!(event.kind, EventKind::Invoke { .. } | EventKind::Return { .. }));
        let client = events[events.iter().position(|event| !is_grant(event)).expect("the belief")].host;
        let op = Op(1);
        let asked = Event {
            at: at - Duration::from_millis(1),
            host: client,
            kind: EventKind::Invoke { op, lock: LOCK, owner, call },
        };
        let returned = Event { at, host: client, kind: EventKind::Return { op, outcome: Outcome::Ok } };
        events.extend([asked, returned]);
        for event in events.iter_mut().filter(|event| is_grant(event)) {
            event.at = at + Duration::from_micros(300);
        }
        put_in_order(&mut events);
        let order: Vec<&str> = events
            .iter()
            .filter_map(|event| match event.kind {
                EventKind::Invoke { .. } => Some("asks"),
                EventKind::Granted { .. } => Some("granted"),
                EventKind::Believes { .. } => Some("believes"),
                EventKind::Return { .. } => Some("returns"),
                _ => None,
            })
            .collect();
        assert_eq!(order, ["asks", "granted", "believes", "returns"]);
        assert!(events.is_sorted_by_key(|event| event.at));
    }

    #[test]
    fn a_release_comes_before_the_grant_that_it_made_possible() {
        let history =
            Story::one_node().at(10).locks("c1", "m", 1_000).at(500).locks("c2", "m", 1_000).ends(2_000);
        let granted = |event: &&Event| matches!(event.kind, EventKind::Granted { .. });
        let [first, second] = history.events.iter().filter(granted).collect::<Vec<_>>()[..] else {
            panic!("two grants")
        };
        let (at, host, owner) = (second.at, second.host, first.kind.owner().expect("an event of an owner"));
        let by = crate::judge::history::Party { client: history.client_of(owner), owner: None };
        let (left, lease_ms, until, mode) = (0, None, None, Mode::Exclusive);
        let released = EventKind::Released { lock: LOCK, owner, by, left, lease_ms, until, mode };
        // The second grant was recorded later than the belief that it caused, and so was the
        // release before it.
        let asks = |op, call| EventKind::Invoke {
            op,
            lock: LOCK,
            owner: second.kind.owner().expect("an event of an owner"),
            call,
        };
        let client = history.client_of(second.kind.owner().expect("an event of an owner"));
        let call = Call::Acquire {
            wait: crate::judge::history::Wait::No,
            lease_ms: Some(1_000),
            mode: Mode::Exclusive,
        };
        let mut events = vec![
            Event { at: at - Duration::from_millis(1), host: client, kind: asks(Op(1), call) },
            Event { at, host: client, kind: EventKind::Return { op: Op(1), outcome: Outcome::Ok } },
            Event { at: at + Duration::from_micros(218), host, kind: released },
            Event { at: at + Duration::from_micros(219), ..second.clone() },
        ];
        put_in_order(&mut events);
        let order: Vec<&str> = events
            .iter()
            .map(|event| match event.kind {
                EventKind::Invoke { .. } => "asks",
                EventKind::Released { .. } => "released",
                EventKind::Granted { .. } => "granted",
                _ => "returns",
            })
            .collect();
        assert_eq!(order, ["asks", "released", "granted", "returns"]);
        assert!(events.is_sorted_by_key(|event| event.at));
    }

    /// Regression: a writer's acquisition in shared mode also extends its exclusive hold, which was
    /// taken for the whole effect of the call.
    #[test]
    fn what_an_acquisition_to_read_extends_is_not_what_it_asked_for() {
        let story = Story::of_kind(crate::judge::history::LockKind::ReadWrite).at(500);
        let story = story.granted_in("m", "c1", 1_000, Mode::Exclusive).at(510).extended("m", "c1", 1_000);
        let history = story.granted_in("m", "c1", 1_000, Mode::Shared).ends(2_000);
        let [_, extended, granted] = &history.events[..] else { panic!("three events of the node") };
        let owner = granted.kind.owner().expect("an event of an owner");
        let (client, before) = (history.client_of(owner), granted.at - Duration::from_micros(200));
        let call =
            Call::Acquire { wait: crate::judge::history::Wait::No, lease_ms: None, mode: Mode::Shared };
        let asks = EventKind::Invoke { op: Op(1), lock: LOCK, owner, call };
        let returns = EventKind::Return { op: Op(1), outcome: Outcome::Ok };
        let mut events = vec![
            Event { at: before - Duration::from_millis(1), host: client, kind: asks },
            Event { at: before, host: client, kind: returns },
            extended.clone(),
            granted.clone(),
        ];
        put_in_order(&mut events);
        assert!(matches!(events[3].kind, EventKind::Return { .. }), "{events:?}");
    }

    /// Regression: a release that found nothing to release got the effect of a later release, and
    /// all events in between moved with it.
    #[test]
    fn what_a_later_call_did_is_not_what_an_earlier_one_did() {
        let history = Story::one_node().at(500).locks("c1", "m", 1_000).ends(2_000);
        let granted = history.events.iter().find(|event| matches!(event.kind, EventKind::Granted { .. }));
        let granted = granted.expect("a grant");
        let (owner, node) = (granted.kind.owner().expect("an event of an owner"), granted.host);
        let (client, at) = (history.client_of(owner), granted.at);
        let later = |millis| at + Duration::from_millis(millis);
        let by = crate::judge::history::Party { client, owner: None };
        let acquire = Call::Acquire {
            wait: crate::judge::history::Wait::No,
            lease_ms: Some(30),
            mode: Mode::Exclusive,
        };
        let asks = |op, call| EventKind::Invoke { op: Op(op), lock: LOCK, owner, call };
        let returns = |op| EventKind::Return { op: Op(op), outcome: Outcome::Ok };
        let (left, lease_ms, until, mode) = (0, None, None, Mode::Exclusive);
        let released = EventKind::Released { lock: LOCK, owner, by, left, lease_ms, until, mode };
        let of_client = |millis, what| Event { at: later(millis), host: client, kind: what };
        let of_node = |millis, what| Event { at: later(millis), host: node, kind: what };
        let mut events = vec![
            of_client(0, asks(1, Call::Release)),
            of_client(1, returns(1)),
            of_client(10, asks(2, acquire)),
            of_node(11, granted.kind.clone()),
            of_client(12, returns(2)),
            of_client(20, asks(3, Call::Release)),
            of_node(21, released),
            of_client(22, returns(3)),
        ];
        let before = events.clone();
        put_in_order(&mut events);
        assert_eq!(events, before);
    }
}
