//! All placements of one fault in a run, and those among them that need no run of their own.

use std::time::Duration;

use lockstorm_world::time::True;
use serde::Serialize;

use super::{
    latencies::Latencies,
    moments::{Message, Moments, TIMER},
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
                HuntedKind::Reorder => self.reorders(moments, &mut add),
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
    /// both, one placement, in which the message comes a nanosecond after it.
    fn reorders(&self, moments: &Moments, add: Add<'_>) {
        for message in moments.messages() {
            let Message { from, to, sent, due } = message;
            let is_meant = self.hosts.iter().any(|host| host == from || host == to);
            if !is_meant || sent == True::ZERO || sent > self.latest().min(self.phases.storm_ends) {
                continue;
            }
            let at = True::from_nanos(sent.as_nanos() - BESIDE.as_nanos() as i64);
            let mark = moments.mark_of(&message);
            let until = self.latencies.latest_arrival(&message, self.hunt.reorder);
            let later = moments.inputs(&message, until, self.skips_timers(to));
            for (size, input) in (0..).zip(later) {
                let by = (input + BESIDE).since(due).as_nanos() as i64;
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
    use super::*;

    #[test]
    fn all_counts_the_placements_of_each_reason() {
        let one = LeftOut { same_gap: 3, unseen: 5, same_end: 7, same_state: 11 };
        assert_eq!(one.all(), 26);
    }
}
