//! The order in which placements are tried: near good outcomes first, and spread over kinds of
//! faults, hosts and time.

use std::collections::BTreeMap;

use lockstorm_world::time::True;

use super::place::{Cost, Placement, What};

/// The faults of one kind on one host, or on one link in one direction, or the steps of a clock in
/// one direction: those of the largest size, or all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Kin<'a> {
    is_smaller: bool,
    kind: Kind,
    is_server: bool,
    hosts: (&'a str, &'a str),
}

/// A kind of fault, the likeliest to violate something first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Pause,
    Cut,
    StepBack,
    StepForward,
    Crash,
    Promote,
    Restart,
    CutOneWay,
    Suspend,
    Reorder,
}

/// The distance of a placement from a good outcome: the rank of its instant, false if it is on the
/// likelier side of the event, and the messages between the event and the outcome.
type Distance = (u8, bool, u8);

/// The placements of one kin by distance, each as its instant, its size and its index.
type Members = BTreeMap<Distance, Vec<(True, u32, usize)>>;

/// Sorts placements. Those in the chains of good outcomes come first. Among them, the placements of
/// one kin take turns with those of the others, the nearest to an outcome first.
pub(super) fn arrange(all: &mut Vec<Placement>, servers: &[String]) {
    let mut kin: BTreeMap<Kin<'_>, Members> = BTreeMap::new();
    for (index, placement) in all.iter().enumerate() {
        let of = kin.entry(Kin::of(placement, servers)).or_default();
        let alike = of.entry(distance(placement)).or_default();
        alike.push((placement.at, placement.cost.size, index));
    }
    let mut order: Vec<(u8, usize, Kin<'_>, usize)> = Vec::new();
    for (of, members) in kin {
        let mut turn = 0;
        for ((rank, ..), mut alike) in members {
            alike.sort_unstable();
            for index in spread(alike.len()) {
                turn += 1;
                order.push((rank, turn * of.period(), of, alike[index].2));
            }
        }
    }
    order.sort_unstable();
    let order: Vec<usize> = order.into_iter().map(|(.., index)| index).collect();
    *all = order.into_iter().map(|index| all[index].clone()).collect();
}

impl<'a> Kin<'a> {
    fn of(placement: &'a Placement, servers: &[String]) -> Kin<'a> {
        let (kind, hosts) = match &placement.what {
            What::Pause { host } => (Kind::Pause, (&**host, "")),
            What::Suspend { host } => (Kind::Suspend, (&**host, "")),
            What::Crash { host } => (Kind::Crash, (&**host, "")),
            What::Restart { host } => (Kind::Restart, (&**host, "")),
            What::Promote { host } => (Kind::Promote, (&**host, "")),
            What::Cut { from, to, one_way: false } => (Kind::Cut, (&**from, &**to)),
            What::Cut { from, to, one_way: true } => (Kind::CutOneWay, (&**from, &**to)),
            What::Reorder { from, to, .. } => (Kind::Reorder, (&**from, &**to)),
            What::ClockStep { host, by: ..0 } => (Kind::StepBack, (&**host, "")),
            What::ClockStep { host, .. } => (Kind::StepForward, (&**host, "")),
        };
        let is_server = servers.iter().any(|server| server == hosts.0);
        Kin { is_smaller: placement.cost.size > 0, kind, is_server, hosts }
    }

    /// Returns the number of rounds from one turn to the next. A cut in one direction does little
    /// that a cut in both does not, and a suspension little that a pause does not.
    fn period(self) -> usize {
        let is_rare = matches!(self.kind, Kind::CutOneWay | Kind::Suspend);
        if is_rare || self.is_smaller { 2 } else { 1 }
    }
}

/// A host that is stopped, or whose clock jumps, between a grant and the use of what was granted is
/// likelier to go wrong than one that is stopped before the grant or after the use. A cut that
/// begins before a message arrives holds it back.
fn distance(placement: &Placement) -> Distance {
    let Cost { mark, is_before, .. } = placement.cost;
    let is_likely = match placement.what {
        What::Cut { .. } | What::Reorder { .. } => is_before,
        _ => is_before == mark.is_use,
    };
    (mark.rank, !is_likely, mark.hops)
}

/// Returns the numbers below a limit, each far from those just before: 0, 4, 2, 6, 1, 5, 3, 7.
fn spread(limit: usize) -> impl Iterator<Item = usize> {
    let bits = limit.next_power_of_two().trailing_zeros();
    let reversed = move |number: usize| number.reverse_bits().checked_shr(usize::BITS - bits).unwrap_or(0);
    (0..limit.next_power_of_two()).map(reversed).filter(move |number| *number < limit)
}

#[cfg(test)]
mod tests {
    use super::{super::place::Mark, *};

    fn pause(host: &str, at: i64, hops: u8) -> Placement {
        let at = True::from_nanos(at);
        let cost = Cost { mark: Mark { hops, ..Mark::default() }, ..Cost::default() };
        Placement { at, what: What::Pause { host: host.to_owned() }, ends: at, cost }
    }

    #[test]
    fn each_host_has_a_turn_before_another_has_its_second() {
        let crash = Placement { what: What::Crash { host: "m".to_owned() }, ..pause("m", 9, 0) };
        let mut all = vec![
            pause("c", 1, 1),
            pause("c", 2, 1),
            pause("c", 3, 0),
            pause("m", 4, 0),
            pause("m", 5, 0),
            crash,
        ];
        all.push(Placement {
            cost: Cost { mark: Mark { rank: 2, ..Mark::default() }, ..all[0].cost },
            ..pause("d", 6, 0)
        });
        arrange(&mut all, &["m".to_owned()]);
        let order: Vec<i64> = all.iter().map(|one| one.at.as_nanos()).collect();
        assert_eq!(order, [3, 4, 9, 1, 5, 2, 6]);
    }

    /// Of two placements at one event the first is the likelier one.
    #[test]
    fn a_fault_is_likely_between_a_grant_and_its_use_and_a_cut_before_a_message_arrives() {
        let (before, after, grant, of_use) = (true, false, false, true);
        let host = || "m".to_owned();
        let pause = What::Pause { host: host() };
        let step = What::ClockStep { host: host(), by: 1 };
        let cut = |one_way| What::Cut { from: "c".to_owned(), to: host(), one_way };
        for (what, outcome, likely) in [
            (pause.clone(), grant, after),
            (pause, of_use, before),
            (step.clone(), grant, after),
            (step, of_use, before),
            (cut(true), grant, before),
            (cut(false), of_use, before),
        ] {
            let of = |is_before| {
                let mark = Mark { rank: 1, hops: 4, is_use: outcome };
                let cost = Cost { mark, is_before, size: 0 };
                distance(&Placement { what: what.clone(), cost, ..pause_at(1) })
            };
            assert_eq!(of(likely), (1, false, 4), "{what:?}");
            assert_eq!(of(!likely), (1, true, 4), "{what:?}");
        }
    }

    fn pause_at(at: i64) -> Placement {
        pause("m", at, 0)
    }

    /// Suspensions, cuts in one direction and smaller sizes have every second turn.
    #[test]
    fn what_rarely_does_more_than_another_has_fewer_turns() {
        let host = || "m".to_owned();
        let cut = |one_way| What::Cut { from: "c".to_owned(), to: host(), one_way };
        let step = |by| What::ClockStep { host: host(), by };
        for (what, size, kind, period) in [
            (What::Pause { host: host() }, 0, Kind::Pause, 1),
            (What::Pause { host: host() }, 1, Kind::Pause, 2),
            (What::Suspend { host: host() }, 0, Kind::Suspend, 2),
            (What::Crash { host: host() }, 0, Kind::Crash, 1),
            (What::Restart { host: host() }, 0, Kind::Restart, 1),
            (What::Promote { host: host() }, 0, Kind::Promote, 1),
            (cut(false), 0, Kind::Cut, 1),
            (cut(true), 0, Kind::CutOneWay, 2),
            (step(-1), 0, Kind::StepBack, 1),
            (step(1), 0, Kind::StepForward, 1),
        ] {
            let placement = Placement { what, cost: Cost { size, ..Cost::default() }, ..pause_at(1) };
            let kin = Kin::of(&placement, &["m".to_owned()]);
            assert_eq!((kin.kind, kin.period()), (kind, period), "{placement}");
            assert_eq!(kin.is_server, !matches!(placement.what, What::Cut { .. }), "the first host decides");
        }
    }

    #[test]
    fn neighbours_are_far_apart() {
        assert_eq!(spread(8).collect::<Vec<_>>(), [0, 4, 2, 6, 1, 5, 3, 7]);
        assert_eq!(spread(3).collect::<Vec<_>>(), [0, 2, 1]);
        assert_eq!((spread(1).count(), spread(0).count()), (1, 0));
    }
}
