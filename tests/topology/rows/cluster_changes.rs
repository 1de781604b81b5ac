//! A healthy cluster that is changed: manual failovers, migrating replicas, moving slots.

use super::{ACCEPTED, LOST, REFUSED};
use crate::row::{
    Act::{Cut, CutOneWay, Freeze, Heal, HealOneWay, Kill, Run, Start, Thaw},
    C6, CLUSTER_ROW,
    Expect::{self, Answers, Count, Never, Takes},
    Moment::{At, First, Last},
    Rig, Row, Sight,
    Watch::{Floods, Views, Writes},
    see,
};

const FAIL_OVER: &str = "CLUSTER FAILOVER";
const FORCE: &str = "CLUSTER FAILOVER FORCE";
const TAKE_OVER: &str = "CLUSTER FAILOVER TAKEOVER";
const PROMOTED: Sight = see("master").about("a");
const DEMOTED: Sight = see("replica").by("A").about("A of a");

/// A node timeout longer than any pause in these rows.
const PATIENT: Rig = Rig { node_timeout: 20_000, ..C6 };

/// `A` has two replicas.
const TWO_OF_A: Rig = Rig { more: &[("p", "A")], ..C6 };

/// `A` has three replicas, and none of them reaches it.
const THREE_OF_A: Rig = Rig { more: &[("p", "A"), ("q", "A")], ..C6 };
const ALONE: (i64, crate::row::Act) = (0, Cut("A", "a p q"));

/// Of the two remaining masters `a` reaches only `B`, so it gets one of the two votes that it
/// needs.
const ONE_VOTE: [(i64, crate::row::Act); 2] = [(0, Cut("a", "C")), (200, Run("a", FORCE))];

/// Moves the slot of `bar` from `A` to `B`, with the key.
const MOVE_BAR: [(i64, crate::row::Act); 4] = [
    (0, Run("A", "SET bar 1 PX 60000")),
    (100, Run("B", "CLUSTER SETSLOT 5061 IMPORTING <A>")),
    (200, Run("A", "CLUSTER SETSLOT 5061 MIGRATING <B>")),
    (300, Run("A", "MIGRATE {B} 6379 bar 0 5000")),
];

/// The form of a client's release of a lock: its key, and two more keys of the slot.
const UNLOCK: &str = "EVAL \"return redis.call('del', KEYS[1])\" 3 bar channel5522 latch5838";
const ASKING_UNLOCK: &str = "ASKING; EVAL \"return redis.call('del', KEYS[1])\" 3 bar channel5522 latch5838";

/// Five keys of the slot of `bar`.
const FIVE: &str = "EXISTS bar lock3362 lock6410 lock13067 lock16715";

/// Seen when the key expires, by the reply to a PTTL.
const EXPIRES: Sight = see("expires");

/// Expects the loss of the writes that the replica lacks, and of those until the old master learns
/// of the failover.
const BEHIND: &[Expect] = &[
    Takes("promotion", At(300), First(PROMOTED), 0, 350),
    Takes("demotion after it", First(PROMOTED), First(DEMOTED), -100, 200),
    Takes("first write lost", At(0), First(LOST), -50, 50),
    Takes("last write lost", At(300), Last(LOST), -50, 400),
];

pub(super) const ROWS: &[Row] = &[
    Row {
        id: "T52",
        about: "a replica has one vote of two, and another one of the same master asks within two node timeouts; a third one later",
        rig: THREE_OF_A,
        watches: &[Views],
        acts: &[ALONE, ONE_VOTE[0], ONE_VOTE[1], (3_500, Run("p", FORCE)), (8_500, Run("q", FORCE))],
        lasts: 11_000,
        expect: &[
            Answers("a", FORCE, "OK"),
            Answers("p", FORCE, "OK"),
            Never(PROMOTED),
            // B has already voted about A, so it refuses; p has only C's vote.
            Never(see("master").about("p")),
            Takes("the third is elected", At(8_500), First(see("master").about("q")), 0, 400),
        ],
        ..CLUSTER_ROW
    },
    Row {
        id: "T52a",
        about: "the same, and the other one asks after two node timeouts",
        rig: THREE_OF_A,
        watches: &[Views],
        acts: &[ALONE, ONE_VOTE[0], ONE_VOTE[1], (4_800, Run("p", FORCE))],
        lasts: 7_000,
        expect: &[
            Answers("p", FORCE, "OK"),
            Never(PROMOTED),
            Takes("it is elected", At(4_800), First(see("master").about("p")), 0, 400),
        ],
        ..CLUSTER_ROW
    },
    Row {
        id: "T54",
        about: "CLUSTER FAILOVER, with 2,000 writes a second at the master",
        watches: &[Views, Floods("A")],
        acts: &[(0, Run("a", FAIL_OVER))],
        lasts: 4_000,
        expect: &[
            Answers("a", FAIL_OVER, "OK"),
            Takes("promotion", At(0), First(PROMOTED), 0, 400),
            Takes("demotion after it", First(PROMOTED), First(DEMOTED), -100, 200),
            Takes(
                "no write is answered, for",
                Last(ACCEPTED.from(-1_000)),
                First(REFUSED.about("MOVED")),
                0,
                500,
            ),
            // Accepted in the second before zero, and until the pause.
            Count(ACCEPTED.from(-1_000), 1_900, 2_600),
            Never(REFUSED.about("CLUSTERDOWN")),
            Never(LOST),
            Never(see("doubled")),
            // The postponed writes are refused, and none was executed before.
            Never(see("refused and kept")),
            Count(see("epoch").about("a 7"), 6, 6),
            Never(see("epoch").about(" 8")),
        ],
        ..CLUSTER_ROW
    },
    Row {
        id: "T54a",
        about: "CLUSTER FAILOVER FORCE, with a writer at the master, whose writes have not reached the replica for 300 ms",
        watches: &[Views, Writes("A")],
        acts: &[(0, CutOneWay("A", "a")), (300, Run("a", FORCE)), (1_500, HealOneWay("A", "a"))],
        lasts: 4_000,
        expect: BEHIND,
        ..CLUSTER_ROW
    },
    Row {
        id: "T54b",
        about: "the same with TAKEOVER",
        watches: &[Views, Writes("A")],
        acts: &[(0, CutOneWay("A", "a")), (300, Run("a", TAKE_OVER)), (1_500, HealOneWay("A", "a"))],
        lasts: 4_000,
        expect: BEHIND,
        ..CLUSTER_ROW
    },
    Row {
        id: "T54c",
        about: "a master is cut off with a writer, and a second later its replica is told CLUSTER FAILOVER TAKEOVER; a node timeout of 5 s",
        rig: Rig { node_timeout: 5_000, ..C6 },
        watches: &[Views, Writes("A")],
        acts: &[(0, Cut("A", "B C a b c")), (1_000, Run("a", TAKE_OVER))],
        lasts: 10_000,
        expect: &[
            Answers("a", TAKE_OVER, "OK"),
            Takes("promotion", At(1_000), First(PROMOTED), 0, 100),
            Takes("last write taken", At(0), Last(ACCEPTED), 4_900, 7_800),
            Takes("both take writes, for", First(PROMOTED), Last(ACCEPTED), 3_800, 6_800),
            Takes("last write lost", At(0), Last(LOST), 4_900, 7_800),
        ],
        ..CLUSTER_ROW
    },
    Row {
        id: "T54d",
        about: "the same with FORCE: the others vote for the replica",
        rig: Rig { node_timeout: 5_000, ..C6 },
        watches: &[Views, Writes("A")],
        acts: &[(0, Cut("A", "B C a b c")), (1_000, Run("a", FORCE))],
        lasts: 10_000,
        expect: &[
            Answers("a", FORCE, "OK"),
            Takes("promotion", At(1_000), First(PROMOTED), 0, 350),
            Takes("last write taken", At(0), Last(ACCEPTED), 4_900, 7_800),
            Takes("both take writes, for", First(PROMOTED), Last(ACCEPTED), 3_550, 6_800),
            Takes("last write lost", At(0), Last(LOST), 4_900, 7_800),
        ],
        ..CLUSTER_ROW
    },
    Row {
        id: "T55",
        about: "CLUSTER FAILOVER while the master stands still for 8 s; a node timeout of 20 s",
        rig: PATIENT,
        watches: &[Views, Writes("A")],
        acts: &[(0, Freeze("A")), (500, Run("a", FAIL_OVER)), (8_000, Thaw("A"))],
        lasts: 16_000,
        expect: &[
            Answers("a", FAIL_OVER, "OK"),
            Never(PROMOTED),
            Takes("its writes go on, after waking", At(8_000), Last(ACCEPTED), 7_800, 8_100),
            // It executes the delayed request although the replica has given up.
            Takes("none is answered until", At(8_000), First(ACCEPTED.from(8_500)), 4_700, 5_400),
            Never(LOST),
        ],
        ..CLUSTER_ROW
    },
    Row {
        id: "T55a",
        about: "the same with FORCE",
        rig: PATIENT,
        watches: &[Views],
        acts: &[(0, Freeze("A")), (500, Run("a", FORCE)), (8_000, Thaw("A"))],
        lasts: 11_000,
        expect: &[
            Answers("a", FORCE, "OK"),
            Takes("promotion", At(500), First(PROMOTED), 0, 350),
            Takes("demotion, after waking", At(8_000), First(DEMOTED), 0, 500),
        ],
        ..CLUSTER_ROW
    },
    Row {
        id: "T55b",
        about: "the same with TAKEOVER",
        rig: PATIENT,
        watches: &[Views],
        acts: &[(0, Freeze("A")), (500, Run("a", TAKE_OVER)), (8_000, Thaw("A"))],
        lasts: 11_000,
        expect: &[
            Answers("a", TAKE_OVER, "OK"),
            Takes("promotion", At(500), First(PROMOTED), 0, 100),
            Takes("demotion, after waking", At(8_000), First(DEMOTED), 0, 500),
        ],
        ..CLUSTER_ROW
    },
    Row {
        id: "T55c",
        about: "CLUSTER FAILOVER while the master stands still for 8 s; a node timeout of 2 s",
        watches: &[Views],
        acts: &[(0, Freeze("A")), (500, Run("a", FAIL_OVER)), (8_000, Thaw("A"))],
        lasts: 11_000,
        expect: &[
            Answers("a", FAIL_OVER, "OK"),
            Takes("`fail`", At(0), First(see("fail").by("a").about("A")), 1_900, 4_500),
            // Without the delay of other elections, which is at least 500 ms.
            Takes("promotion after it", First(see("fail").by("a").about("A")), First(PROMOTED), -100, 300),
            Takes("demotion, after waking", At(8_000), First(DEMOTED), 0, 500),
        ],
        ..CLUSTER_ROW
    },
    Row {
        id: "T56",
        about: "CLUSTER FAILOVER while clients wait at the master",
        watches: &[Views],
        acts: &[(0, Run("A", "BLPOP bar 0")), (0, Run("A", "WAIT 5 0")), (500, Run("a", FAIL_OVER))],
        lasts: 4_000,
        expect: &[
            Takes("promotion", At(500), First(PROMOTED), 0, 400),
            Answers("A", "BLPOP bar 0", "UNBLOCKED force unblock from blocking operation, *"),
            Answers("A", "WAIT 5 0", "UNBLOCKED force unblock from blocking operation, *"),
            Count(see("disconnected").by("A"), 2, 2),
        ],
        ..CLUSTER_ROW
    },
    Row {
        id: "T57",
        about: "a master loses its only replica, and another one has two",
        rig: TWO_OF_A,
        watches: &[Views],
        acts: &[(0, Kill("b"))],
        lasts: 16_000,
        expect: &[
            Takes("`fail`", At(0), First(see("fail").about("b")), 1_900, 4_500),
            Takes(
                "a replica migrates, after that",
                First(see("fail").about("b")),
                First(see("replica").about(" of B")),
                4_900,
                6_000,
            ),
            Count(see("replica").by("B").about("{first a p} of B"), 1, 1),
            Never(see("replica").about("{last a p} of B")),
        ],
        ..CLUSTER_ROW
    },
    Row {
        id: "T57a",
        about: "the same with cluster-migration-barrier 2",
        rig: Rig { options: &[("", "cluster-migration-barrier", "2")], ..TWO_OF_A },
        watches: &[Views],
        acts: &[(0, Kill("b"))],
        lasts: 16_000,
        expect: &[
            Takes("`fail`", At(0), First(see("fail").about("b")), 1_900, 4_500),
            Never(see("replica").about(" of B")),
        ],
        ..CLUSTER_ROW
    },
    Row {
        id: "T58",
        about: "two masters take a new epoch while one of them is cut off for a second",
        watches: &[Views],
        acts: &[
            (0, Cut("A", "B C a b c")),
            (500, Run("A B", "CLUSTER BUMPEPOCH")),
            (1_000, Heal("A", "B C a b c")),
        ],
        lasts: 8_000,
        expect: &[
            Answers("A", "CLUSTER BUMPEPOCH", "BUMPED 7"),
            Answers("B", "CLUSTER BUMPEPOCH", "BUMPED 7"),
            Takes(
                "the one with the smaller id takes the next, after the heal",
                At(1_000),
                First(see("epoch").about("{first A B} 8")),
                0,
                2_200,
            ),
            Takes("all know, after the heal", At(1_000), Last(see("epoch").about("{first A B} 8")), 0, 4_500),
            Count(see("epoch").about("{first A B} 8"), 6, 6),
            Never(see("epoch").about("{last A B} 8")),
            Never(see("epoch").about(" 9")),
        ],
        ..CLUSTER_ROW
    },
    Row {
        id: "T58a",
        about: "two replicas take over their masters, on two sides of a partition that lasts a second",
        watches: &[Views],
        acts: &[(0, Cut("A a", "B C b c")), (500, Run("a b", TAKE_OVER)), (1_000, Heal("A a", "B C b c"))],
        lasts: 8_000,
        expect: &[
            Count(see("epoch").by("a").about("a 7"), 1, 1),
            Count(see("epoch").by("b").about("b 7"), 1, 1),
            Takes(
                "the one with the smaller id takes the next, after the heal",
                At(1_000),
                First(see("epoch").about("{first a b} 8")),
                0,
                2_200,
            ),
            Takes("all know, after the heal", At(1_000), Last(see("epoch").about("{first a b} 8")), 0, 4_500),
            Count(see("epoch").about("{first a b} 8"), 6, 6),
            Never(see("epoch").about("{last a b} 8")),
            Never(see("epoch").about(" 9")),
        ],
        ..CLUSTER_ROW
    },
    Row {
        id: "T58b",
        about: "two masters take a new epoch at once",
        watches: &[Views],
        acts: &[(0, Run("A B", "CLUSTER BUMPEPOCH"))],
        lasts: 6_000,
        expect: &[
            Answers("A", "CLUSTER BUMPEPOCH", "BUMPED 7"),
            Answers("B", "CLUSTER BUMPEPOCH", "BUMPED 7"),
            Takes("one of them takes the next", At(0), First(see("epoch").about(" 8")), 0, 2_200),
            Takes("all know", At(0), Last(see("epoch").about(" 8")), 0, 4_500),
            Never(see("epoch").about(" 9")),
        ],
        ..CLUSTER_ROW
    },
    Row {
        id: "T60",
        about: "a slot moves while a lock of it is held, and a rival asks at each step",
        watches: &[Views],
        acts: &[
            MOVE_BAR[0],
            MOVE_BAR[1],
            MOVE_BAR[2],
            (250, Run("A", "SET bar 3 NX")),
            (260, Run("A", UNLOCK)),
            (270, Run("A", "PEXPIRE bar 59000")),
            (280, Run("A", "PTTL bar")),
            MOVE_BAR[3],
            (900, Run("B", "ASKING; PTTL bar")),
            (1_000, Run("A", "SET bar 4 NX")),
            (1_000, Run("B", "SET bar 4 NX")),
            (1_000, Run("B", "ASKING; SET bar 4 NX")),
            (1_000, Run("B", ASKING_UNLOCK)),
            (1_100, Run("A", "PEXPIRE bar 58000")),
            (1_100, Run("B", "ASKING; PEXPIRE bar 58000")),
            (1_500, Run("B", "CLUSTER SETSLOT 5061 NODE <B>")),
            (1_600, Run("A", "CLUSTER SETSLOT 5061 NODE <B>")),
            (3_000, Run("A", "SET bar 5 NX")),
            (3_000, Run("B", "SET bar 6 NX")),
            (3_100, Run("B", "PEXPIRE bar 57000")),
            (3_200, Run("B", UNLOCK)),
        ],
        lasts: 4_000,
        expect: &[
            Answers("A", "SET bar 3 NX", "nil"),
            // Two of its three keys never existed.
            Answers("A", UNLOCK, "TRYAGAIN *"),
            Answers("A", "PEXPIRE bar 59000", "1"),
            Answers("A", "MIGRATE {B} 6379 bar 0 5000", "OK"),
            // The rest of the lease moves, and counts from the arrival.
            Takes(
                "the lease is longer by the transfer",
                First(EXPIRES.by("A")),
                First(EXPIRES.by("B")),
                -5,
                100,
            ),
            Answers("A", "SET bar 4 NX", "ASK 5061 B:6379"),
            Answers("B", "SET bar 4 NX", "MOVED 5061 A:6379"),
            Answers("B", "ASKING; SET bar 4 NX", "nil"),
            Answers("B", ASKING_UNLOCK, "TRYAGAIN *"),
            Answers("A", "PEXPIRE bar 58000", "ASK 5061 B:6379"),
            Answers("B", "ASKING; PEXPIRE bar 58000", "1"),
            Answers("A", "SET bar 5 NX", "MOVED 5061 B:6379"),
            Answers("B", "SET bar 6 NX", "nil"),
            Answers("B", "PEXPIRE bar 57000", "1"),
            Answers("B", UNLOCK, "1"),
        ],
        ..CLUSTER_ROW
    },
    Row {
        id: "T62",
        about: "the source of a migration is killed when the key has moved: its replica does not know of the migration",
        watches: &[Views],
        acts: &[
            MOVE_BAR[0],
            MOVE_BAR[1],
            MOVE_BAR[2],
            MOVE_BAR[3],
            (1_000, Kill("A")),
            (9_000, Run("a", "SET bar 2 NX")),
            (9_500, Run("B", "CLUSTER COUNTKEYSINSLOT 5061")),
            // The move is completed rather than undone.
            (9_700, Run("B", "MIGRATE {a} 6379 bar 0 5000")),
            (10_000, Run("B", "CLUSTER SETSLOT 5061 NODE <B>")),
            (11_500, Run("B", "GET bar")),
            (11_500, Run("a", "GET bar")),
            (11_500, Run("a", "CLUSTER COUNTKEYSINSLOT 5061")),
        ],
        lasts: 12_500,
        expect: &[
            Answers("A", "MIGRATE {B} 6379 bar 0 5000", "OK"),
            // A second grant of the lock.
            Answers("a", "SET bar 2 NX", "OK"),
            Answers("B", "CLUSTER COUNTKEYSINSLOT 5061", "1"),
            // B takes no news of a slot that it imports: for B the failed master still owns the
            // slot.
            Answers("B", "MIGRATE {a} 6379 bar 0 5000", "CLUSTERDOWN The cluster is down"),
            Answers("B", "CLUSTER SETSLOT 5061 NODE <B>", "OK"),
            // Of the two locks the first one remains.
            Answers("B", "GET bar", "1"),
            Answers("a", "GET bar", "MOVED 5061 B:6379"),
            Answers("a", "CLUSTER COUNTKEYSINSLOT 5061", "0"),
        ],
        ..CLUSTER_ROW
    },
    Row {
        id: "T63",
        about: "the target of a migration is killed when the key has moved, and started again when it is replaced",
        watches: &[Views],
        acts: &[
            MOVE_BAR[0],
            MOVE_BAR[1],
            MOVE_BAR[2],
            MOVE_BAR[3],
            (1_000, Kill("B")),
            (9_000, Start("B")),
            (12_000, Run("A", "GET bar")),
            (12_000, Run("B", "GET bar")),
            (12_500, Run("A", "SET bar 2 NX")),
        ],
        lasts: 13_500,
        expect: &[
            Answers("A", "GET bar", "ASK 5061 B:6379"),
            Answers("B", "GET bar", "MOVED 5061 A:6379"),
            Answers("A", "SET bar 2 NX", "ASK 5061 B:6379"),
        ],
        ..CLUSTER_ROW
    },
    Row {
        id: "T64",
        about: "the target of a migration takes the slot while the source has five keys yet",
        watches: &[Views],
        acts: &[
            (0, Run("A", "MSET bar 1 lock3362 1 lock6410 1 lock13067 1 lock16715 1")),
            MOVE_BAR[1],
            MOVE_BAR[2],
            (900, Run("A", FIVE)),
            (1_000, Run("B", "CLUSTER SETSLOT 5061 NODE <B>")),
            (2_500, Run("A a", "CLUSTER COUNTKEYSINSLOT 5061")),
            (2_500, Run("B", FIVE)),
            (2_600, Run("B", "SET bar 2 NX")),
        ],
        lasts: 3_500,
        expect: &[
            Answers("A", FIVE, "5"),
            Answers("B", "CLUSTER SETSLOT 5061 NODE <B>", "OK"),
            Answers("A", "CLUSTER COUNTKEYSINSLOT 5061", "0"),
            // The replica of the source does not receive the deletions.
            Answers("a", "CLUSTER COUNTKEYSINSLOT 5061", "5"),
            Answers("B", FIVE, "0"),
            Answers("B", "SET bar 2 NX", "OK"),
        ],
        ..CLUSTER_ROW
    },
];
