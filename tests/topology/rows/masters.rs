//! A master that is lost, and a healthy master that is replaced.

use super::{
    ACCEPTED, ALL_BUT_M, ALL_SENTINELS, CKQUORUM, CONVERTED, FAIL_OVER, LOST, MASTER_DOWN, NOT_ELECTED,
    PROMOTED, REFUSED, SWITCHED, TRIED,
};
use crate::row::{
    Act::{self, Cut, Freeze, Heal, Kill, Run, Start, Thaw},
    Expect::{self, Answers, Count, Every, InOrder, Never, Takes},
    Moment::{self, At, First, Last},
    ROW, Rig, Row, S2, S3, S3_GUARDED, Sight,
    Watch::{Asks, Holds, Links, Monitors, Writes},
    see,
};

/// INFO of a Sentinel names another master.
const INFORMED: Sight = see("INFO address").from(1);
const LINKED: Sight = see("linked").from(1_000);

/// The next tick dials a closed link again, unless it was dialed within the last second.
const fn back(what: &'static str, link: Moment) -> Expect {
    Takes(what, First(see("+failover-state-wait-promotion")), link, 0, 1_150)
}

/// Read a key from before the kill: after the old master's restart, and after its demotion.
const WAS_THERE: &str = "GET before";
const IS_THERE: &str = "EXISTS before";
const RETURNS: &[(i64, Act)] = &[
    (-500, Run("m", "SET before 1")),
    (0, Kill("m")),
    (20_000, Start("m")),
    (22_000, Run("m", WAS_THERE)),
    (35_000, Run("m", IS_THERE)),
];

/// Expectations for an old master that restarts after 20 s; `was_there` is its first reply about
/// its data.
const fn returned(was_there: &'static str) -> [Expect; 10] {
    [
        InOrder("", &["+switch-master", "-role-change", "+convert-to-slave"]),
        Answers("m", WAS_THERE, was_there),
        Answers("m", IS_THERE, "1"),
        Takes("`-sdown`", At(20_000), First(see("-sdown").about("slave m").from(20_000)), 0, 1_500),
        Takes("seen", At(20_000), First(see("-role-change").from(20_000)), 0, 2_000),
        Takes("told after that", First(see("-role-change").from(20_000)), First(CONVERTED), 9_900, 11_300),
        Takes("its clients are closed, after that", First(CONVERTED), Last(see("closed")), -50, 50),
        Takes("last write taken, after that", First(CONVERTED), Last(ACCEPTED), -50, 50),
        Takes("first write lost", At(20_000), First(LOST.from(20_000)), 0, 500),
        Takes("last write lost", First(CONVERTED), Last(LOST), -50, 50),
    ]
}

pub(super) const ROWS: &[Row] = &[
    Row {
        id: "T1",
        about: "nothing happens for a minute",
        watches: &[Monitors("m")],
        lasts: 60_000,
        expect: &[
            Every("between two PINGs of a Sentinel", see("PING"), 1_000, 1_110),
            Every("between two INFOs of a Sentinel", see("INFO"), 10_000, 10_200),
            Every("between two hellos of a Sentinel", see("PUBLISH"), 2_000, 2_200),
            Never(see("+sdown")),
            Never(see("-sdown")),
            Never(see("+tilt")),
            Never(see("+new-epoch")),
            Never(see("+try-failover")),
        ],
        note: "When a Sentinel ticks cannot be seen from outside, only what it sends in a tick: whatever is due leaves with the next one.",
        ..ROW
    },
    Row {
        id: "T2",
        about: "Sentinels start, and know the master alone",
        rig: Rig { starts_at_zero: true, ..S3 },
        lasts: 6_000,
        expect: &[
            Count(see("+slave").by("s1"), 2, 2),
            Count(see("+sentinel").by("s1"), 2, 2),
            Takes("the replicas are known", At(0), Last(see("+slave")), 0, 500),
            Takes("the other Sentinels are known", At(0), Last(see("+sentinel")), 1_900, 2_500),
        ],
        ..ROW
    },
    Row {
        id: "T3",
        about: "the master is killed",
        acts: &[(0, Kill("m"))],
        lasts: 9_000,
        expect: &[
            Takes("first `+sdown`", At(0), First(MASTER_DOWN), 2_000, 2_250),
            Takes("`+odown` after it", First(MASTER_DOWN), First(see("+odown")), 0, 400),
            Takes("`+try-failover` after that", First(see("+odown")), First(TRIED), 0, 2),
            Takes(
                "SLAVEOF NO ONE after that",
                First(TRIED),
                First(see("+failover-state-wait-promotion")),
                0,
                350,
            ),
            Takes(
                "`+promoted-slave` after that",
                First(see("+failover-state-wait-promotion")),
                First(PROMOTED),
                0,
                1_150,
            ),
            // As in redis-sentinel: a hello that is answered at that moment delays the next one by
            // two seconds.
            Takes("observers switch after that", First(PROMOTED), Last(SWITCHED.by("observers")), 0, 2_300),
            Takes(
                "the leader switches after them",
                First(SWITCHED.by("observers")),
                First(SWITCHED.by("leader")),
                // Before them, if the hello that informs both is delayed by two seconds.
                -1_100,
                4_000,
            ),
            Count(SWITCHED, 3, 3),
            Count(MASTER_DOWN, 3, 3),
            // One Sentinel may be a second late.
            Takes("last `+sdown`", At(0), Last(MASTER_DOWN), 2_000, 3_250),
            InOrder(
                "leader",
                &[
                    "+sdown",
                    "+odown",
                    "+new-epoch",
                    "+try-failover",
                    "+vote-for-leader",
                    "+elected-leader",
                    "+failover-state-select-slave",
                    "+selected-slave",
                    "+failover-state-send-slaveof-noone",
                    "+failover-state-wait-promotion",
                    "+promoted-slave",
                    "+failover-state-reconf-slaves",
                    "+slave-reconf-sent",
                    "+slave-reconf-inprog",
                    "+slave-reconf-done",
                    "+failover-end",
                    "+switch-master",
                    "+slave",
                ],
            ),
            InOrder("observers", &["+vote-for-leader", "+config-update-from", "+switch-master"]),
        ],
        note: "last `+sdown`: in two of 100 real runs a second later, as where a tick falls between the ends of a link's two connections (T3a).",
        ..ROW
    },
    Row {
        id: "T3a",
        about: "the subscriptions end 300 ms before the master is killed",
        acts: &[(0, Run("m", "CLIENT KILL TYPE pubsub")), (300, Kill("m"))],
        lasts: 6_000,
        expect: &[Takes("first `+sdown`", At(300), First(MASTER_DOWN), 2_600, 3_050)],
        note: "A tick between the ends of a link's two connections dials one of them; the other one is dialed a second later, and \
               the clock of SDOWN begins with it.",
        ..ROW
    },
    Row {
        id: "T4",
        about: "the master stands still",
        acts: &[(0, Freeze("m"))],
        lasts: 9_000,
        expect: &[
            Takes("first `+sdown`", At(0), First(MASTER_DOWN), 1_900, 3_250),
            Takes("promotion", At(0), First(PROMOTED), 2_200, 5_500),
        ],
        ..ROW
    },
    Row {
        id: "T4a",
        about: "the master is cut off",
        acts: &[(0, Cut("m", ALL_BUT_M))],
        lasts: 9_000,
        expect: &[
            Takes("first `+sdown`", At(0), First(MASTER_DOWN), 1_900, 3_250),
            Takes("promotion", At(0), First(PROMOTED), 2_200, 5_500),
        ],
        ..ROW
    },
    Row {
        id: "T4b",
        about: "the master stands still for 10 s, with a writer",
        watches: &[Writes("m")],
        acts: &[(0, Freeze("m")), (10_000, Thaw("m"))],
        lasts: 25_000,
        expect: &[
            Takes("promotion", At(0), First(PROMOTED), 2_200, 5_500),
            Takes("told, after it goes on", At(10_000), First(CONVERTED), 9_900, 11_300),
            Takes("last write taken, after it goes on", At(10_000), Last(ACCEPTED), 9_800, 11_300),
            // Writes from before the pause have reached the replicas.
            Takes("first write lost, after it goes on", At(10_000), First(LOST), -100, 100),
            Takes("last write lost, after it goes on", At(10_000), Last(LOST), 9_800, 11_300),
        ],
        ..ROW
    },
    Row {
        id: "T5",
        about: "the master is killed, and all Sentinels are asked for it",
        watches: &[Asks],
        acts: &[(0, Kill("m")), (1_000, Run("s1", "SENTINEL GET-MASTER-ADDR-BY-NAME nope"))],
        lasts: 9_000,
        expect: &[
            Answers("s1", "SENTINEL GET-MASTER-ADDR-BY-NAME nope", "nil"),
            Count(see("answers").from(1), 3, 3),
            Takes(
                "the leader answers with the promoted one",
                First(PROMOTED),
                First(see("answers").from(1)),
                0,
                80,
            ),
            Takes("the observers do", Last(SWITCHED.by("observers")), Last(see("answers").from(1)), 0, 80),
            // The leader replies with the promoted node from the promotion on, but its INFO names
            // that node only after the switch.
            Count(INFORMED, 3, 3),
            Takes(
                "INFO of the leader shows the promoted one, after its switch",
                First(SWITCHED.by("leader")),
                First(INFORMED.by("leader")),
                0,
                80,
            ),
            Takes(
                "INFO of the observers does, after theirs",
                Last(SWITCHED.by("observers")),
                Last(INFORMED.by("observers")),
                0,
                80,
            ),
            Takes("INFO has `sdown`", First(MASTER_DOWN), First(see("INFO status").about("sdown")), 0, 80),
            Takes("INFO has `odown`", First(see("+odown")), First(see("INFO status").about("odown")), 0, 80),
            Takes(
                "INFO has `ok` again, after the last switch",
                Last(SWITCHED),
                Last(see("INFO status").about("ok").from(1)),
                0,
                80,
            ),
        ],
        ..ROW
    },
    Row {
        id: "T6",
        about: "the master is killed, and clients stay connected to all nodes",
        watches: &[Holds("m"), Holds("r1"), Holds("r2"), Links("r1"), Links("r2")],
        acts: &[(0, Kill("m"))],
        lasts: 12_000,
        expect: &[
            Count(see("closed").about("m"), 2, 2),
            Takes("the master's, when it is killed", At(0), Last(see("closed").about("m")), 0, 50),
            Count(see("closed").by("client").about("r1"), 1, 1),
            Count(see("closed").by("client").about("r2"), 1, 1),
            Count(see("closed").by("subscriber").about("r1"), 1, 1),
            Count(see("closed").by("subscriber").about("r2"), 1, 1),
            Takes(
                "closed at SLAVEOF NO ONE",
                First(see("+failover-state-wait-promotion")),
                First(see("closed").from(1_000)),
                0,
                50,
            ),
            Takes(
                "the other replica's, when it is told",
                Last(see("+slave-reconf-sent")),
                Last(see("closed")),
                0,
                50,
            ),
            // Each Sentinel has two links to each replica, and opens both again when it switches.
            // The leader's command to a replica closes all links but the leader's own, perhaps at
            // about the time when the observers switch.
            Count(LINKED.about("cmd"), 8, 10),
            Count(LINKED.about("pubsub"), 9, 12),
            back("links of s1 are back, after SLAVEOF NO ONE", First(LINKED.by("s1"))),
            back("links of s2 are", First(LINKED.by("s2"))),
            back("links of s3 are", First(LINKED.by("s3"))),
            Takes("the last ones, after the last switch", Last(SWITCHED), Last(LINKED), 0, 1_150),
        ],
        ..ROW
    },
    Row {
        id: "T7",
        about: "the old master is started again 20 s later, empty",
        watches: &[Writes("m"), Holds("m")],
        acts: RETURNS,
        lasts: 36_000,
        expect: &returned("nil"),
        ..ROW
    },
    Row {
        id: "T7a",
        about: "the same with its data",
        rig: Rig { options: &[("m", "appendonly", "yes"), ("m", "appendfsync", "always")], ..S3 },
        watches: &[Writes("m"), Holds("m")],
        acts: RETURNS,
        lasts: 36_000,
        expect: &returned("1"),
        ..ROW
    },
    Row {
        id: "T7b",
        about: "the old master is started again and demoted; then the new one crashes for half a second, and after it all that follow",
        rig: Rig { options: &[("r1", "replica-priority", "10")], ..S3 },
        acts: &[
            (0, Kill("m")),
            (5_000, Start("m")),
            (20_000, Kill("r1")),
            (20_500, Start("r1")),
            (23_000, Run("r1 r2 m", "ROLE")),
            (32_000, Kill("m r2")),
            (32_500, Start("m r2")),
            (35_000, Run("r1 r2 m", "INFO replication")),
        ],
        lasts: 45_000,
        expect: &[
            Count(PROMOTED.about("slave r1"), 1, 1),
            Takes("told, after the start", At(5_000), First(CONVERTED), 9_900, 13_300),
            // Each has saved the role that the Sentinels gave it: they send CONFIG REWRITE with
            // SLAVEOF.
            Answers("r1", "ROLE", "[master *"),
            Answers("r2", "ROLE", "[slave r1 6379 connected *"),
            Answers("m", "ROLE", "[slave r1 6379 connected *"),
            Answers("r1", "INFO replication", "*role:master*connected_slaves:2*"),
            Answers("r2", "INFO replication", "*role:slave*master_host:r1*master_link_status:up*"),
            Answers("m", "INFO replication", "*role:slave*master_host:r1*master_link_status:up*"),
            Never(see("+sdown").from(19_000)),
            Count(SWITCHED, 3, 3),
            Never(see("-role-change").from(19_000)),
            Count(see("+reboot").about("master main r1").from(20_000), 3, 3),
            Takes(
                "`+reboot` of the master",
                At(20_500),
                Last(see("+reboot").about("master main r1").from(20_000)),
                0,
                11_000,
            ),
            Count(see("+reboot").about("slave ").from(32_000), 6, 6),
            Takes(
                "`+reboot` of the others",
                At(32_500),
                Last(see("+reboot").about("slave ").from(32_000)),
                0,
                11_000,
            ),
        ],
        ..ROW
    },
    Row {
        id: "T8",
        about: "the master is cut off with a writer for 30 s",
        watches: &[Writes("m")],
        acts: &[(0, Cut("m", ALL_BUT_M)), (30_000, Heal("m", ALL_BUT_M))],
        lasts: 50_000,
        expect: &[
            Never(REFUSED.about("NOREPLICAS")),
            InOrder("", &["+switch-master", "-role-change", "+convert-to-slave"]),
            Takes("told, after the heal", At(30_000), First(CONVERTED), 9_900, 12_500),
            Takes("last write taken, after the heal", At(30_000), Last(ACCEPTED), 9_800, 12_500),
            Takes("first write lost", At(0), First(LOST), -100, 100),
            Takes("last write lost, after the heal", At(30_000), Last(LOST), 9_800, 12_500),
        ],
        ..ROW
    },
    Row {
        id: "T8a",
        about: "the same, and only the Sentinels are cut from it: its replicas and clients are not",
        watches: &[Writes("m")],
        acts: &[(0, Cut("m", ALL_SENTINELS)), (30_000, Heal("m", ALL_SENTINELS))],
        lasts: 50_000,
        expect: &[
            InOrder("", &["+switch-master", "-role-change", "+convert-to-slave"]),
            Takes("first `+sdown`", At(0), First(MASTER_DOWN), 1_900, 3_250),
            Takes("promotion", At(0), First(PROMOTED), 2_200, 5_500),
            // Until then the promoted node replicated from it.
            Takes(
                "first write lost, after SLAVEOF NO ONE",
                First(see("+failover-state-wait-promotion")),
                First(LOST),
                -50,
                100,
            ),
            Takes("told, after the heal", At(30_000), First(CONVERTED), 9_900, 12_500),
            Takes("first write refused, after that", First(CONVERTED), First(REFUSED), -50, 200),
            Takes("last write lost, after the heal", At(30_000), Last(LOST), 9_800, 12_500),
        ],
        ..ROW
    },
    Row {
        id: "T9",
        about: "T8 with min-replicas-to-write 1",
        rig: S3_GUARDED,
        watches: &[Writes("m")],
        acts: &[(0, Cut("m", ALL_BUT_M))],
        lasts: 16_000,
        expect: &[
            Takes("last write taken", At(0), Last(ACCEPTED), 9_000, 12_000),
            Takes("first write refused", At(0), First(REFUSED.about("NOREPLICAS")), 9_000, 12_000),
        ],
        ..ROW
    },
    Row {
        id: "T10",
        about: "SENTINEL FAILOVER of a healthy master",
        watches: &[Writes("m")],
        acts: &[(0, Run("s1", FAIL_OVER))],
        lasts: 18_000,
        expect: &[
            Answers("s1", FAIL_OVER, "OK"),
            Never(see("+odown")),
            InOrder("", &["+promoted-slave", "+switch-master", "-role-change", "+convert-to-slave"]),
            Takes("promotion", At(0), First(PROMOTED), 0, 1_500),
            Takes("the old master is told", First(SWITCHED), First(CONVERTED), 9_900, 11_500),
            Takes("last write taken", At(0), Last(ACCEPTED), 10_000, 13_000),
            Takes("last write lost", At(0), Last(LOST), 10_000, 13_000),
        ],
        ..ROW
    },
    Row {
        id: "T10a",
        about: "the same with min-replicas-to-write 1",
        rig: S3_GUARDED,
        watches: &[Writes("m")],
        acts: &[(0, Run("s1", FAIL_OVER))],
        lasts: 8_000,
        expect: &[Takes(
            "first write refused, after the promotion",
            First(PROMOTED),
            First(REFUSED),
            -1_000,
            1_500,
        )],
        ..ROW
    },
    Row {
        id: "T12",
        about: "a quorum of 4 with 3 Sentinels; the master is killed",
        rig: Rig { quorum: 4, ..S3 },
        acts: &[(0, Kill("m")), (5_000, Run("s1", CKQUORUM))],
        lasts: 8_000,
        expect: &[
            Count(MASTER_DOWN, 3, 3),
            Never(see("+odown")),
            Answers(
                "s1",
                CKQUORUM,
                "NOQUORUM 3 usable Sentinels. Not enough available Sentinels to reach the specified quorum for this master",
            ),
        ],
        ..ROW
    },
    Row {
        id: "T13",
        about: "a quorum of 1, and one Sentinel is cut from a healthy master",
        rig: Rig { quorum: 1, ..S3 },
        watches: &[Writes("m")],
        acts: &[(0, Cut("m", "s1"))],
        lasts: 20_000,
        expect: &[
            Never(see("+sdown").by("s2").about("master main m")),
            Never(see("+sdown").by("s3").about("master main m")),
            Takes("`+odown` of the one", At(0), First(see("+odown").by("s1")), 1_900, 3_300),
            Takes("it promotes a replica", First(see("+odown")), First(PROMOTED.by("s1")), 0, 2_000),
            Takes("the old master is told", First(SWITCHED), First(CONVERTED), 9_900, 11_500),
            Takes("last write lost", First(PROMOTED), Last(LOST), 9_800, 13_000),
        ],
        ..ROW
    },
    Row {
        id: "T14",
        about: "one of two Sentinels is killed with the master",
        rig: S2,
        acts: &[(0, Kill("m s1"))],
        lasts: 12_000,
        expect: &[Count(MASTER_DOWN.by("s2"), 1, 1), Never(see("+odown"))],
        ..ROW
    },
    Row {
        id: "T14a",
        about: "the same with a quorum of 1",
        rig: Rig { quorum: 1, ..S2 },
        acts: &[(0, Kill("m s1"))],
        lasts: 28_000,
        expect: &[
            Never(see("+elected-leader")),
            InOrder("s2", NOT_ELECTED),
            Takes("`+try-failover`", At(0), First(TRIED), 2_000, 2_350),
            Takes(
                "`-failover-abort-not-elected` after it",
                First(TRIED),
                First(see("-failover-abort-not-elected")),
                10_000,
                11_200,
            ),
            Takes("the next attempt after it", First(TRIED), First(TRIED.from(15_000)), 20_000, 21_200),
        ],
        ..ROW
    },
];
