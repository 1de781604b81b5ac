//! Sentinels that are lost or in TILT, and their choice of a replica.

use super::{
    ALL_SENTINELS, CONVERTED, LOST, MASTER_DOWN, NO_FAILURE, NOT_ELECTED, PROMOTED, REFUSED, SWITCHED, TRIED,
    VOTE_ONE, VOTE_TWO,
};
use crate::row::{
    Act::{Cut, Freeze, Heal, Kill, Run, Start, Step, Thaw},
    Expect::{Answers, Count, Every, InOrder, Never, Takes},
    Moment::{At, First, Last},
    ROW, Rig, Row, S3, S3_GUARDED, Sight,
    Watch::{Confirms, Monitors, Writes},
    see,
};

const CONFIRMED: Sight = see("confirmed");
const CONFIRMED_AND_LOST: Sight = see("confirmed and lost");
const SENT: Sight = see("+slave-reconf-sent");
const DONE: Sight = see("+slave-reconf-done");
const ENDED: Sight = see("+failover-end");

/// Asks if the Sentinel takes the master for down; the epoch distinguishes the three questions.
const ASK_BEFORE: &str = "SENTINEL IS-MASTER-DOWN-BY-ADDR {m} 6379 1 *";
const ASK_IN_TILT: &str = "SENTINEL IS-MASTER-DOWN-BY-ADDR {m} 6379 2 *";
const ASK_AFTER: &str = "SENTINEL IS-MASTER-DOWN-BY-ADDR {m} 6379 3 *";

const ENDLESS: &str = "EVAL \"while true do end\" 0";

/// A master with four replicas; after a failover the other three are reconfigured one at a time.
const S4_IN_TURN: Rig = Rig { replicas: 4, parallel_syncs: 1, ..S3 };

pub(super) const ROWS: &[Row] = &[
    Row {
        id: "T15",
        about: "each of three Sentinels is cut off from the others while the master is killed, stands for election by itself (a quorum of 1), and \
                hears of the others when it has voted",
        rig: Rig { quorum: 1, ..S3 },
        acts: &[
            (0, Cut("s1", "s2 s3")),
            (0, Cut("s2", "s3")),
            // A hello through a replica would announce another candidate's epoch, and the receiver
            // would stand for election in the next epoch.
            (0, Cut(ALL_SENTINELS, "r1 r2")),
            (10, Kill("m")),
            (3_000, Heal("s1", "s2 s3")),
            (3_000, Heal("s2", "s3")),
            (3_000, Heal(ALL_SENTINELS, "r1 r2")),
        ],
        lasts: 14_500,
        expect: &[
            Count(TRIED, 3, 3),
            Takes("first `+try-failover`", At(10), First(TRIED), 2_000, 2_350),
            Count(see("+vote-for-leader"), 3, 3),
            Never(see("+elected-leader")),
            Takes("abort after it", First(TRIED), First(see("-failover-abort-not-elected")), 10_000, 11_200),
            Count(see("-failover-abort-not-elected"), 3, 3),
            InOrder("s1", NOT_ELECTED),
            InOrder("s2", NOT_ELECTED),
            InOrder("s3", NOT_ELECTED),
        ],
        ..ROW
    },
    Row {
        id: "T17",
        about: "a Sentinel votes, is killed and started again, and asked for another vote in the same epoch",
        acts: &[
            (0, Run("s3", VOTE_ONE)),
            (1_000, Kill("s3")),
            (2_000, Start("s3")),
            (4_000, Run("s3", VOTE_TWO)),
        ],
        lasts: 5_000,
        expect: &[
            Answers("s3", VOTE_ONE, "[0 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa 9]"),
            Answers("s3", VOTE_TWO, "[0 * 9]"),
            Count(see("+vote-for-leader").by("s3"), 1, 1),
        ],
        ..ROW
    },
    Row {
        id: "T18",
        about: "the leader crashes after its election",
        acts: &[
            (-500, Run(ALL_SENTINELS, "SENTINEL SIMULATE-FAILURE crash-after-election")),
            (0, Kill("m")),
            (5_000, Run(ALL_SENTINELS, NO_FAILURE)),
        ],
        lasts: 30_000,
        expect: &[
            Takes("the first is elected", At(0), First(see("+elected-leader")), 2_000, 3_000),
            Takes(
                "the next attempt",
                First(see("+elected-leader")),
                First(TRIED.from(5_000)),
                19_800,
                21_300,
            ),
            Takes("promotion after that", First(TRIED.from(5_000)), First(PROMOTED), 0, 1_600),
            Count(see("+elected-leader"), 2, 2),
        ],
        ..ROW
    },
    Row {
        id: "T19",
        about: "the leader crashes after the promotion, and is started again at 8 s",
        acts: &[
            (-500, Run(ALL_SENTINELS, "SENTINEL SIMULATE-FAILURE crash-after-promotion")),
            (0, Kill("m")),
            (5_000, Run(ALL_SENTINELS, NO_FAILURE)),
            (8_000, Start("leader")),
        ],
        lasts: 13_000,
        expect: &[
            Takes("promotion", At(0), First(PROMOTED), 2_200, 4_500),
            Takes("the others learn of it, after the start", At(8_000), Last(SWITCHED), 0, 2_400),
            Count(SWITCHED, 2, 2),
        ],
        ..ROW
    },
    Row {
        id: "T19a",
        about: "the master stands still for 6 s, and the leader crashes after the promotion and stays away",
        acts: &[
            (-500, Run(ALL_SENTINELS, "SENTINEL SIMULATE-FAILURE crash-after-promotion")),
            (0, Freeze("m")),
            (6_000, Thaw("m")),
            (6_000, Run(ALL_SENTINELS, NO_FAILURE)),
        ],
        lasts: 19_000,
        expect: &[
            Takes("promotion", At(0), First(PROMOTED), 2_200, 5_500),
            Never(SWITCHED),
            // For the two others the old master is still the master, and it is back. They demote
            // the promoted node only after they have seen it as a master for eight seconds.
            Takes("the promoted one is told", At(0), First(CONVERTED.about("slave r")), 10_200, 16_800),
            Takes("that is after it goes on", At(6_000), First(CONVERTED), 4_200, 10_800),
        ],
        ..ROW
    },
    Row {
        id: "T20",
        about: "two Sentinels of three are dead when the master is killed, and start 10 s later",
        acts: &[(-500, Kill("s2 s3")), (0, Kill("m")), (10_000, Start("s2 s3"))],
        lasts: 16_000,
        expect: &[
            Takes("`+sdown` of those", At(10_000), First(MASTER_DOWN.from(10_000)), 2_000, 2_300),
            Takes("first attempt", At(10_000), First(TRIED), 2_000, 2_700),
            Takes("promotion", At(10_000), First(PROMOTED), 2_200, 4_500),
        ],
        ..ROW
    },
    Row {
        id: "T21",
        about: "the master is killed, and starts again with its data half a second later",
        rig: Rig { options: &[("m", "appendonly", "yes")], ..S3 },
        acts: &[(0, Kill("m")), (500, Start("m"))],
        lasts: 12_500,
        expect: &[
            Never(see("+sdown").about("master main")),
            Count(see("+reboot").about("master main"), 3, 3),
            Takes("`+reboot`", At(500), Last(see("+reboot").about("master main")), 0, 11_000),
        ],
        ..ROW
    },
    Row {
        id: "T21c",
        about: "the same a second later without its data: it counts as the same master, and its replicas lose theirs",
        watches: &[Confirms("m")],
        acts: &[
            (-500, Run("m", "SET before 1")),
            (1_000, Kill("m")),
            (1_500, Start("m")),
            (5_000, Run("m r1 r2", "GET before")),
        ],
        lasts: 12_500,
        expect: &[
            Never(MASTER_DOWN),
            Never(TRIED),
            Count(see("+reboot").about("master main"), 3, 3),
            Takes("last confirmed write lost", At(1_000), Last(CONFIRMED_AND_LOST), -200, 20),
            Takes(
                "the next write confirmed, after the start",
                At(1_500),
                First(CONFIRMED.from(1_500)),
                0,
                2_500,
            ),
            Answers("m", "GET before", "nil"),
            Answers("r1", "GET before", "nil"),
            Answers("r2", "GET before", "nil"),
        ],
        ..ROW
    },
    Row {
        id: "T22",
        about: "an endless script on the master, D 7,000",
        rig: Rig { down_after: 7_000, ..S3 },
        watches: &[Monitors("m")],
        acts: &[(0, Run("m", ENDLESS))],
        lasts: 14_000,
        expect: &[
            Takes("first `+sdown`", At(0), First(MASTER_DOWN), 6_900, 8_400),
            Takes(
                "`-sdown` after it",
                First(MASTER_DOWN),
                First(see("-sdown").about("master main")),
                0,
                2_500,
            ),
            Takes("the script is killed, after it", First(MASTER_DOWN), First(see(ENDLESS)), 0, 2_500),
            Answers("m", ENDLESS, "*cript killed by user with SCRIPT KILL*"),
            // At most one of each Sentinel: a Sentinel that finds the master answering again has no
            // reason to run it.
            Count(see("SCRIPT"), 1, 3),
            Count(see("SCRIPT").by("s1"), 0, 1),
            Count(see("SCRIPT").by("s2"), 0, 1),
            Count(see("SCRIPT").by("s3"), 0, 1),
        ],
        note: "A failover that has begun when the script is killed goes on, and replaces a master that answers again: there is no `-sdown` of it then \
               (1 of 10 real runs, 1 of 20 simulated).",
        // One seed: the simulated script counts as endless only after a hundred million
        // instructions.
        seeds: 1,
        ..ROW
    },
    Row {
        id: "T23",
        about: "the replica with the lower priority is behind, and the master is killed",
        rig: Rig { options: &[("r1", "replica-priority", "10")], ..S3 },
        watches: &[Writes("m")],
        acts: &[(0, Cut("m", "r1")), (3_000, Kill("m"))],
        lasts: 12_000,
        expect: &[
            Count(PROMOTED.about("slave r1"), 1, 1),
            Takes("first write lost", At(0), First(LOST), -100, 100),
            Takes("last write lost", At(3_000), Last(LOST), -200, 50),
        ],
        ..ROW
    },
    Row {
        id: "T23a",
        about: "the same with equal priorities",
        watches: &[Writes("m")],
        acts: &[(0, Cut("m", "r1")), (3_000, Kill("m"))],
        lasts: 12_000,
        expect: &[Count(PROMOTED.about("slave r2"), 1, 1), Count(LOST, 0, 5)],
        ..ROW
    },
    Row {
        id: "T24",
        about: "both replicas have priority 0",
        rig: Rig { options: &[("r1", "replica-priority", "0"), ("r2", "replica-priority", "0")], ..S3 },
        acts: &[(0, Kill("m"))],
        lasts: 26_000,
        expect: &[
            Never(PROMOTED),
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
                    "-failover-abort-no-good-slave",
                ],
            ),
            Takes("abort", First(TRIED), First(see("-failover-abort-no-good-slave")), 0, 350),
            Takes("the next attempt", First(TRIED), First(TRIED.from(10_000)), 19_800, 21_300),
        ],
        ..ROW
    },
    Row {
        id: "T25",
        about: "a replica's link to the master has been down for 25 s when the master is killed",
        rig: Rig { options: &[("r1", "replica-priority", "10"), ("r1", "repl-timeout", "5")], ..S3 },
        acts: &[(0, Cut("m", "r1")), (31_000, Kill("m"))],
        lasts: 38_000,
        expect: &[
            Count(PROMOTED.about("slave r2"), 1, 1),
            Takes("promotion", At(31_000), First(PROMOTED), 2_200, 4_500),
        ],
        ..ROW
    },
    Row {
        id: "T26",
        about: "one replica has all writes and confirms each (WAIT 1), the other's link is cut, and the master is killed",
        watches: &[Confirms("m")],
        acts: &[(0, Cut("m", "r2")), (3_000, Kill("m"))],
        lasts: 12_000,
        expect: &[
            Count(PROMOTED.about("slave r1"), 1, 1),
            Takes("last write confirmed", At(3_000), Last(CONFIRMED), -200, 20),
            Count(LOST, 0, 1),
            Never(CONFIRMED_AND_LOST),
        ],
        ..ROW
    },
    Row {
        id: "T26a",
        about: "the same, and the one that has all writes is cut from the Sentinels",
        watches: &[Confirms("m")],
        acts: &[(0, Cut("m", "r2")), (0, Cut("r1", ALL_SENTINELS)), (5_000, Kill("m"))],
        lasts: 14_000,
        expect: &[
            Count(PROMOTED.about("slave r2"), 1, 1),
            Takes("first write lost", At(0), First(LOST), -100, 100),
            Takes("first confirmed write lost", At(0), First(CONFIRMED_AND_LOST), -100, 100),
            Takes("last confirmed write lost", At(5_000), Last(CONFIRMED_AND_LOST), -200, 20),
        ],
        ..ROW
    },
    Row {
        id: "T27",
        about: "a Sentinel stands still for 3 s",
        acts: &[(0, Freeze("s1")), (3_000, Thaw("s1"))],
        lasts: 35_000,
        expect: &[
            Takes("`+tilt`, after it goes on", At(3_000), First(see("+tilt").by("s1")), 0, 150),
            Takes("`-tilt` after that", First(see("+tilt")), First(see("-tilt").by("s1")), 30_000, 30_150),
            InOrder("s1", &["+tilt", "-tilt"]),
        ],
        ..ROW
    },
    Row {
        id: "T27a",
        about: "a Sentinel stands still for 1.5 s",
        acts: &[(0, Freeze("s1")), (1_500, Thaw("s1"))],
        lasts: 5_000,
        expect: &[Never(see("+tilt"))],
        ..ROW
    },
    Row {
        id: "T27b",
        about: "a Sentinel that has seen the master down stands still for 3 s, and is asked before, in TILT and after it; a quorum of 4",
        rig: Rig { quorum: 4, ..S3 },
        acts: &[
            (0, Kill("m")),
            (3_000, Run("s1", ASK_BEFORE)),
            (4_000, Freeze("s1")),
            (7_000, Thaw("s1")),
            (8_000, Run("s1", ASK_IN_TILT)),
            (8_000, Run("s1", VOTE_ONE)),
            (38_500, Run("s1", ASK_AFTER)),
        ],
        lasts: 39_000,
        expect: &[
            // In TILT its earlier view of the master does not count, but its vote does.
            Answers("s1", ASK_BEFORE, "[1 * 0]"),
            Answers("s1", ASK_IN_TILT, "[0 * 0]"),
            Answers("s1", VOTE_ONE, "[0 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa 9]"),
            Answers("s1", ASK_AFTER, "[1 * 0]"),
            InOrder("s1", &["+sdown", "+tilt", "+vote-for-leader", "-tilt"]),
            Never(see("-sdown").by("s1").about("master main")),
        ],
        ..ROW
    },
    Row {
        id: "T28",
        about: "the wall clock of a Sentinel steps by +1.5 s, by −20 ms and by −200 ms",
        acts: &[(0, Step("s1", 1_500)), (3_000, Step("s1", -20)), (6_000, Step("s1", -200))],
        lasts: 8_000,
        expect: &[
            Count(see("+tilt"), 1, 1),
            Takes("`+tilt` after the last", At(6_000), First(see("+tilt")), 0, 110),
        ],
        ..ROW
    },
    Row {
        id: "T28a",
        about: "the wall clock of a Sentinel steps by +2.5 s",
        acts: &[(0, Step("s1", 2_500))],
        lasts: 2_000,
        expect: &[Takes("`+tilt`", At(0), First(see("+tilt").by("s1")), 0, 110)],
        ..ROW
    },
    Row {
        id: "T28b",
        about: "the master stands still for 1.95 s, and the wall clocks of all Sentinels step by +1.8 s after 1.5 s of it",
        acts: &[(0, Freeze("m")), (1_500, Step(ALL_SENTINELS, 1_800)), (1_950, Thaw("m"))],
        lasts: 8_000,
        expect: &[
            Never(see("+tilt")),
            Takes("first `+sdown` after the step", At(1_500), First(MASTER_DOWN), 0, 110),
            Takes("promotion after it", At(1_500), First(PROMOTED), 200, 2_600),
        ],
        ..ROW
    },
    Row {
        id: "T29",
        about: "the wall clock of the master steps by +30 s, with min-replicas-to-write 1",
        rig: S3_GUARDED,
        watches: &[Writes("m")],
        acts: &[(0, Step("m", 30_000))],
        lasts: 10_000,
        expect: &[
            Never(see("+sdown")),
            // None, if the replicas have acknowledged again before the master counts them.
            Count(REFUSED.about("NOREPLICAS"), 0, 105),
            Count(REFUSED.about("NOREPLICAS").from(2_100), 0, 0),
        ],
        note: "Whether any is refused depends on which comes first after the step: the next acknowledgement, or the master's next count of \
               its replicas.",
        ..ROW
    },
    Row {
        id: "T29a",
        about: "the replicas stand still for 1.5 s, and the wall clock of the master steps by +30 s, with min-replicas-to-write 1",
        rig: S3_GUARDED,
        watches: &[Writes("m")],
        acts: &[(0, Freeze("r1 r2")), (100, Step("m", 30_000)), (1_500, Thaw("r1 r2"))],
        lasts: 8_000,
        expect: &[
            Never(MASTER_DOWN),
            Takes("first write refused", At(100), First(REFUSED.about("NOREPLICAS")), 0, 1_200),
            Takes("last write refused, after the replicas go on", At(1_500), Last(REFUSED), 0, 2_200),
        ],
        note: "A real node counts its ticks, which stop with it, so that its next acknowledgement comes up to a second after it goes on; that of \
               a simulated node comes at once.",
        ..ROW
    },
    Row {
        id: "T29b",
        about: "the same with +61 s, after which the master drops its replicas",
        rig: S3_GUARDED,
        watches: &[Writes("m")],
        acts: &[(0, Freeze("r1 r2")), (100, Step("m", 61_000)), (1_500, Thaw("r1 r2"))],
        lasts: 8_000,
        expect: &[
            Never(MASTER_DOWN),
            Takes("first write refused", At(100), First(REFUSED.about("NOREPLICAS")), 0, 1_200),
            Takes("last write refused, after the replicas go on", At(1_500), Last(REFUSED), -50, 200),
        ],
        note: "The replicas find the connection closed, come back at once, and count from then on: sooner than those that were not dropped.",
        ..ROW
    },
    Row {
        id: "T30",
        about: "the new master is killed 9 s after the old one",
        acts: &[(0, Kill("m")), (9_000, Kill("master"))],
        lasts: 17_000,
        expect: &[
            Takes("first `+sdown`", At(9_000), First(MASTER_DOWN.from(9_000)), 2_000, 2_250),
            Takes("promotion", At(9_000), First(PROMOTED.from(9_000)), 2_200, 4_500),
        ],
        ..ROW
    },
    Row {
        id: "T31",
        about: "three replicas follow the promoted one, one reconfigured at a time",
        rig: S4_IN_TURN,
        acts: &[(0, Kill("m"))],
        lasts: 16_000,
        expect: &[
            InOrder(
                "leader",
                &[
                    "+slave-reconf-sent",
                    "+slave-reconf-inprog",
                    "+slave-reconf-done",
                    "+slave-reconf-sent",
                    "+slave-reconf-inprog",
                    "+slave-reconf-done",
                    "+slave-reconf-sent",
                    "+slave-reconf-inprog",
                    "+slave-reconf-done",
                    "+failover-end",
                    "+switch-master",
                ],
            ),
            // Each is reconfigured only after its predecessor is done.
            Count(SENT, 3, 3),
            Takes("the first", First(SENT), First(DONE), 0, 2_200),
            Every("each of the others", DONE, 0, 2_200),
            Takes("`+failover-end` after the third", Last(DONE), First(ENDED), 0, 110),
        ],
        ..ROW
    },
    Row {
        id: "T31a",
        about: "the same, and one of the replicas has been down for 5 s when the master is killed",
        rig: S4_IN_TURN,
        acts: &[(0, Kill("r4")), (5_000, Kill("m"))],
        lasts: 19_000,
        expect: &[
            Count(see("+sdown").about("slave r4"), 3, 6),
            Count(SENT, 2, 2),
            Never(SENT.about("slave r4")),
            Takes("`+failover-end` after the second", Last(DONE), First(ENDED), 0, 110),
            Never(see("+failover-end-for-timeout")),
            Count(SWITCHED, 3, 3),
        ],
        ..ROW
    },
    Row {
        id: "T32",
        about: "a replica is told by hand to follow another replica",
        acts: &[(0, Run("r2", "REPLICAOF {r1} 6379"))],
        lasts: 32_000,
        expect: &[
            Takes("`+fix-slave-config`", At(0), First(see("+fix-slave-config")), 10_000, 30_500),
            Count(see("+try-failover"), 0, 0),
        ],
        ..ROW
    },
    Row {
        id: "T33",
        about: "the master is told by hand to follow an address where nothing listens",
        acts: &[(0, Run("m", "REPLICAOF {client} 6379"))],
        lasts: 40_000,
        expect: &[
            Takes("`-role-change`", At(0), First(see("-role-change").about("master main")), 0, 10_300),
            Takes(
                "`+sdown` after that",
                First(see("-role-change").about("master main")),
                First(MASTER_DOWN),
                22_000,
                22_200,
            ),
            Takes("promotion after that", First(MASTER_DOWN), First(PROMOTED), 0, 12_000),
        ],
        ..ROW
    },
];
