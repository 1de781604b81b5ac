//! Failovers that go wrong after the election, and manual commands to Sentinels.

use super::{ALL_SENTINELS, CONVERTED, FAIL_OVER, MASTER_DOWN, PROMOTED, SWITCHED, TRIED};
use crate::row::{
    Act::{self, Cut, CutOneWay, Kill, Run, Start},
    Differs,
    Expect::{Answers, Count, InOrder, Never, Takes},
    Moment::{At, First, Last},
    ROW, Rig, Row, S3, Sight, see,
};

/// Determines the replica to promote.
const R1_FIRST: &[(&str, &str, &str)] = &[("r1", "replica-priority", "10")];

const WAITS: Sight = see("+failover-state-wait-promotion");
const SENT: Sight = see("+slave-reconf-sent");
const ENDED: Sight = see("+failover-end");
const REBOOTED: Sight = see("+reboot").about("master main m");
const MET: Sight = see("+sentinel").by("s1");
const FOUND: Sight = see("+slave").by("s1");

const RESET: &str = "SENTINEL RESET ma*";
const REMOVE: &str = "SENTINEL REMOVE main";
const MONITOR: &str = "SENTINEL MONITOR main {m} 6379 2";

/// The master takes ten seconds to load its 2,000 keys.
const SLOW_START: Rig = Rig {
    options: &[
        ("m", "enable-debug-command", "yes"),
        ("m", "key-load-delay", "5000"),
        ("m", "loading-process-events-interval-bytes", "1024"),
    ],
    ..S3
};
const REBOOTS: [(i64, Act); 4] = [
    (-900, Run("m", "DEBUG POPULATE 2000; SAVE")),
    // A Sentinel learns of the restart from INFO.
    (-400, Run(ALL_SENTINELS, "SENTINEL DEBUG info-period 1000")),
    (0, Kill("m")),
    (300, Start("m")),
];

pub(super) const ROWS: &[Row] = &[
    Row {
        id: "T21a",
        about: "the master is killed, started again 0.3 s later, and loads data for 10 s; master-reboot-down-after-period is 2 s",
        rig: SLOW_START,
        acts: &[
            (-700, Run(ALL_SENTINELS, "SENTINEL SET main master-reboot-down-after-period 2000")),
            REBOOTS[0],
            REBOOTS[1],
            REBOOTS[2],
            REBOOTS[3],
        ],
        lasts: 10_000,
        expect: &[
            // Its link is dialed again one second after the last dial, and INFO follows within a
            // second.
            Takes("first `+reboot`", At(300), First(REBOOTED), 0, 2_300),
            Takes("first `+sdown` after it", First(REBOOTED), First(MASTER_DOWN), 2_000, 2_110),
            Takes("promotion after that", First(MASTER_DOWN), First(PROMOTED), 0, 2_500),
            Count(SWITCHED, 3, 3),
            InOrder("leader", &["+reboot", "+sdown", "+odown", "+try-failover", "+promoted-slave"]),
        ],
        differs: &[Differs(
            "first `+reboot`, ms",
            300,
            "a node that loads data looks after its clients between two pieces of the file, here every quarter of a second; a simulated one at once",
        )],
        ..ROW
    },
    Row {
        id: "T21b",
        about: "the same without master-reboot-down-after-period",
        rig: SLOW_START,
        acts: &REBOOTS,
        lasts: 10_000,
        expect: &[
            Count(REBOOTED, 3, 3),
            // LOADING counts like PONG.
            Never(MASTER_DOWN),
        ],
        ..ROW
    },
    Row {
        id: "T24a",
        about: "SENTINEL FAILOVER, and the Sentinel hears nothing of the replica that it promotes; FT 4,000",
        rig: Rig { failover_timeout: 4_000, options: R1_FIRST, ..S3 },
        acts: &[(0, Run("s1", FAIL_OVER)), (50, CutOneWay("r1", "s1"))],
        lasts: 23_000,
        expect: &[
            InOrder(
                "s1",
                &[
                    "+try-failover",
                    "+elected-leader",
                    "+selected-slave",
                    "+failover-state-wait-promotion",
                    "-failover-abort-slave-timeout",
                ],
            ),
            Never(PROMOTED),
            Never(SWITCHED),
            Takes(
                "`-failover-abort-slave-timeout` after SLAVEOF NO ONE",
                First(WAITS),
                First(see("-failover-abort-slave-timeout").by("s1")),
                4_000,
                4_110,
            ),
            // The others see with their next INFO that it remained a master, and with the one after
            // it.
            Takes(
                "another one demotes it, after SLAVEOF NO ONE",
                First(WAITS),
                First(CONVERTED),
                9_900,
                21_000,
            ),
            Never(CONVERTED.by("s1")),
        ],
        ..ROW
    },
    Row {
        id: "T31b",
        about: "the master is killed, and the other replica does not reach the promoted one; FT 4,000",
        rig: Rig { failover_timeout: 4_000, options: R1_FIRST, ..S3 },
        acts: &[(0, Kill("m")), (0, Cut("r1", "r2"))],
        lasts: 9_000,
        expect: &[
            InOrder(
                "leader",
                &[
                    "+promoted-slave",
                    "+failover-state-reconf-slaves",
                    "+slave-reconf-sent",
                    "+slave-reconf-inprog",
                    "+failover-end-for-timeout",
                    "+failover-end",
                    "+slave-reconf-sent-be",
                    "+switch-master",
                ],
            ),
            Never(see("+slave-reconf-done")),
            Takes(
                "`+failover-end-for-timeout` after the promotion",
                First(PROMOTED),
                First(see("+failover-end-for-timeout")),
                4_000,
                4_110,
            ),
            Count(see("+slave-reconf-sent-be").about("slave r2"), 1, 1),
            Count(SWITCHED, 3, 3),
        ],
        ..ROW
    },
    Row {
        id: "T31c",
        about: "the master is killed, and the other replica may not be told to follow the promoted one; FT 20,000",
        rig: Rig { failover_timeout: 20_000, options: R1_FIRST, ..S3 },
        acts: &[(-500, Run("r2", "ACL SETUSER default -slaveof -replicaof")), (0, Kill("m"))],
        lasts: 17_000,
        expect: &[
            InOrder(
                "leader",
                &[
                    "+promoted-slave",
                    "+slave-reconf-sent",
                    "-slave-reconf-sent-timeout",
                    // Sent once more, although it counts as done from now on.
                    "+slave-reconf-sent",
                    "+failover-end",
                    "+switch-master",
                ],
            ),
            Never(see("+slave-reconf-inprog")),
            Count(SENT, 2, 2),
            Takes(
                "`-slave-reconf-sent-timeout` after it was told",
                First(SENT),
                First(see("-slave-reconf-sent-timeout").about("slave r2")),
                10_000,
                10_110,
            ),
            // In the same tick.
            Takes(
                "`+failover-end` after that",
                First(see("-slave-reconf-sent-timeout")),
                First(ENDED),
                0,
                110,
            ),
            Never(see("+failover-end-for-timeout")),
        ],
        ..ROW
    },
    Row {
        id: "T35a",
        about: "SENTINEL RESET, then REMOVE and MONITOR, at one Sentinel",
        acts: &[(0, Run("s1", RESET)), (12_000, Run("s1", REMOVE)), (13_000, Run("s1", MONITOR))],
        lasts: 17_000,
        expect: &[
            Answers("s1", RESET, "1"),
            Answers("s1", REMOVE, "OK"),
            Answers("s1", MONITOR, "OK"),
            InOrder("s1", &["+reset-master", "-monitor", "+monitor"]),
            Count(see("+reset-master"), 1, 1),
            Count(see("-monitor"), 1, 1),
            Count(see("+monitor").from(1), 1, 1),
            // It learns of the replicas from INFO, which after RESET comes when it is due, and of
            // the other Sentinels from their hellos.
            Count(FOUND.from(0), 4, 4),
            Count(MET.from(0), 4, 4),
            Takes("the replicas are known again, after RESET", At(0), First(FOUND), 0, 10_300),
            Takes("the others are", At(0), First(MET), 0, 3_400),
            Takes("the replicas are known again, after MONITOR", At(13_000), Last(FOUND), 0, 500),
            Never(TRIED),
            Never(see("+sdown")),
        ],
        ..ROW
    },
    Row {
        id: "T35b",
        about: "a Sentinel of two masters announces another port and then the address of another Sentinel, and a third one is reset",
        acts: &[
            (0, Run(ALL_SENTINELS, "SENTINEL MONITOR other {r1} 6379 2")),
            (5_000, Run("s3", "SENTINEL CONFIG SET announce-port 26380")),
            (9_000, Run("s3", "SENTINEL CONFIG SET announce-port 26379")),
            (13_000, Run("s3", "SENTINEL CONFIG SET announce-ip {s2}")),
            (17_000, Run("s1", RESET)),
        ],
        lasts: 21_000,
        expect: &[
            // By one of the hellos; in the record of the other master its address changes
            // immediately.
            Count(see("+sentinel-address-switch").by("s1"), 3, 3),
            Count(see("+sentinel-address-update").by("s1").about("1 additional matching instances"), 3, 3),
            Takes(
                "`+sentinel-address-switch` of both others",
                At(5_000),
                Last(see("+sentinel-address-switch").about("port 26380")),
                0,
                2_300,
            ),
            Takes(
                "and back",
                At(9_000),
                First(see("+sentinel-address-switch").by("s1").about("port 26379")),
                0,
                2_300,
            ),
            // s2 greets s3 at its own address, and so itself: of two Sentinels with one address,
            // the later replaces the earlier.
            InOrder("s2", &["+sentinel-address-switch", "+sentinel-invalid-addr"]),
            // The same happens at s1, which RESET has made forget both.
            Takes(
                "`+sentinel-invalid-addr` after RESET",
                At(17_000),
                First(see("+sentinel-invalid-addr").by("s1").from(17_000)),
                0,
                3_400,
            ),
            Never(TRIED),
        ],
        ..ROW
    },
];
