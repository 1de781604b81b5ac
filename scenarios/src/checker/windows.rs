//! Does each double grant fall into a window that is known: one that a failover, a crash or a wall clock opens?
//!
//! The question arises for locks that a group of several nodes decides. When a node grants such a lock to a second owner within the
//! promise to a first one, what the node had made of the first hold says why, and so does what the node did that granted it:
//!
//! * *crash*: the node came back without the hold, or with an older expiry, which was over first;
//! * *clock*: the hold expired on it in less true time than the lease that was set last, as its wall clock was ahead;
//! * *two masters*: the node never had the hold (or an older one of the same owner, which expired), or was promoted without it, while another
//!   node that had granted it was a master still;
//! * *failover*: the same, and the other node had ceased to be one; or the node itself had followed another one since it granted.
//!
//! These are the cases in which Redis and its documentation let acknowledged writes be lost. Anything else is a mistake of the lock or
//! of the server: two grants by one node, or a hold that another client deleted. So is a belief of two owners in which there
//! is no such double grant of theirs: one of them counted on the lock for longer than it was promised.

use std::time::Duration;

use lockstorm_sim::time::{True, Wall};

use super::{
    Checker,
    evidence::Evidence,
    interval::{Overlap, overlaps},
    overlap::{Wording, witness},
    promise::Promise,
    words,
};
use crate::{
    history::{ClockId, Event, EventKind, History, Host, Life, Lock, LossCause, Role},
    verdict::{Finding, Measure, Verdict},
};

/// The checker.
pub(super) const WINDOWS: Checker = Checker {
    name: "windows",
    question: "Does each double grant of a replicated lock fall into a window that a failover, a crash or a clock opens?",
    measures: &[
        ("failover", "how many double grants came of a failover to a node without the hold"),
        ("two_masters", "how many came of two nodes that were masters at once"),
        ("crash", "how many came of a node that came back without the hold"),
        ("clock", "how many came of a node whose wall clock was beyond the lease"),
        ("unexplained", "how many came of none of these, and beliefs of two owners without a double grant"),
        ("both_served", "how long two nodes that both granted were masters at once"),
    ],
    check,
};

/// Why two owners were granted a lock at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Window {
    Failover,
    /// With the time for which both were masters.
    TwoMasters(Duration),
    Crash,
    Clock,
}

fn check(evidence: &Evidence<'_>) -> Finding {
    let history = evidence.history;
    let is_asked = |lock: Lock| {
        let authority = &history.lock(lock).authority;
        evidence.is_exclusive(lock) && matches!(&authority.groups[..], [nodes] if nodes.len() > 1)
    };
    let promises: Vec<_> = evidence.promises.iter().filter(|one| is_asked(one.lock)).cloned().collect();
    let beliefs: Vec<_> = evidence.beliefs.iter().filter(|one| is_asked(one.lock)).cloned().collect();
    let (granted, believed) = (overlaps(&promises), overlaps(&beliefs));
    let windows: Vec<Option<Window>> = granted.iter().map(|overlap| window(history, overlap)).collect();
    let is_explained = |lock: Lock, owners: [_; 2], from: True, until: True| {
        granted.iter().zip(&windows).any(|(grant, window)| {
            let of = [grant.first.owner, grant.second.owner];
            let same = of == owners || of == [owners[1], owners[0]];
            window.is_some() && grant.first.lock == lock && same && grant.from <= until && from <= grant.until
        })
    };
    let alone: Vec<_> = believed
        .iter()
        .filter(|both| {
            let owners = [both.first.owner, both.second.owner];
            !is_explained(both.first.lock, owners, both.from, both.until)
        })
        .collect();
    let count = |is: fn(Window) -> bool| windows.iter().flatten().filter(|window| is(**window)).count();
    let lengths = windows.iter().flatten().filter_map(|window| match window {
        Window::TwoMasters(length) => Some(*length),
        _ => None,
    });
    let both_served = lengths.max().unwrap_or_default();
    let counts = [
        ("failover", count(|window| window == Window::Failover)),
        ("two_masters", count(|window| matches!(window, Window::TwoMasters(_)))),
        ("crash", count(|window| window == Window::Crash)),
        ("clock", count(|window| window == Window::Clock)),
    ];
    let unexplained: Vec<_> =
        granted.iter().zip(&windows).filter(|(_, window)| window.is_none()).map(|(grant, _)| grant).collect();
    let verdict = if let Some(overlap) = unexplained.first() {
        let wording = Wording {
            thing: "promise",
            nothing: String::new(),
            both: "were both promised",
            words: words::promise,
        };
        Verdict::Violated { witness: witness(history, overlap, &wording) }
    } else if let Some(overlap) = alone.first() {
        let wording = Wording {
            thing: "belief",
            nothing: String::new(),
            both: "both believed they held",
            words: words::belief,
        };
        Verdict::Violated { witness: witness(history, overlap, &wording) }
    } else if granted.is_empty() {
        evidence.none_at_once(
            &promises,
            "promise",
            "No lock that a group of several nodes decides was granted.",
        )
    } else if let Some(why) = evidence.given_up() {
        Verdict::undecided(why)
    } else {
        let parts = counts.iter().filter(|(_, count)| *count > 0);
        let parts: Vec<String> =
            parts.map(|(name, count)| format!("{} {count}", name.replace('_', " "))).collect();
        Verdict::holds(format!("{}: {}.", words::many(granted.len(), "double grant"), parts.join(", ")))
    };
    let mut measures: Vec<Measure> =
        counts.iter().map(|(name, count)| Measure::count(name, *count as u64)).collect();
    measures.push(Measure::count("unexplained", (unexplained.len() + alone.len()) as u64));
    measures.push(Measure::time("both_served", both_served));
    WINDOWS.finding(verdict, measures)
}

/// Why the second of two owners was granted the lock; `None` if nothing explains it.
fn window(history: &History, overlap: &Overlap<'_, Promise>) -> Option<Window> {
    let (first, second, at) = (overlap.first, overlap.second, overlap.from);
    let group = &history.lock(first.lock).authority;
    let events = &history.events;
    let begin = events.partition_point(|event| event.at < first.from);
    let end = events.partition_point(|event| event.at <= at);
    let about = |number: &usize, of: &Promise| {
        let event = &events[*number];
        event.kind.hold() == Some((of.lock, of.owner, of.mode)) && group.group_of(event.host).is_some()
    };
    let grants = |number: &usize| {
        matches!(events[*number].kind, EventKind::Granted { .. } | EventKind::Extended { .. })
    };
    let granting =
        (begin..end).find(|number| events[*number].at == at && about(number, second) && grants(number))?;
    let here = events[granting].host;
    let lacks = |numbers: std::ops::Range<usize>, node: Host| {
        numbers.into_iter().any(|number| ends_service(&events[number], first.lock, node))
    };
    // What became of a grant by another node that this one never had.
    let elsewhere = || {
        let is_other = |number: &usize| events[*number].host != here;
        let granted =
            (begin..end).rfind(|number| about(number, first) && grants(number) && is_other(number))?;
        let other = events[granted].host;
        let served = (0..end).rfind(|number| begins_service(&events[*number], first.lock, here));
        let taken = (granted..end).rfind(|number| about(number, first) && events[*number].host == other);
        if taken.is_some_and(|taken| is_taken(&events[taken]) && served.is_some_and(|served| taken < served))
        {
            // It was gone before this node had anything to lose.
            return None;
        }
        let both = || Window::TwoMasters(both_served(history, first.lock, [here, other], end));
        Some(if lacks(granted..end, other) { Window::Failover } else { both() })
    };
    let last = (begin..end).rfind(|number| about(number, first) && events[*number].host == here);
    let Some(last) = last else { return elsewhere() };
    match events[last].kind {
        EventKind::Vanished { how: LossCause::Crash, .. } => Some(Window::Crash),
        EventKind::Vanished { how: LossCause::Failover, .. } => elsewhere().or(Some(Window::Failover)),
        EventKind::Vanished { how: LossCause::Expired, .. } => {
            let shown = history.clock(here).reading(ClockId::Wall, events[last].at);
            let expiries = (0..last).rev().filter(|number| about(number, first));
            let mut expiries = expiries.filter_map(|number| Some((number, expiry(&events[number])?)));
            let (set, (until, lease)) = expiries.next()?;
            if shown >= until.as_nanos() {
                return (events[last].at.since(events[set].at) < lease).then_some(Window::Clock);
            }
            if !expiries.any(|(_, (until, _))| shown >= until.as_nanos()) {
                return None;
            }
            let crashed = |number: usize| {
                let event = &events[number];
                event.host == here && matches!(event.kind, EventKind::Life { life: Life::Crashed })
            };
            if events[set].host == here && (set..last).any(crashed) {
                Some(Window::Crash)
            } else {
                elsewhere()
            }
        }
        EventKind::Vanished { .. } => None,
        _ => lacks(last..granting, here).then_some(Window::Failover),
    }
}

/// Whether a hold was taken from its owner on the master, so that no replica has it either.
fn is_taken(event: &Event) -> bool {
    match event.kind {
        EventKind::Vanished { how, .. } => {
            !matches!(how, LossCause::Expired | LossCause::Crash | LossCause::Failover)
        }
        _ => false,
    }
}

/// The expiry that an event has set on a hold, and after how much time.
fn expiry(event: &Event) -> Option<(Wall, Duration)> {
    match event.kind {
        EventKind::Granted { until, lease_ms, .. }
        | EventKind::Extended { until, lease_ms, .. }
        | EventKind::Released { until, lease_ms, .. } => {
            Some((until?, Duration::from_millis(lease_ms.unwrap_or(0))))
        }
        _ => None,
    }
}

/// Whether a node is a master of a lock from an event on.
fn begins_service(event: &Event, lock: Lock, node: Host) -> bool {
    event.host == node
        && match event.kind {
            EventKind::Became { role: Role::Master } => true,
            EventKind::Serves { lock: of, how } => of == lock && how.answers(),
            _ => false,
        }
}

/// Whether a node is no master of a lock any more from an event on.
fn ends_service(event: &Event, lock: Lock, node: Host) -> bool {
    event.host == node
        && match event.kind {
            EventKind::Became { role: Role::Replica } | EventKind::Life { life: Life::Crashed } => true,
            EventKind::Serves { lock: of, how } => of == lock && !how.answers(),
            _ => false,
        }
}

/// For how long two nodes were masters of a lock that both were right before the event `now`. One of which it was never said that it became
/// one was one from the beginning.
fn both_served(history: &History, lock: Lock, nodes: [Host; 2], now: usize) -> Duration {
    let begins = |node: Host| {
        let became = history.events[..now].iter().rfind(|event| begins_service(event, lock, node));
        became.map_or(True::ZERO, |event| event.at)
    };
    let ends = |node: Host| {
        let over = history.events[now..].iter().find(|event| ends_service(event, lock, node));
        over.map_or(history.header.end, |event| event.at)
    };
    let [here, other] = nodes;
    ends(here).min(ends(other)).since(begins(here).max(begins(other)))
}

#[cfg(test)]
mod tests {
    use crate::{
        checker::tests::{explained, first_line},
        history::{LockKind, LossCause, Role, story::Story},
    };

    fn group() -> Story {
        Story::failover(LockKind::Exclusive).at(0).became("m", Role::Master).became("r", Role::Replica)
    }

    /// C1 is granted the lock by `m` for 30 s, and `r` is promoted after 10 s without it.
    fn promoted() -> Story {
        group()
            .at(2)
            .granted("m", "c1", 30_000)
            .at(10_000)
            .fault("r was promoted", &["r"])
            .became("r", Role::Master)
            .vanished("r", "c1", LossCause::Failover)
    }

    #[test]
    fn explanations() {
        let stories = [
            (
                "the master crashed before the replica had it",
                promoted_after_a_crash().at(11_000).granted("r", "c2", 30_000).ends(50_000),
            ),
            (
                "the old master takes writes for ten seconds more",
                promoted()
                    .at(11_000)
                    .granted("r", "c2", 30_000)
                    .at(20_000)
                    .became("m", Role::Replica)
                    .ends(50_000),
            ),
            (
                "granted by the old master after the promotion",
                group()
                    .at(1_000)
                    .became("r", Role::Master)
                    .at(2_000)
                    .granted("m", "c1", 30_000)
                    .at(3_000)
                    .granted("r", "c2", 30_000)
                    .ends(50_000),
            ),
            (
                "it came back without it",
                group()
                    .at(2)
                    .granted("m", "c1", 30_000)
                    .at(1_000)
                    .vanished("m", "c1", LossCause::Crash)
                    .at(1_001)
                    .granted("m", "c2", 30_000)
                    .ends(50_000),
            ),
            (
                "its wall clock jumped",
                group()
                    .at(0)
                    .granted("m", "c1", 30_000)
                    .at(1_000)
                    .clocks("m", [32_000, 1_000, 1_000], [0; 3])
                    .at(1_001)
                    .vanished("m", "c1", LossCause::Expired)
                    .granted("m", "c2", 30_000)
                    .ends(50_000),
            ),
            (
                "it expired before its time by a clock that was right",
                group()
                    .at(0)
                    .granted("m", "c1", 30_000)
                    .at(1_001)
                    .vanished("m", "c1", LossCause::Expired)
                    .granted("m", "c2", 30_000)
                    .ends(50_000),
            ),
            (
                "another client deleted it",
                group()
                    .at(2)
                    .granted("m", "c1", 30_000)
                    .at(1_000)
                    .deleted("m", "c1", "c3")
                    .granted("m", "c2", 30_000)
                    .ends(50_000),
            ),
            (
                "one node granted both",
                group().at(2).granted("m", "c1", 30_000).at(1_000).granted("m", "c2", 30_000).ends(50_000),
            ),
            (
                "believed for longer than it was promised",
                group()
                    .at(2)
                    .locks("c1", "m", 1_000)
                    .believes("c1", 5_000)
                    .at(2_000)
                    .locks("c2", "m", 1_000)
                    .ends(9_000),
            ),
            (
                "one after the other",
                group()
                    .at(0)
                    .locks("c1", "m", 1_000)
                    .at(500)
                    .unlocks("c1", "m")
                    .at(500)
                    .locks("c2", "m", 1_000)
                    .ends(3_000),
            ),
            (
                "it came back with an older hold, which expired",
                group()
                    .at(0)
                    .granted("m", "c1", 5_000)
                    .at(1_000)
                    .released("m", "c1")
                    .became("m", Role::Replica)
                    .became("r", Role::Master)
                    .at(4_000)
                    .granted("r", "c1", 30_000)
                    .at(4_500)
                    .became("r", Role::Replica)
                    .became("m", Role::Master)
                    .at(5_001)
                    .vanished("m", "c1", LossCause::Expired)
                    .at(6_000)
                    .granted("m", "c2", 30_000)
                    .ends(50_000),
            ),
            (
                "it followed another node, and was promoted again",
                promoted()
                    .at(11_000)
                    .became("m", Role::Replica)
                    .at(12_000)
                    .became("m", Role::Master)
                    .at(13_000)
                    .granted("m", "c2", 30_000)
                    .ends(50_000),
            ),
            (
                "deleted on the master, and then a failover",
                group()
                    .at(2)
                    .granted("m", "c1", 30_000)
                    .at(3_000)
                    .deleted("m", "c1", "c3")
                    .at(4_000)
                    .life("m", crate::history::Life::Crashed)
                    .at(6_000)
                    .became("r", Role::Master)
                    .at(7_000)
                    .granted("r", "c2", 30_000)
                    .ends(50_000),
            ),
            (
                "another client shortened the lease",
                group()
                    .at(0)
                    .granted("m", "c1", 30_000)
                    .at(1_000)
                    .extended_by("m", "c1", 2_000, "c3")
                    .at(3_001)
                    .vanished("m", "c1", LossCause::Expired)
                    .granted("m", "c2", 30_000)
                    .ends(50_000),
            ),
            (
                "it came back from a crash with the expiry before the renewal",
                group()
                    .at(10_000)
                    .granted("m", "c1", 6_000)
                    .at(12_000)
                    .extended("m", "c1", 6_000)
                    .at(12_200)
                    .life("m", crate::history::Life::Crashed)
                    .at(12_700)
                    .life("m", crate::history::Life::Started)
                    .at(16_001)
                    .vanished("m", "c1", LossCause::Expired)
                    .granted("m", "c2", 30_000)
                    .ends(50_000),
            ),
            ("one node has no window", Story::one_node().at(0).locks("c1", "m", 1_000).ends(3_000)),
        ];
        insta::assert_snapshot!(explained("windows", &stories));
    }

    fn promoted_after_a_crash() -> Story {
        group()
            .at(2)
            .granted("m", "c1", 30_000)
            .at(9_000)
            .life("m", crate::history::Life::Crashed)
            .at(10_000)
            .became("r", Role::Master)
            .vanished("r", "c1", LossCause::Failover)
    }

    /// From the promotion of the one to the end of the other, and not only while the second hold lasted.
    #[test]
    fn two_masters_are_measured_from_promotion_to_demotion() {
        let story = promoted().at(11_000).granted("r", "c2", 1_000).at(20_000).became("m", Role::Replica);
        let found = first_line("windows", &story.ends(50_000));
        assert_eq!(found, "holds failover=0 two_masters=1 crash=0 clock=0 unexplained=0 both_served=10s");
    }
}
