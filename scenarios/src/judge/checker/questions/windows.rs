//! Does each double grant fall into a known window: one that a failover, a crash or a wall clock
//! opens?
//!
//! The question arises for locks that a group of several nodes decides. When a node grants such a
//! lock to a second owner within the promise to a first one, the fate of the first hold shows the
//! reason:
//!
//! * *crash*: the node came back without the hold, or with an older expiry, which was over first;
//! * *clock*: the hold expired on the node in less true time than the lease that was set last, as
//!   the node's wall clock was ahead;
//! * *two masters*: the node never had the hold (or had an older one of the same owner, which
//!   expired), or was promoted without it, while another node that had granted it was still a
//!   master;
//! * *failover*: the same, but the other node was no longer a master.
//!
//! A node that is promoted records which holds it has lost. It has every hold that it does not
//! record as lost, as its group had it at the promotion, unless its master had lost it before.
//!
//! These are the cases in which Redis and its documentation let acknowledged writes be lost. Any
//! other double grant is a mistake of the lock or of the server: a node has the hold and grants
//! another one, or another client deleted the hold. A belief of two owners that outlasts their
//! double grants is a mistake, too: one of them counted on the lock for longer than it was
//! promised, or by a clock that is slower than the lock allows for.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use crate::judge::{
    checker::{
        Checker,
        decision::{Decided, Decision},
        evidence::{
            Evidence,
            authority::{Service, is_replicated, services},
            belief::Belief,
            double_grant::{DoubleGrant, Window},
            interval::{Overlap, overlaps},
            overlap::{Apart, Both, case},
            promise::Promise,
        },
    },
    history::Lock,
    verdict::{Finding, Measure},
};

pub(in crate::judge::checker) const WINDOWS: Checker = Checker {
    name: "windows",
    question: "Does each double grant of a replicated lock fall into a window that a failover, a crash or a clock opens?",
    measures: &[
        ("failover", "how many double grants came of a failover to a node without the hold"),
        ("two_masters", "how many came of two nodes that were masters at once"),
        ("crash", "how many came of a node that came back without the hold"),
        ("clock", "how many came of a node whose wall clock was beyond the lease"),
        (
            "unexplained",
            "how many came of none of these, and beliefs of two owners without a double grant; in real time, those that are certain",
        ),
        ("both_served", "how long two nodes that both granted were masters at once"),
        (
            "lag",
            "how old the last grant or renewal of a hold that a promoted node did not have was when its master ceased to serve, or at the promotion",
        ),
    ],
    bound: Some(|_| "no `unexplained`; what the other measures count is explained, and passes".to_owned()),
    check,
};

/// The reason of a verdict.
pub(in crate::judge::checker) enum Because {
    Promises(Apart),
    /// The number of double grants, and the number in each window, by the names of the measures.
    Explained {
        grants: usize,
        windows: Vec<(&'static str, usize)>,
    },
}

fn check(evidence: &Evidence<'_>) -> Finding {
    decide(evidence).worded(&WINDOWS, evidence)
}

fn decide(evidence: &Evidence<'_>) -> Decided<Because, Both> {
    let history = evidence.history;
    let is_asked = |lock: Lock| evidence.is_exclusive(lock) && is_replicated(history, lock);
    let promises: Vec<_> = evidence.promises.iter().filter(|one| is_asked(one.lock)).cloned().collect();
    let beliefs: Vec<_> = evidence.beliefs.iter().filter(|one| is_asked(one.lock)).cloned().collect();
    let (granted, believed) = (overlaps(&promises), overlaps(&beliefs));
    let locks: BTreeSet<Lock> = granted.iter().map(|overlap| overlap.first.lock).collect();
    let services: BTreeMap<Lock, Vec<Service>> =
        locks.into_iter().map(|lock| (lock, services(history, lock))).collect();
    let double = |overlap| DoubleGrant::of(history, overlap, &services[&overlap.first.lock]);
    let doubles: Vec<_> = granted.iter().map(double).collect();
    let windows: Vec<Option<Window>> = doubles.iter().map(|double| double.as_ref()?.window()).collect();
    let lag = doubles.iter().flatten().filter_map(DoubleGrant::lag).max().unwrap_or_default();
    let with_reason = |has: bool| -> Vec<_> {
        granted
            .iter()
            .zip(&windows)
            .filter(|(_, window)| window.is_some() == has)
            .map(|(grant, _)| grant)
            .collect()
    };
    let (explained, unexplained) = (with_reason(true), with_reason(false));
    let tolerance = history.header.tolerance();
    let is_covered = |both: &&Overlap<'_, Belief>, by| is_covered(both, &explained, by);
    let alone: Vec<_> = believed.iter().filter(|both| !is_covered(both, Duration::ZERO)).collect();
    let (unsure, unexplained): (Vec<_>, Vec<_>) =
        unexplained.into_iter().partition(|grant| grant.is_within(tolerance));
    let (unsure_alone, alone): (Vec<_>, Vec<_>) =
        alone.into_iter().partition(|both| both.is_within(tolerance) || is_covered(both, tolerance));
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
    let verdict = if let Some(overlap) = unexplained.first() {
        Decision::Violated(case(overlap, Both::Promised))
    } else if let Some(overlap) = alone.first() {
        Decision::Violated(case(overlap, Both::Believed))
    } else if let Some(overlap) = unsure.first() {
        Decision::Unsure(case(overlap, Both::Promised))
    } else if let Some(overlap) = unsure_alone.first() {
        Decision::Unsure(case(overlap, Both::Believed))
    } else if granted.is_empty() {
        evidence.none_at_once(&promises).map(Because::Promises)
    } else if evidence.is_given_up() {
        Decision::GivenUp
    } else {
        let windows = counts.iter().filter(|(_, count)| *count > 0).copied().collect();
        Decision::Holds(Because::Explained { grants: granted.len(), windows })
    };
    let mut measures: Vec<Measure> =
        counts.iter().map(|(name, count)| Measure::count(name, *count as u64)).collect();
    measures.push(Measure::count("unexplained", (unexplained.len() + alone.len()) as u64));
    measures.push(Measure::time("both_served", both_served));
    measures.push(Measure::time("lag", lag));
    Decided { verdict, measures }
}

/// Returns true if two owners that both believed to hold a lock were both granted it during the
/// whole time, given that each double grant is extended by `by` at both ends.
fn is_covered(both: &Overlap<'_, Belief>, granted: &[&Overlap<'_, Promise>], by: Duration) -> bool {
    let owners = |one, other| both.first.owner == one && both.second.owner == other;
    let of_both = |grant: &Overlap<'_, Promise>| {
        let (one, other) = (grant.first.owner, grant.second.owner);
        grant.first.lock == both.first.lock && (owners(one, other) || owners(other, one))
    };
    let mut covered = None;
    // The grants come in the order of their beginnings.
    for grant in granted.iter().filter(|grant| of_both(grant) && grant.until + by >= both.from) {
        if grant.from <= covered.unwrap_or(both.from) + by {
            covered = covered.max(Some(grant.until + by));
        }
    }
    covered.is_some_and(|covered| covered >= both.until)
}

#[cfg(test)]
mod tests {
    use crate::judge::{
        checker::tests::{explained, first_line},
        history::{Life, LockKind, LossCause, Role, story::Story},
    };

    fn group() -> Story {
        Story::failover(LockKind::Exclusive).became("r", Role::Replica)
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
                "the master's hold was deleted before a replica without its last renewal was promoted",
                group()
                    .at(0)
                    .locks("c1", "m", 5_000)
                    .at(1_000)
                    .extended("m", "c1", 30_000)
                    .believes("c1", 30_000)
                    .at(2_000)
                    .deleted("m", "c1", "c3")
                    .at(3_000)
                    .became("r", Role::Master)
                    .at(5_001)
                    .vanished("r", "c1", LossCause::Expired)
                    .at(6_000)
                    .locks("c2", "r", 30_000)
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
                "it followed a node that was promoted with an older hold, which expired, and was promoted again",
                group()
                    .at(0)
                    .granted("m", "c1", 5_000)
                    .at(1_000)
                    .released("m", "c1")
                    .at(1_001)
                    .granted("m", "c1", 30_000)
                    .at(2_000)
                    .became("r", Role::Master)
                    .became("m", Role::Replica)
                    .at(5_001)
                    .vanished("r", "c1", LossCause::Expired)
                    .at(6_000)
                    .became("m", Role::Master)
                    .became("r", Role::Replica)
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
                "promoted with the hold",
                crashed_after_a_grant().became("r", Role::Master).granted("r", "c2", 30_000).ends(50_000),
            ),
            (
                "promoted with the hold, which was over by its clock",
                crashed_after_a_grant()
                    .clocks("r", [40_000, 10_000, 10_000], [0; 3])
                    .became("r", Role::Master)
                    .granted("r", "c2", 30_000)
                    .ends(50_000),
            ),
            (
                "promoted with the hold, which its master went on to renew",
                group()
                    .at(2)
                    .granted("m", "c1", 30_000)
                    .at(10_000)
                    .became("r", Role::Master)
                    .at(11_000)
                    .extended("m", "c1", 30_000)
                    .at(12_000)
                    .granted("r", "c2", 30_000)
                    .ends(50_000),
            ),
            (
                "it came back twice, and lost the hold the first time",
                group()
                    .at(2)
                    .granted("m", "c1", 30_000)
                    .at(1_000)
                    .life("m", Life::Crashed)
                    .at(2_000)
                    .life("m", Life::Started)
                    .vanished("m", "c1", LossCause::Crash)
                    .at(3_000)
                    .life("m", Life::Crashed)
                    .at(4_000)
                    .life("m", Life::Started)
                    .granted("m", "c2", 30_000)
                    .ends(50_000),
            ),
            (
                "a replica lost its copy, and is promoted with the hold",
                group()
                    .at(2)
                    .granted("m", "c1", 30_000)
                    .at(1_000)
                    .vanished("r", "c1", LossCause::Crash)
                    .at(10_000)
                    .life("m", Life::Crashed)
                    .became("r", Role::Master)
                    .granted("r", "c2", 30_000)
                    .ends(50_000),
            ),
            (
                "promoted after its master had lost the hold in a crash",
                crashed_after_a_grant()
                    .life("m", Life::Started)
                    .vanished("m", "c1", LossCause::Crash)
                    .became("r", Role::Master)
                    .became("m", Role::Replica)
                    .granted("r", "c2", 30_000)
                    .ends(50_000),
            ),
            (
                "it came back as the master that it was, beside the promoted one",
                group()
                    .at(1_000)
                    .life("m", Life::Crashed)
                    .at(2_000)
                    .became("r", Role::Master)
                    .granted("r", "c1", 30_000)
                    .at(4_000)
                    .life("m", Life::Started)
                    .granted("m", "c2", 30_000)
                    .at(9_000)
                    .became("m", Role::Replica)
                    .ends(50_000),
            ),
            (
                "believed for longer than both were promised",
                group()
                    .at(2)
                    .locks("c1", "m", 2_000)
                    .believes("c1", 5_000)
                    .at(1_000)
                    .became("r", Role::Master)
                    .vanished("r", "c1", LossCause::Failover)
                    .locks("c2", "r", 30_000)
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
                    .life("m", Life::Crashed)
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
                    .life("m", Life::Crashed)
                    .at(12_700)
                    .life("m", Life::Started)
                    .at(16_001)
                    .vanished("m", "c1", LossCause::Expired)
                    .granted("m", "c2", 30_000)
                    .ends(50_000),
            ),
            (
                "deleted at the master before the promotion, which then had nothing to lose",
                group()
                    .at(2)
                    .granted("m", "c1", 30_000)
                    .at(5_000)
                    .deleted("m", "c1", "c3")
                    .at(10_000)
                    .became("r", Role::Master)
                    .at(11_000)
                    .granted("r", "c2", 30_000)
                    .ends(50_000),
            ),
            ("one node has no window", Story::one_node().at(0).locks("c1", "m", 1_000).ends(3_000)),
        ];
        insta::assert_snapshot!(explained("windows", &stories));
    }

    fn crashed_after_a_grant() -> Story {
        group().at(2).granted("m", "c1", 30_000).at(9_000).life("m", Life::Crashed).at(10_000)
    }

    fn promoted_after_a_crash() -> Story {
        crashed_after_a_grant().became("r", Role::Master).vanished("r", "c1", LossCause::Failover)
    }

    /// The measure runs from the promotion of the one to the end of the other, not only while the
    /// second hold lasted.
    #[test]
    fn two_masters_are_measured_from_promotion_to_demotion() {
        let story = promoted().at(11_000).granted("r", "c2", 1_000).at(20_000).became("m", Role::Replica);
        let found = first_line("windows", &story.ends(50_000));
        assert_eq!(
            found,
            "holds failover=0 two_masters=1 crash=0 clock=0 unexplained=0 both_served=10s lag=9.998s"
        );
    }

    /// The lag runs from the newest write that the promoted node has not received, not from the
    /// first one. It ends with the crash of the master that made the write, not with the promotion,
    /// which comes when the crash is noticed.
    #[test]
    fn replication_lagged_from_the_newest_lost_renewal_to_the_crash_of_its_master() {
        let granted = || group().at(2).granted("m", "c1", 30_000).at(8_990).extended("m", "c1", 30_000);
        let crashed = |story: Story| story.at(9_000).life("m", Life::Crashed).at(10_000);
        let lost = |story: Story| story.became("r", Role::Master).vanished("r", "c1", LossCause::Failover);
        let lag = |story: Story| {
            let found = first_line("windows", &story.granted("r", "c2", 30_000).ends(50_000));
            found.rsplit_once(' ').map(|(_, last)| last.to_owned())
        };
        assert_eq!(lag(lost(crashed(granted()))).as_deref(), Some("lag=10ms"));
        assert_eq!(lag(lost(granted().at(10_000))).as_deref(), Some("lag=1.01s"));
        // A renewal by the old master after the promotion was never to be replicated.
        let renewed = lost(granted().at(10_000)).at(11_000).extended("m", "c1", 30_000).at(12_000);
        assert_eq!(lag(renewed).as_deref(), Some("lag=1.01s"));
        // Granted by a replica, which no master of a lock should be: its service as a master has no
        // end.
        let by_replica = group().at(2).granted("r", "c1", 30_000).at(3).became("m", Role::Replica).at(9_000);
        let promoted = by_replica.became("m", Role::Master).vanished("m", "c1", LossCause::Failover);
        let found = first_line("windows", &promoted.at(9_500).granted("m", "c2", 30_000).ends(50_000));
        assert!(found.ends_with("lag=8.998s"), "{found}");
        let later =
            group().at(1_000).became("r", Role::Master).at(2_000).granted("m", "c1", 30_000).at(3_000);
        assert_eq!(lag(later).as_deref(), Some("lag=0ms"));
    }
}
