//! Masters of a cluster that are lost, paused or cut off.

use super::{ACCEPTED, LOST, REFUSED};
use crate::row::{
    Act::{self, Cut, CutOneWay, Freeze, Heal, HealOneWay, Kill, Run, Slow, Start, Step, Thaw},
    C6, CLUSTER_ROW,
    Expect::{self, Answers, Count, Differ, Never, Takes},
    Moment::{At, First, Last},
    Rig, Row, Sight,
    Watch::{Views, Writes},
    see,
};

const A_DOWN: Sight = see("fail?").about("A");
const A_FAILED: Sight = see("fail").about("A");
const PROMOTED: Sight = see("master").about("a");
const DEMOTED: Sight = see("replica").by("A").about("A of a");
const CLOSED: Sight = see("state").about("fail");
const OPEN: Sight = see("state").about("ok");
const CLUSTER_DOWN: Sight = REFUSED.about("CLUSTERDOWN");

/// `A` has two replicas.
const TWO_OF_A: Rig = Rig { more: &[("p", "A")], ..C6 };

/// All but `A`.
const OTHERS: &str = "B C a b c";

/// A majority votes, but the replica does not ask the master.
const FORCE: &str = "CLUSTER FAILOVER FORCE";

/// The last epoch of a master that `B` shows.
const fn epoch_of(master: &'static str) -> Sight {
    see("has epoch").by("B").about(master)
}

/// Milliseconds from one kill of T71 to the next.
const CYCLE: i64 = 14_000;

const KILLED_AND_BACK: [(i64, Act); 30] = {
    let mut acts = [(0, Kill("A")); 30];
    let mut at = 0;
    while at < 10 {
        let (kill, begun) = (3 * at, CYCLE * at as i64);
        acts[kill] = (begun, Kill("A"));
        acts[kill + 1] = (begun + 6_000, Start("A"));
        acts[kill + 2] = (begun + 12_000, Run("A", "CLUSTER FAILOVER"));
        at += 1;
    }
    acts
};

/// Expects the cluster open again within one and a half node timeouts and three seconds.
const fn open_after(what: &'static str, kills: i64) -> Expect {
    Takes(what, At(kills * CYCLE), First(OPEN.by("B").from(kills * CYCLE)), 2_500, 6_000)
}

pub(super) const ROWS: &[Row] = &[
    Row {
        id: "T40",
        about: "nothing happens for a minute",
        watches: &[Views],
        lasts: 60_000,
        expect: &[
            // One ping per second, and one to each node that was silent for half the node timeout:
            // five nodes in turn.
            Count(see("ping").by("A").from(0), 60, 320),
            Never(see("fail?")),
            Never(see("state")),
            Never(see("epoch")),
        ],
        ..CLUSTER_ROW
    },
    Row {
        id: "T41",
        about: "six nodes that know nothing become a cluster",
        rig: Rig { starts_at_zero: true, ..C6 },
        watches: &[Views],
        lasts: 12_000,
        expect: &[
            Takes("all is well", At(0), First(see("made")), 2_000, 7_000),
            // All begin without an epoch: of two with the same epoch, the one with the smaller ID
            // takes the next.
            Count(see("epoch").by("A").about("A"), 0, 6),
            Never(see("epoch").about("{last A B C a b c} ")),
            Differ(epoch_of("A "), epoch_of("B ")),
            Differ(epoch_of("A "), epoch_of("C ")),
            Differ(epoch_of("B "), epoch_of("C ")),
            Never(see("fail")),
        ],
        ..CLUSTER_ROW
    },
    Row {
        id: "T42",
        about: "a master is killed, with a writer at another one",
        watches: &[Views, Writes("B")],
        acts: &[(0, Kill("A"))],
        lasts: 9_000,
        expect: &[
            Takes("first `fail?`", At(0), First(A_DOWN), 1_900, 3_200),
            Takes("`fail` after it", First(A_DOWN), First(A_FAILED), 0, 1_600),
            Takes("`fail` everywhere after that", First(A_FAILED), Last(A_FAILED), 0, 100),
            Takes("promotion after `fail`", First(A_FAILED), First(PROMOTED), 480, 1_300),
            Takes("known everywhere after that", First(PROMOTED), Last(PROMOTED), 0, 100),
            Takes("no key is served, for", First(CLUSTER_DOWN), Last(CLUSTER_DOWN), 440, 1_400),
            Count(PROMOTED, 5, 5),
            Never(LOST),
        ],
        ..CLUSTER_ROW
    },
    Row {
        id: "T42a",
        about: "the same without full coverage",
        rig: Rig { options: &[("", "cluster-require-full-coverage", "no")], ..C6 },
        watches: &[Views, Writes("B")],
        acts: &[(0, Kill("A")), (1_500, Run("B", "GET bar"))],
        lasts: 9_000,
        expect: &[
            Never(REFUSED),
            Answers("B", "GET bar", "MOVED 5061 A:6379"),
            Takes("promotion", At(0), First(PROMOTED), 2_500, 5_700),
        ],
        ..CLUSTER_ROW
    },
    Row {
        id: "T42b",
        about: "the same, and its replica is killed with it: the two other masters go on naming the dead one",
        rig: Rig { options: &[("", "cluster-require-full-coverage", "no")], ..C6 },
        watches: &[Views, Writes("B")],
        acts: &[(0, Kill("A a")), (7_000, Run("B C", "GET bar"))],
        lasts: 9_000,
        expect: &[
            Takes("`fail` at one", At(0), First(A_FAILED.by("B")), 1_900, 4_500),
            Takes("`fail` at the other", At(0), First(A_FAILED.by("C")), 1_900, 4_500),
            Never(CLOSED),
            Never(REFUSED),
            Answers("B", "GET bar", "MOVED 5061 A:6379"),
            Answers("C", "GET bar", "MOVED 5061 A:6379"),
            Never(LOST),
        ],
        ..CLUSTER_ROW
    },
    Row {
        id: "T43",
        about: "a master with two replicas is killed, and one of them lacks its last writes",
        rig: TWO_OF_A,
        watches: &[Views, Writes("A")],
        acts: &[(0, Cut("A", "p")), (1_000, Kill("A"))],
        lasts: 9_000,
        expect: &[
            Takes("promotion after `fail`", First(A_FAILED), First(PROMOTED), 480, 1_300),
            Never(see("master").about("p")),
            Count(LOST, 0, 1),
        ],
        ..CLUSTER_ROW
    },
    Row {
        id: "T43a",
        about: "the same, and no master hears the replica that has all of them",
        rig: TWO_OF_A,
        watches: &[Views, Writes("A")],
        acts: &[(0, Cut("A", "p")), (1_000, Kill("A")), (1_000, CutOneWay("a", "B C"))],
        lasts: 9_000,
        expect: &[
            // A replica that lacks data asks one second later than one with the most data.
            Takes(
                "promotion of the other one after `fail`",
                First(A_FAILED),
                First(see("master").about("p")),
                1_480,
                2_300,
            ),
            Never(PROMOTED),
            Takes("first write lost", At(0), First(LOST), -100, 100),
            Takes("last write lost", At(1_000), Last(LOST), -200, 50),
        ],
        ..CLUSTER_ROW
    },
    Row {
        id: "T44",
        about: "a killed master is started again 10 s later",
        watches: &[Views, Writes("A")],
        acts: &[(0, Kill("A")), (10_000, Start("A"))],
        lasts: 15_000,
        expect: &[
            Takes("it is a replica", At(10_000), First(DEMOTED), 0, 1_700),
            Never(ACCEPTED.from(10_000)),
        ],
        ..CLUSTER_ROW
    },
    Row {
        id: "T44a",
        about: "a master without persistence is killed, and started again a second later, with a node timeout of 5 s",
        rig: Rig { node_timeout: 5_000, ..C6 },
        watches: &[Views, Writes("A")],
        acts: &[
            (-500, Run("A", "SET bar 1")),
            (0, Kill("A")),
            (1_000, Start("A")),
            (6_000, Run("a", "DBSIZE")),
        ],
        lasts: 9_000,
        expect: &[
            Never(see("fail")),
            Never(see("master")),
            // Closed for two seconds after its start.
            Takes("it takes writes, after its start", At(1_000), First(ACCEPTED.from(1_000)), 1_900, 2_600),
            Takes("first write lost", At(-1_000), First(LOST.from(-1_000)), -50, 100),
            Takes("last write lost", At(0), Last(LOST.from(-1_000)), -100, 0),
            // Only the writer's list exists: the replica is as empty as its master was.
            Answers("a", "DBSIZE", "1"),
        ],
        ..CLUSTER_ROW
    },
    Row {
        id: "T45",
        about: "a master is cut off with a writer for 20 s",
        watches: &[Views, Writes("A")],
        acts: &[(0, Cut("A", OTHERS)), (20_000, Heal("A", OTHERS))],
        lasts: 25_000,
        expect: &[
            Takes("last write taken", At(0), Last(ACCEPTED), 1_900, 3_300),
            Takes("promotion", At(0), First(PROMOTED), 2_500, 5_700),
            Takes("it is a replica, after the heal", At(20_000), First(DEMOTED), 0, 1_200),
            Takes("first write lost", At(0), First(LOST), -100, 100),
            Takes("last write lost", At(0), Last(LOST), 1_900, 3_300),
        ],
        ..CLUSTER_ROW
    },
    Row {
        id: "T45a",
        about: "the same with a node timeout of 5 s",
        rig: Rig { node_timeout: 5_000, ..C6 },
        watches: &[Views, Writes("A")],
        acts: &[(0, Cut("A", OTHERS))],
        lasts: 13_000,
        expect: &[
            Takes("last write taken", At(0), Last(ACCEPTED), 4_900, 7_800),
            Takes("promotion", At(0), First(PROMOTED), 5_500, 11_000),
            // At most half a node timeout less the delay of the election.
            Takes("both take writes, for", First(PROMOTED), Last(ACCEPTED), -5_000, 1_900),
        ],
        ..CLUSTER_ROW
    },
    Row {
        id: "T45b",
        about: "the same with a node timeout of 15 s",
        rig: Rig { node_timeout: 15_000, ..C6 },
        watches: &[Views, Writes("A")],
        acts: &[(0, Cut("A", OTHERS))],
        lasts: 32_000,
        expect: &[
            Takes("last write taken", At(0), Last(ACCEPTED), 14_900, 22_800),
            Takes("promotion", At(0), First(PROMOTED), 15_500, 31_000),
            Takes("both take writes, for", First(PROMOTED), Last(ACCEPTED), -15_000, 6_900),
        ],
        ..CLUSTER_ROW
    },
    Row {
        id: "T46",
        about: "a master is cut off with a writer: for how long both take writes",
        watches: &[Views, Writes("A")],
        acts: &[(0, Cut("A", OTHERS))],
        lasts: 8_000,
        expect: &[Takes("both take writes, for", First(PROMOTED), Last(ACCEPTED), -3_500, 400)],
        seeds: 2,
        ..CLUSTER_ROW
    },
    Row {
        id: "T47",
        about: "a master is cut off together with its replica for 12 s",
        watches: &[Views, Writes("A")],
        acts: &[(0, Cut("A a", "B C b c")), (12_000, Heal("A a", "B C b c"))],
        lasts: 18_000,
        expect: &[
            Takes("last write taken before the heal", At(0), First(CLUSTER_DOWN), 1_900, 3_300),
            Never(PROMOTED),
            Takes("the majority is closed", At(0), First(CLOSED.by("B")), 1_900, 4_500),
            Takes("it opens, after the heal", At(12_000), First(OPEN.by("B").from(12_000)), 0, 2_500),
            Takes(
                "the master opens, after the heal",
                At(12_000),
                First(OPEN.by("A").from(12_000)),
                1_900,
                4_500,
            ),
            Never(LOST),
        ],
        ..CLUSTER_ROW
    },
    Row {
        id: "T47a",
        about: "the same for 4.5 s: that the master has failed reaches its replica after the heal",
        watches: &[Views, Writes("A")],
        acts: &[(0, Cut("A a", "B C b c")), (4_500, Heal("A a", "B C b c"))],
        lasts: 10_000,
        expect: &[
            Takes("`fail` at the majority", At(0), First(A_FAILED.by("B")), 1_900, 4_400),
            // As after any failure: the master is healthy, but the majority still takes it for
            // failed.
            Takes("promotion after the heal", At(4_500), First(PROMOTED), 480, 1_300),
            Takes("the healthy master is a replica", First(PROMOTED), First(DEMOTED), -100, 300),
            // Its replica has all its writes.
            Never(LOST),
        ],
        ..CLUSTER_ROW
    },
    Row {
        id: "T48",
        about: "a master stands still for 7 s, with a write on its way",
        watches: &[Views, Writes("A")],
        acts: &[(0, Freeze("A")), (7_000, Thaw("A"))],
        lasts: 12_000,
        expect: &[
            Takes("promotion", At(0), First(PROMOTED), 2_500, 5_700),
            Takes("the write is taken on waking", At(7_000), First(ACCEPTED.from(6_990)), 0, 100),
            Takes("and lost", At(7_000), First(LOST.from(6_990)), 0, 100),
            Takes("it is a replica, after waking", At(7_000), First(DEMOTED), 0, 500),
        ],
        ..CLUSTER_ROW
    },
    Row {
        id: "T49",
        about: "one of two masters is killed",
        rig: Rig { masters: 2, ..C6 },
        watches: &[Views],
        acts: &[(0, Kill("A")), (6_000, Run("a", FORCE)), (14_000, Run("a", "CLUSTER FAILOVER TAKEOVER"))],
        lasts: 17_000,
        expect: &[
            Takes("`fail?`", At(0), First(A_DOWN.by("B")), 1_900, 3_300),
            Takes("closed", At(0), First(CLOSED.by("B")), 1_900, 3_300),
            Answers("a", FORCE, "OK"),
            Takes("only TAKEOVER helps", At(14_000), First(PROMOTED), 0, 100),
            // With two more masters up again, there is a majority.
            Takes("`fail` only after that", First(PROMOTED), First(A_FAILED), 0, 3_000),
        ],
        ..CLUSTER_ROW
    },
    Row {
        id: "T50",
        about: "a master is killed, and its replica is cut off from another master for 9.5 s: too few votes",
        watches: &[Views],
        acts: &[(0, Kill("A")), (0, Cut("a", "C")), (9_500, Heal("a", "C"))],
        lasts: 24_000,
        expect: &[
            Takes("`fail`", At(0), First(A_FAILED.by("a")), 1_900, 9_700),
            // Elections come every four node timeouts. The request of the first election arrives
            // late: the other master votes then, and refuses the next request within two node
            // timeouts.
            Takes("promotion after the heal", At(9_500), First(PROMOTED), 400, 14_000),
        ],
        note: "Late is worse than never: but for the vote about the request that has waited, the second election would have been won. Where the other master is the one to find the majority, the replica hears nothing of it \
               until the heal, and its first election is won.",
        ..CLUSTER_ROW
    },
    Row {
        id: "T50a",
        about: "a replica is told CLUSTER FAILOVER FORCE while two of three votes are held up for 5 s, and its master is killed a second later",
        watches: &[Views],
        acts: &[
            (0, CutOneWay("A C", "a")),
            (200, Run("a", FORCE)),
            (1_200, Kill("A")),
            (5_000, HealOneWay("A C", "a")),
        ],
        lasts: 13_000,
        expect: &[
            Answers("a", FORCE, "OK"),
            Takes("`fail`, after the kill", At(1_200), First(A_FAILED.by("a")), 1_900, 4_500),
            // Four node timeouts after the failed election, a delay of half a second to a second,
            // and some ticks.
            Takes("promotion, after FORCE", At(200), First(PROMOTED), 8_450, 9_400),
        ],
        ..CLUSTER_ROW
    },
    Row {
        id: "T50b",
        about: "the links from two replicas to the masters that are left are slow, so that another replica hears of a failure before those \
                masters, which refuse their votes; a node timeout of 4 s",
        rig: Rig { node_timeout: 4_000, ..C6 },
        watches: &[Views],
        acts: &[
            // The master still answers its replica. The replica therefore does not find the
            // majority itself, and reports nothing to the others.
            (0, Cut("A", "B C b c")),
            (0, Slow("b c", "B C", 1_500)),
            // Cut off from each other, they cannot find the majority together.
            (4_000, Cut("B", "C")),
            (10_000, Heal("B", "C")),
            (10_000, Kill("A")),
        ],
        lasts: 28_000,
        expect: &[
            Takes("`fail` at the replica", At(0), First(A_FAILED.by("a")), 3_900, 8_400),
            Takes(
                "`fail` at one master after it",
                First(A_FAILED.by("a")),
                First(A_FAILED.by("B")),
                1_200,
                1_800,
            ),
            Takes(
                "`fail` at the other after it",
                First(A_FAILED.by("a")),
                First(A_FAILED.by("C")),
                1_200,
                1_800,
            ),
            // The delay of the first election, four node timeouts, the delay of the second
            // election, and some ticks.
            Takes(
                "promotion after the first `fail`",
                First(A_FAILED.by("a")),
                First(PROMOTED),
                16_900,
                18_500,
            ),
        ],
        ..CLUSTER_ROW
    },
    Row {
        id: "T51",
        about: "two of five masters are killed at once",
        rig: Rig { masters: 5, ..C6 },
        watches: &[Views],
        acts: &[(0, Kill("A B"))],
        lasts: 20_000,
        expect: &[
            Takes("the first promotion", At(0), First(see("master")), 2_500, 6_000),
            // If both ask in one epoch, each master votes for one of them.
            Takes(
                "the second one after it",
                First(PROMOTED),
                First(see("master").about("b")),
                -13_000,
                13_000,
            ),
            Count(see("master").by("C"), 2, 2),
            Differ(see("epoch").by("C").about("a "), see("epoch").by("C").about("b ")),
        ],
        seeds: 2,
        ..CLUSTER_ROW
    },
    Row {
        id: "T53",
        about: "a replica that was cut off from its master for 16 s is too old to replace it, unless it is forced to",
        rig: Rig { options: &[("", "cluster-replica-validity-factor", "1")], ..C6 },
        watches: &[Views],
        acts: &[(0, Cut("A", "a")), (16_000, Kill("A")), (24_000, Run("a", FORCE))],
        lasts: 27_000,
        expect: &[
            Takes("`fail`", At(16_000), First(A_FAILED.by("B")), 1_900, 4_500),
            Answers("a", FORCE, "OK"),
            Takes("only FORCE helps", At(24_000), First(PROMOTED), 0, 400),
        ],
        ..CLUSTER_ROW
    },
    Row {
        id: "T69",
        about: "the wall clock of a master steps by two node timeouts",
        watches: &[Views, Writes("B")],
        acts: &[(0, Step("A", 4_000))],
        lasts: 6_000,
        expect: &[Never(see("fail")), Never(CLOSED), Never(REFUSED), Count(see("fail?"), 0, 5)],
        seeds: 2,
        ..CLUSTER_ROW
    },
    Row {
        id: "T69a",
        about: "the same while another master has not answered it for 1.2 s, and does 0.3 s later",
        watches: &[Views, Writes("C")],
        acts: &[(0, Freeze("B")), (1_200, Step("A", 4_000)), (1_500, Thaw("B"))],
        lasts: 6_000,
        expect: &[
            // A pings B again when the last answer is half a node timeout old: a ping is
            // outstanding by now, and by the stepped clock for four seconds.
            Takes("`fail?` after the step", At(1_200), First(see("fail?").by("A").about("B")), 0, 150),
            Takes("`well` after its answer", At(1_500), First(see("well").by("A").about("B")), 0, 150),
            Count(see("fail?").by("A").about("B"), 1, 1),
            // No other node is silent, and no other clock was stepped.
            Count(see("fail?"), 1, 1),
            Never(see("fail")),
            Never(CLOSED),
            Never(REFUSED),
        ],
        ..CLUSTER_ROW
    },
    Row {
        id: "T70",
        about: "what one master sends does not reach another one for 8 s",
        watches: &[Views],
        acts: &[(0, CutOneWay("A", "B")), (8_000, HealOneWay("A", "B"))],
        lasts: 14_000,
        expect: &[
            Takes("`fail?` of one", At(0), First(A_DOWN.by("B")), 1_900, 3_700),
            Takes("`fail?` of the other", At(0), First(see("fail?").by("A").about("B")), 1_900, 3_700),
            Never(see("fail?").by("C")),
            Never(see("fail")),
            Never(CLOSED),
            Takes("well again", At(8_000), Last(see("well").by("B").about("A")), 0, 2_500),
        ],
        ..CLUSTER_ROW
    },
    Row {
        id: "T71",
        about: "20 failovers of one of three shards in a row, under load: ten times its master is killed, comes back, and takes over by \
                CLUSTER FAILOVER",
        rig: Rig { more: &[("p", "A"), ("q", "B"), ("r", "C")], ..C6 },
        watches: &[Views, Writes("A")],
        acts: &KILLED_AND_BACK,
        lasts: 10 * CYCLE,
        expect: &[
            // Once more if a node answered late on a busy machine.
            Count(CLOSED.by("B"), 10, 11),
            Count(OPEN.by("B"), 10, 11),
            open_after("open, after the first kill", 0),
            open_after("after the second", 1),
            open_after("the third", 2),
            open_after("the fourth", 3),
            open_after("the fifth", 4),
            open_after("the sixth", 5),
            open_after("the seventh", 6),
            open_after("the eighth", 7),
            open_after("the ninth", 8),
            open_after("the tenth", 9),
            // The client writes one number at a time: at each kill one number may have been
            // acknowledged that no replica has.
            Count(LOST, 0, 10),
        ],
        ..CLUSTER_ROW
    },
];
