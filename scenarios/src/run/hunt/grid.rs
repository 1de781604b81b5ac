//! All placements of one fault in a run, and those among them that need no run of their own.

use std::time::Duration;

use lockstorm_world::time::True;
use serde::Serialize;

use super::{
    latencies::Latencies,
    moments::{Arrival, Message, Moments, TIMER},
    order::arrange,
    place::{BESIDE, Cost, Mark, Placement, What},
    sizes::Sizes,
};
use crate::file::{
    plan::Phases,
    scenario::{Hunt, HuntedKind},
};

/// The numbers of placements left out, by the reason why each equals another one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// The host does nothing between this start and one before, and no other host anything that is
    /// recorded. So a step of the host's clock has the same effect at both.
    pub same_gap: u64,
    /// Nothing happens that the fault would prevent: the host's software does not run during a
    /// pause, no message arrives over a cut link.
    pub unseen: u64,
    /// The end of the storm ends the fault at the same instant as a shorter one.
    pub same_end: u64,
    /// A second fault begins after the first one, whose run is in the same state then as another
    /// run.
    pub same_state: u64,
}

impl LeftOut {
    /// Returns the number of all placements left out.
    pub fn all(&self) -> u64 {
        self.same_gap + self.unseen + self.same_end + self.same_state
    }

    pub(super) fn add(&mut self, more: &LeftOut) {
        self.same_gap += more.same_gap;
        self.unseen += more.unseen;
        self.same_end += more.same_end;
        self.same_state += more.same_state;
    }
}

/// The limits of a search: the kinds, hosts and sizes of its faults.
#[derive(Debug)]
pub(super) struct Bounds {
    pub(super) hunt: Hunt,
    /// The hosts that faults may hit.
    pub(super) hosts: Vec<String>,
    /// Those of them whose timers are instants only if the file says so: nodes and Sentinels.
    pub(super) servers: Vec<String>,
    /// Those of them that are replicas at the start, outside a cluster.
    pub(super) replicas: Vec<String>,
    pub(super) sizes: Sizes,
    pub(super) latencies: Latencies,
    pub(super) phases: Phases,
    /// True to leave nothing out.
    pub(super) brute: bool,
}

/// The placements of one fault in one run.
#[derive(Debug, Default)]
pub(super) struct Grid {
    /// The placements to run.
    pub(super) run: Vec<Placement>,
    /// The placements that change nothing in this run, but could together with another fault.
    pub(super) dormant: Vec<Placement>,
    /// The placements that equal another one in every run.
    pub(super) twins: Vec<Placement>,
    pub(super) left_out: LeftOut,
}

/// The reason why a placement equals an earlier one of the grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Same {
    /// The host of the fault does nothing between the two starts.
    Gap,
    /// Both placements end at the same instant.
    End,
}

/// Takes a placement.
type Add<'a> = &'a mut dyn FnMut(Placement, Option<Same>);

/// An instant at which a fault may begin.
struct Start {
    at: True,
    mark: Mark,
    is_before: bool,
    /// True if the host does nothing between the start before and this one.
    is_twin: bool,
}

/// The first fault of a run, for the placements of a second one.
#[derive(Debug, Clone, Copy)]
pub(super) struct First<'a> {
    pub(super) placement: &'a Placement,
    /// The latest start of a second fault, if the run is in the state of another one later.
    pub(super) until: Option<True>,
    /// The placements that change nothing in the run without faults.
    pub(super) dormant: &'a [Placement],
}

impl Bounds {
    /// Returns the placements of one fault in a run without faults, or of a second fault beside the
    /// first one. A second fault does not begin before the first.
    pub(super) fn grid(&self, moments: &Moments, first: Option<First<'_>>) -> Grid {
        let mut grid = Grid::default();
        let mut add = |placement: Placement, same: Option<Same>| {
            if first.is_some_and(|first| placement.key() <= first.placement.key()) {
                return;
            }
            let left_out = &mut grid.left_out;
            if same == Some(Same::End) {
                left_out.same_end += 1;
            } else if self.brute {
                grid.run.push(placement);
            } else if same == Some(Same::Gap) {
                left_out.same_gap += 1;
                grid.twins.push(placement);
            } else if !moments.is_seen(&placement) {
                left_out.unseen += 1;
                grid.dormant.push(placement);
            } else if first.and_then(|first| first.until).is_some_and(|until| placement.at > until) {
                left_out.same_state += 1;
            } else {
                grid.run.push(placement);
            }
        };
        for kind in &self.hunt.kinds {
            match kind {
                HuntedKind::Cut => self.cuts(moments, &mut add),
                HuntedKind::Reorder => self.reorders(moments, first, &mut add),
                kind => {
                    let hosts = if *kind == HuntedKind::Promote { &self.replicas } else { &self.hosts };
                    for host in hosts {
                        let starts =
                            self.starts(moments.of_host(host), self.skips_timers(host), |from, until| {
                                moments.is_quiet(host, from, until)
                            });
                        self.of_host(*kind, host, &starts, &mut add);
                    }
                }
            }
        }
        if let Some(First { placement, dormant, .. }) = first {
            // A fault that changes nothing alone may change something in this run, if the other one
            // begins while it lasts.
            let covers = |one: &&Placement| one.at <= placement.at && placement.at <= one.ends;
            grid.run.extend(dormant.iter().filter(covers).filter(|one| moments.is_seen(one)).cloned());
        }
        arrange(&mut grid.run, &self.servers);
        grid
    }

    /// Returns the latest start of a fault.
    fn latest(&self) -> True {
        self.hunt.latest.map_or(self.phases.storm_ends, |latest| True::ZERO + latest.0)
    }

    fn skips_timers(&self, host: &str) -> bool {
        !self.hunt.timers && self.servers.iter().any(|server| server == host)
    }

    /// Returns the instants just before and just after each event.
    fn starts(
        &self,
        instants: impl Iterator<Item = (True, Mark)>,
        skips_timers: bool,
        is_quiet: impl Fn(True, True) -> bool,
    ) -> Vec<Start> {
        let latest = self.latest();
        let mut starts: Vec<Start> = Vec::new();
        let mut add = |at: True, mark: Mark, is_before: bool| {
            let last = starts.last().map(|last| last.at);
            if at <= latest && last.is_none_or(|last| last < at) {
                let is_twin = last.is_some_and(|last| is_quiet(last, at));
                starts.push(Start { at, mark, is_before, is_twin });
            }
        };
        for (at, mark) in instants.filter(|(_, mark)| !(skips_timers && mark.rank == TIMER)) {
            if at > True::ZERO {
                add(True::from_nanos(at.as_nanos() - BESIDE.as_nanos() as i64), mark, true);
            }
            add(at + BESIDE, mark, false);
        }
        starts
    }

    /// Passes the placements of one kind on a host.
    fn of_host(&self, kind: HuntedKind, host: &str, starts: &[Start], add: Add<'_>) {
        let sizes = self.sizes.up_to(kind, &self.hunt);
        let host = || host.to_owned();
        for start in starts {
            let Start { at, mark, is_before, is_twin } = *start;
            let what = match kind {
                HuntedKind::Restart | HuntedKind::Promote => {
                    // The software times its work from then on: two starts never equal.
                    let cost = Cost { mark, is_before, size: 0 };
                    let restarts = kind == HuntedKind::Restart;
                    let what = if restarts {
                        What::Restart { host: host() }
                    } else {
                        What::Promote { host: host() }
                    };
                    add(Placement { at, what, ends: at, cost }, None);
                    continue;
                }
                HuntedKind::ClockStep => {
                    let same = is_twin.then_some(Same::Gap);
                    for (size, by) in (0..).zip(&sizes) {
                        let by = i64::try_from(by.as_nanos()).unwrap_or(i64::MAX);
                        for by in [by, -by] {
                            let what = What::ClockStep { host: host(), by };
                            add(Placement { at, what, ends: at, cost: Cost { mark, is_before, size } }, same);
                        }
                    }
                    continue;
                }
                HuntedKind::Pause => What::Pause { host: host() },
                HuntedKind::Suspend => What::Suspend { host: host() },
                HuntedKind::Crash => What::Crash { host: host() },
                HuntedKind::Cut | HuntedKind::Reorder => return,
            };
            self.sized(&what, start, &sizes, add);
        }
    }

    /// Passes the cuts between every two hosts that exchange packets.
    fn cuts(&self, moments: &Moments, add: Add<'_>) {
        let sizes = self.sizes.up_to(HuntedKind::Cut, &self.hunt);
        for (one, other) in moments.pairs() {
            if !self.hosts.iter().any(|host| host == one || host == other) {
                continue;
            }
            let starts = self.starts(moments.of_pair(one, other).into_iter(), false, |_, _| false);
            for start in &starts {
                for (from, to, one_way) in [(one, other, false), (one, other, true), (other, one, true)] {
                    let what = What::Cut { from: from.to_owned(), to: to.to_owned(), one_way };
                    self.sized(&what, start, &sizes, add);
                }
            }
        }
    }

    /// Passes the messages that can come later than something else at their receiver: for each of
    /// both, one placement, in which the message comes a nanosecond after it. A message that is
    /// late by the first fault comes no later by a second one.
    fn reorders(&self, moments: &Moments, first: Option<First<'_>>, add: Add<'_>) {
        let is_late = |message: &Message<'_>| {
            let late = first.map(|first| first.placement);
            late.is_some_and(|late| match &late.what {
                What::Reorder { from, to, .. } => {
                    from == message.from && to == message.to && late.at + BESIDE == message.sent
                }
                _ => false,
            })
        };
        for message in moments.messages().filter(|message| !is_late(message)) {
            let Message { from, to, sent, arrival: Arrival { drawn, .. } } = message;
            let is_meant = self.hosts.iter().any(|host| host == from || host == to);
            if !is_meant || sent == True::ZERO || sent > (self.latest() + BESIDE).min(self.phases.storm_ends)
            {
                continue;
            }
            let at = True::from_nanos(sent.as_nanos() - BESIDE.as_nanos() as i64);
            let mark = moments.mark_of(&message);
            let until = self.latencies.latest_arrival(&message, self.hunt.reorder);
            let later = moments.inputs(&message, until, self.skips_timers(to));
            for (size, input) in (0..).zip(later) {
                let by = (input + BESIDE).since(drawn).as_nanos() as i64;
                let what = What::Reorder { from: from.to_owned(), to: to.to_owned(), by };
                let cost = Cost { mark, is_before: true, size };
                add(Placement { at, what, ends: sent + BESIDE, cost }, None);
            }
        }
    }

    /// Passes the placements of a lasting fault at a start, one for each size.
    fn sized(&self, what: &What, start: &Start, sizes: &[Duration], add: Add<'_>) {
        let mut last = None;
        for (size, length) in (0..).zip(sizes) {
            // The director ends every fault with the storm.
            let ends = (start.at + *length).min(self.phases.storm_ends.max(start.at));
            let same = (last.replace(ends) == Some(ends)).then_some(Same::End);
            let cost = Cost { mark: start.mark, is_before: start.is_before, size };
            add(Placement { at: start.at, what: what.clone(), ends, cost }, same);
        }
    }
}

#[cfg(test)]
mod tests {
    use lockstorm_world::TraceRetention;

    use super::{super::Search, *};
    use crate::{
        file::scenario::{Scenario, parse},
        units::Span,
    };

    #[test]
    fn all_counts_the_placements_of_each_reason() {
        let one = LeftOut { same_gap: 3, unseen: 5, same_end: 7, same_state: 11 };
        assert_eq!(one.all(), 26);
    }

    /// A client that holds a lock from the first second on, and the limits of hunts for its faults.
    fn scenario() -> Scenario {
        let text = "[node.m]\n[network]\nlatency = \"1ms\"\n[lock]\nsubject = \"token-lock\"\nlease = \"1s\"\n\
                    [client.c]\nsteps = [{ at = \"1s\", try_acquire = {} }, { at = \"1.5s\", release = {} }]\n\
                    [run]\nstorm = \"4s\"\nprobe = false\n[hunt]\nkinds = [\"pause\"]\npause = \"..600ms\"";
        let source = parse("grid.toml", text).unwrap_or_else(|error| panic!("{error}"));
        source.variants[0].scenario.clone()
    }

    const fn ns(at: i64) -> True {
        True::from_nanos(at)
    }

    /// Events at these instants, of which one is a timer. No fault begins after the latest instant
    /// of the file.
    #[test]
    fn a_fault_begins_a_nanosecond_before_or_after_an_event() {
        let scenario = scenario();
        let mut bounds = Search::new(&scenario, 0).bounds();
        let rank = |rank| Mark { rank, ..Mark::default() };
        let events = [0, 100, 101, 103, 200].map(|at| (ns(at), rank(if at == 200 { TIMER } else { 0 })));
        let starts = |bounds: &Bounds, skips_timers| {
            let starts = bounds.starts(events.into_iter(), skips_timers, |_, _| false);
            starts.iter().map(|one| (one.at.as_nanos(), one.is_before)).collect::<Vec<_>>()
        };
        let (before, after) = (true, false);
        // One instant is both before an event and after another: it is a start once.
        let recorded = [(1, after), (99, before), (101, after), (102, after), (104, after)];
        assert_eq!(starts(&bounds, true), recorded);
        let with_timer = [&recorded[..], &[(199, before), (201, after)]].concat();
        assert_eq!(starts(&bounds, false), with_timer);
        for (latest, number) in [(199, 6), (200, 6), (201, 7)] {
            bounds.hunt.latest = Some(Span(Duration::from_nanos(latest)));
            assert_eq!(starts(&bounds, false), with_timer[..number], "up to {latest} ns");
        }
    }

    /// The host does nothing from 102 to 299.
    #[test]
    fn two_starts_without_an_event_in_between_are_twins() {
        let scenario = scenario();
        let bounds = Search::new(&scenario, 0).bounds();
        let events = [101, 300].map(|at| (ns(at), Mark::default()));
        let is_quiet = |from, until| ns(101) < from && until < ns(300);
        let starts = bounds.starts(events.into_iter(), false, is_quiet);
        let twins: Vec<_> = starts.iter().map(|one| (one.at.as_nanos(), one.is_twin)).collect();
        assert_eq!(twins, [(100, false), (102, false), (299, true), (301, false)]);
    }

    /// The storm ends at 4 s, and every fault with it. One that begins later ends as it begins.
    #[test]
    fn a_fault_that_the_storm_ends_equals_a_shorter_one_that_it_ends_as_well() {
        let scenario = scenario();
        let bounds = Search::new(&scenario, 0).bounds();
        let ms = True::from_millis;
        let sizes = [2_000, 1_000, 999].map(Duration::from_millis);
        for (at, expected) in [
            (1_000, [(3_000, None), (2_000, None), (1_999, None)]),
            (3_000, [(4_000, None), (4_000, Some(Same::End)), (3_999, None)]),
            (3_500, [(4_000, None), (4_000, Some(Same::End)), (4_000, Some(Same::End))]),
            (4_001, [(4_001, None), (4_001, Some(Same::End)), (4_001, Some(Same::End))]),
        ] {
            let start = Start { at: ms(at), mark: Mark::default(), is_before: true, is_twin: false };
            let mut ends = Vec::new();
            let what = What::Crash { host: "c".into() };
            bounds.sized(&what, &start, &sizes, &mut |one, same| ends.push((one.ends.as_millis(), same)));
            assert_eq!(ends, expected, "from {at} ms");
        }
    }

    /// Every placement is run or counted by the reason why it is not.
    #[test]
    fn a_second_fault_begins_after_the_first_and_before_the_run_is_that_of_another() {
        let scenario = scenario();
        let search = Search::new(&scenario, 0);
        let (_, outcome) = search.play(&[], TraceRetention::All);
        let moments = Moments::of(&outcome);
        let bounds = search.bounds();
        let alone = bounds.grid(&moments, None);
        let whole = Bounds { brute: true, ..search.bounds() }.grid(&moments, None);
        let left_out = LeftOut { unseen: alone.dormant.len() as u64, ..LeftOut::default() };
        assert_eq!(alone.left_out, left_out);
        assert_eq!(whole.left_out, LeftOut::default());
        assert_eq!(whole.run.len(), alone.run.len() + alone.dormant.len());
        assert!(!alone.run.is_empty() && !alone.dormant.is_empty());

        let mut all = alone.run.clone();
        all.sort_by(|one, other| one.key().cmp(&other.key()));
        let (first, last) = (&all[all.len() / 2], all[all.len() - 1].at);
        let second = |until| bounds.grid(&moments, Some(First { placement: first, until, dormant: &[] }));
        let later: Vec<&Placement> = all.iter().filter(|one| one.key() > first.key()).collect();
        assert!(later.len() > 1);
        for until in [None, Some(last), Some(first.at), Some(True::from_nanos(last.as_nanos() - 1))] {
            let grid = second(until);
            let in_time = later.iter().filter(|one| until.is_none_or(|until| one.at <= until)).count();
            assert_eq!(grid.run.len(), in_time, "{until:?}");
            assert_eq!(grid.left_out.same_state as usize, later.len() - in_time, "{until:?}");
        }
    }

    /// A pause that holds nothing up in the run without faults is tried beside a fault that begins
    /// while it lasts, if it holds something up then.
    #[test]
    fn a_fault_without_effect_is_tried_beside_one_that_begins_meanwhile() {
        let scenario = scenario();
        let search = Search::new(&scenario, 0);
        let (_, outcome) = search.play(&[], TraceRetention::All);
        let (moments, bounds) = (Moments::of(&outcome), search.bounds());
        let at = moments.of_host("c").map(|(at, _)| at).nth(1).expect("the client does something");
        let pause = |from: True, ends| {
            let what = What::Pause { host: "c".into() };
            Placement { at: from, what, ends, cost: Cost::default() }
        };
        let end = True::from_millis(3_999);
        for (pause, is_tried) in [
            (pause(at, end), true),
            (pause(ns(at.as_nanos() + 1), end), false),
            (pause(ns(at.as_nanos() - 1), end), true),
            (pause(ns(0), at), true),
            (pause(ns(0), ns(at.as_nanos() - 1)), false),
        ] {
            assert!(moments.is_seen(&pause) || !is_tried, "{pause}");
            // The last of the grid: no other one begins later.
            let what = What::Restart { host: "m".into() };
            let first = Placement { at, what, ends: at, cost: Cost::default() };
            let grid = |dormant: &[Placement]| {
                let first = First { placement: &first, until: Some(ns(0)), dormant };
                bounds.grid(&moments, Some(first)).run.len()
            };
            assert_eq!(grid(std::slice::from_ref(&pause)) > grid(&[]), is_tried, "{pause}");
        }
    }
}
