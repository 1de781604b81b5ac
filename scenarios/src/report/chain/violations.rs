//! For each checker, violations that a fault or a clock caused, and the links that their chains
//! must have.

use std::time::Duration;

use super::tests::{announces, chain};
use crate::judge::{
    checker,
    history::{
        Bounds, Call, Fence, History, Life, LockKind as Guarantee, LossCause, Mode, Outcome, Role, Wait,
        Wake, story::Story,
    },
};

/// Adds a client that contributes to no violation: it is paused, and its clocks are wrong.
fn beside(story: Story) -> Story {
    story.at(0).clocks("c4", [3_600_000, 0, 0], [0, -500_000, -500_000]).fault_until(
        90_000,
        "c4 stands still",
        &["c4"],
    )
}

fn of(kind: Guarantee) -> Story {
    beside(Story::of_kind(kind))
}

fn one() -> Story {
    beside(Story::one_node())
}

/// Makes r a replica of m.
fn replicated(kind: Guarantee) -> Story {
    beside(Story::failover(kind)).became("r", Role::Replica)
}

const STEP: &str = "the wall clock of m stepped +31 s";

/// Steps the wall clock of m, so that every lease since the beginning of the run is over by it.
fn steps(story: Story, at: i64) -> Story {
    story.at(at).fault(STEP, &["m"]).clocks("m", [at + 31_000, at, at], [0; 3]).at(at + 1)
}

fn cut(story: Story, from: i64, until: i64, client: &str) -> Story {
    story.at(from).fault_until(until, "nothing gets through", &[client, "m"])
}

/// c1 is paused while its lease of ten seconds ends and c2 gets the lock, and writes when it
/// continues.
fn writes_late(token: [Option<u64>; 2]) -> Story {
    let gets = |story: Story, client: &str, token: Option<u64>| {
        let story = story.asks(client);
        let story = match token {
            Some(token) => story.granted_with("m", client, 10_000, token),
            None => story.granted("m", client, 10_000),
        };
        story.believes(client, 30_000)
    };
    let story =
        gets(one().at(1_000), "c1", token[0]).at(1_500).fault_until(20_000, "c1 stands still", &["c1"]);
    let story = gets(story.at(11_001).vanished("m", "c1", LossCause::Expired).at(11_002), "c2", token[1]);
    story.at(12_000).wrote("c2", token[1], 11_999).at(20_001).wrote("c1", token[0], 20_000)
}

/// Returns, for each checker, violations that a fault or a clock caused: the checker, a title, the
/// history, and the texts that the chain must have in this order.
fn violations() -> Vec<(&'static str, &'static str, History, &'static [&'static str])> {
    let bounds = Bounds { progress: Duration::from_secs(5), ..Bounds::default() };
    let both = |story: Story| {
        let story = cut(story.bounds(bounds).at(1).asks("c1").about("cash").asks("c1"), 2, 3_000, "c1");
        let story =
            story.at(3).about("stock").granted("m", "c1", 10_000).at(4).returns("c1", Outcome::Refused);
        story.about("cash").returns("c1", Outcome::Refused).ends(20_000)
    };
    let waits = |story: Story| story.at(1).locks("c1", "m", 30_000).at(10).asks("c2").at(11).waiting("c2");
    let latch = || {
        let story = of(Guarantee::Latch { count: 1 }).bounds(bounds).at(100).counted("m", 1);
        story.at(200).calls("c3", Call::Await { wait: Wait::Unbounded }).at(300).calm()
    };
    let slow = one().fault_for_good("the clocks of c1 run slow", &["c1"]).clocks(
        "c1",
        [0; 3],
        [0, -500_000, -500_000],
    );
    let line = beside(Story::failover(Guarantee::Fair))
        .at(1)
        .locks("c1", "m", 30_000)
        .at(10)
        .asks("c2")
        .queue("m", &["c2"]);
    let line = line.at(50).fault("the wall clock of c3 stepped +400 s", &["c3"]).clocks(
        "c3",
        [400_050, 50, 50],
        [0; 3],
    );
    let asked_late = waits(one()).fault_for_good("the clocks of c2 run slow", &["c2"]).clocks(
        "c2",
        [11; 3],
        [0, -900_000, 0],
    );
    vec![
        (
            "l1",
            "expired before its time",
            steps(one().at(1).locks("c1", "m", 30_000), 1_000)
                .vanished("m", "c1", LossCause::Expired)
                .at(1_002)
                .locks("c2", "m", 30_000)
                .ends(60_000),
            &[
                "m   grants",
                STEP,
                "m   by its wall clock 32.000 s have passed since 0.001 s, and 1.000 s in truth",
                "expired",
                "to c2",
            ],
        ),
        (
            "l1",
            "lost with the memory of a node that crashed",
            one()
                .at(1)
                .locks("c1", "m", 30_000)
                .at(1_000)
                .fault("m crashes", &["m"])
                .life("m", Life::Crashed)
                .at(1_010)
                .life("m", Life::Started)
                // The life of another host does not contribute, though it is later.
                .at(1_011)
                .life("c4", Life::Started)
                .vanished("m", "c1", LossCause::Crash)
                .at(1_020)
                .locks("c2", "m", 30_000)
                .ends(60_000),
            &["to c1", "m crashes", "m   starts", "`stock` of c1 is gone", "to c2"],
        ),
        (
            "l1",
            "deleted by one that stood still while its own lease ended",
            one()
                .at(1)
                .locks("c1", "m", 1_000)
                .at(500)
                .fault_until(2_000, "c1 stands still", &["c1"])
                .at(1_001)
                .vanished("m", "c1", LossCause::Expired)
                .at(1_010)
                .locks("c2", "m", 30_000)
                .at(2_000)
                .calls("c1", Call::Release)
                .at(2_001)
                .deleted("m", "c2", "c1")
                .at(2_010)
                .locks("c3", "m", 30_000)
                .ends(60_000),
            &["c1 stands still", "to c2", "c1 releases", "deleted by c1", "to c3"],
        ),
        (
            "l1",
            "granted by the successor of a master that stood still",
            announces(
                announces(
                    replicated(Guarantee::Exclusive)
                        .at(100)
                        .fault_until(30_000, "m stands still", &["m"])
                        .at(10_000),
                    "c3",
                    "+odown",
                )
                .at(10_001),
                "c3",
                "+try-failover",
            )
            .at(10_002)
            .became("r", Role::Master)
            .at(11_000)
            .locks("c2", "m", 30_000)
            .at(11_010)
            .locks("c1", "r", 30_000)
            .ends(50_000),
            &["m stands still", "+odown", "+try-failover", "is a master", "to c1"],
        ),
        (
            "l2",
            "lost in a crash and taken again for a nested hold",
            one()
                .at(1)
                .locks("c1", "m", 30_000)
                .at(1_000)
                .fault("m crashes", &["m"])
                .life("m", Life::Crashed)
                .at(1_010)
                .life("m", Life::Started)
                .vanished("m", "c1", LossCause::Crash)
                .at(1_020)
                .locks("c1", "m", 30_000)
                .at(1_030)
                .calls("c1", Call::Release)
                .at(1_031)
                .released("m", "c1")
                .at(1_040)
                .locks("c2", "m", 30_000)
                .ends(60_000),
            &["c1 asks", "to c1", "m crashes", "lost in a crash", "to c1", "m   releases", "to c2"],
        ),
        (
            "l2",
            "believed by a slow clock",
            slow.at(100)
                .locks("c1", "m", 10_000)
                .at(10_101)
                .vanished("m", "c1", LossCause::Expired)
                .at(11_100)
                .locks("c2", "m", 10_000)
                .ends(60_000),
            &[
                "the clocks of c1 run slow",
                "c1 believes",
                "c1  by its boottime clock 5.500 s have passed since 0.100 s, and 11.000 s in truth",
                "to c2",
            ],
        ),
        (
            "l3",
            "wrote after a pause",
            writes_late([None, None]).ends(60_000),
            &["c1 believes", "c1 stands still", "expired", "c2 believes", "c2 writes", "c1 writes"],
        ),
        (
            "l4",
            "tokens that go backwards",
            writes_late([Some(2), Some(1)]).fenced(Fence::Greater).ends(60_000),
            &["token 2", "c1 stands still", "expired", "token 1", "c2 writes", "c1 writes"],
        ),
        (
            "commands",
            "asks again and again while it is cut off",
            (1..=300)
                .fold(cut(waits(one()), 20, 9_000, "c2"), |story, at| {
                    story.at(20 + at).woken("c2", Wake::Timer)
                })
                .ends(10_000),
            &["c2 asks", "nothing gets through"],
        ),
        (
            "fairness",
            "thrown out by a clock that is ahead",
            line.at(60).asks("c3").at(61).queue("m", &["c3"]).at(200).waiting("c2").ends(1_000),
            &[
                "c2 asks",
                "the wall clock of c3 stepped +400 s",
                "c3 asks",
                "by its wall clock 400.051 s have passed since 0.010 s by that of c2",
                "m   ",
            ],
        ),
        (
            "fairness",
            "its place is lost with the master",
            replicated(Guarantee::Fair)
                .at(1)
                .locks("c1", "m", 30_000)
                .at(10)
                .asks("c2")
                .queue("m", &["c2"])
                .at(50)
                .fault("m crashes", &["m"])
                .at(60)
                .became("r", Role::Master)
                .at(61)
                .asks("c3")
                .queue("r", &["c3"])
                .at(62)
                .granted("r", "c3", 30_000)
                .ends(1_000),
            &["c2 asks", "m crashes", "is a master", "r   ", "to c3"],
        ),
        (
            "hygiene",
            "its holder crashed",
            one()
                .at(30)
                .asks("c2")
                .granted_without_expiry("m", "c2")
                .at(31)
                .fault("c2 crashes", &["c2"])
                .life("c2", Life::Crashed)
                .key_left("m", "stock", None)
                .ends(10_000),
            &["c2 asks", "to c2", "c2 crashes"],
        ),
        (
            "hygiene",
            "its work is over, and its watchdog renews it",
            (1..5)
                .fold(one().at(1).locks("c1", "m", 1_000).at(500).abandons("c1"), |story, at| {
                    story.at(500 + 600 * at).extended("m", "c1", 1_000)
                })
                .ends(10_000),
            &["c1 asks", "to c1", "c1 has done its work", "extends `stock` of c1"],
        ),
        (
            "latch",
            "the waiter is cut off when it opens",
            cut(latch(), 400, 20_000, "c3").at(500).calls("c1", Call::CountDown).counted("m", 0).ends(9_000),
            &["c3 waits until", "nothing gets through", "c1 counts", "m   "],
        ),
        (
            "lease",
            "kept by a clock that was set back",
            one()
                .at(1)
                .locks("c1", "m", 30_000)
                .at(1_000)
                .fault("the wall clock of m stepped -30 s", &["m"])
                .clocks("m", [-29_000, 1_000, 1_000], [0; 3])
                .at(60_002)
                .vanished("m", "c1", LossCause::Expired)
                .ends(70_000),
            &[
                "m   grants",
                "stepped -30 s",
                "m   by its wall clock 30.001 s have passed since 0.001 s, and 60.001 s in truth",
                "expired",
            ],
        ),
        (
            "lease",
            "carried over to a replica whose clock is ahead",
            replicated(Guarantee::Exclusive)
                .clocks("r", [20_000, 0, 0], [0; 3])
                .at(1)
                .locks("c1", "m", 30_000)
                .at(1_000)
                .fault("r is promoted", &["r"])
                .became("r", Role::Master)
                .at(10_002)
                .vanished("r", "c1", LossCause::Expired)
                .ends(70_000),
            &[
                "to c1",
                "r is promoted",
                "is a master",
                "r   by its wall clock 30.001 s have passed",
                "expired",
            ],
        ),
        (
            "owner-safety",
            "a release that comes late",
            one()
                .at(1)
                .locks("c1", "m", 1_000)
                .at(500)
                .calls("c1", Call::Release)
                .at(501)
                .fault_until(5_000, "packets from c1 take longer", &["c1"])
                .at(1_002)
                .vanished("m", "c1", LossCause::Expired)
                .at(1_100)
                .locks("c2", "m", 30_000)
                .at(5_001)
                .deleted("m", "c2", "c1")
                .ends(60_000),
            &["c1 releases", "packets from c1 take longer", "to c2", "gone"],
        ),
        (
            "permits",
            "one is back before its time",
            steps(of(Guarantee::Permits { permits: 1 }).at(1).asks("c1").granted("m", "c1", 30_000), 1_000)
                .vanished("m", "c1", LossCause::Expired)
                .at(1_002)
                .asks("c3")
                .granted("m", "c3", 30_000)
                .ends(60_000),
            &["to c1", STEP, "m   by its wall clock 32.000 s", "expired", "to c3"],
        ),
        (
            "progress",
            "the message of the release is lost",
            cut(waits(one().bounds(bounds)), 900, 1_400, "c2")
                .at(1_000)
                .unlocks("c1", "m")
                .published("m", 1)
                .at(1_500)
                .calm()
                .ends(10_000),
            &["c2 waits", "nothing gets through", "c1 releases", "m   releases", "m   "],
        ),
        (
            "progress",
            "the head of the queue has crashed",
            beside(Story::failover(Guarantee::Fair))
                .bounds(bounds)
                .at(1)
                .locks("c1", "m", 30_000)
                .at(10)
                .asks("c3")
                .queue("m", &["c3"])
                .waiting("c3")
                .at(20)
                .asks("c2")
                .queue("m", &["c3", "c2"])
                .waiting("c2")
                .at(30)
                .fault("c3 crashes", &["c3"])
                .life("c3", Life::Crashed)
                .at(1_000)
                .unlocks("c1", "m")
                .at(1_500)
                .calm()
                .ends(10_000),
            &["c3 crashes", "m   releases"],
        ),
        (
            "progress",
            "the node has crashed for good",
            waits(one().bounds(bounds))
                .at(900)
                .fault("m crashes", &["m"])
                .life("m", Life::Crashed)
                .at(1_000)
                .unlocks("c1", "m")
                .at(2_000)
                .calls("c3", Call::Acquire { wait: Wait::Unbounded, lease_ms: None, mode: Mode::Exclusive })
                .calm()
                .ends(10_000),
            &["m crashes"],
        ),
        (
            "rate",
            "the new master has not heard of the permits",
            replicated(Guarantee::Rate { permits: 2, window_ms: 10_000, per_client: false })
                .calm()
                .at(100)
                .takes("c1", 2)
                .at(101)
                .passed("m", "c1", 2)
                .returns("c1", Outcome::Ok)
                .at(1_000)
                .fault("r is promoted", &["r"])
                .at(1_001)
                .became("r", Role::Master)
                .clocks("r", [1_501, 1_001, 1_001], [0; 3])
                .at(2_000)
                .takes("c2", 2)
                .at(2_001)
                .passed("r", "c2", 2)
                .ends(40_000),
            &[
                "c1 asks",
                "m   grants c1 2 permits",
                "r is promoted",
                "r   is a master",
                "c2 asks",
                "r   by its wall clock 2.400 s have passed since 0.101 s by that of m, and 1.900 s in truth",
                "r   grants c2 2 permits",
            ],
        ),
        (
            "read-write",
            "a node with another script",
            of(Guarantee::ReadWrite)
                .at(1)
                .asks_to_read("c1")
                .granted_in("m", "c1", 1_000, Mode::Shared)
                .at(100)
                .fault_until(9_000, "m runs another script", &["m"])
                .at(500)
                .asks("c2")
                .at(501)
                .granted_in("m", "c2", 1_000, Mode::Exclusive)
                .ends(3_000),
            &["to c1", "m runs another script", "c2 asks", "to c2"],
        ),
        (
            "reentrancy",
            "sent again when the reply was lost",
            one()
                .at(1)
                .asks("c1")
                .at(2)
                .granted("m", "c1", 30_000)
                .at(3)
                .fault("a reply is lost", &["c1", "m"])
                .at(500)
                .granted("m", "c1", 30_000)
                .at(501)
                .returns("c1", Outcome::Ok)
                .ends(1_000),
            &["c1 asks", "a reply is lost", "to c1"],
        ),
        (
            "reentrancy",
            "sent again when the reply was lost, as was to be done to the next one",
            one()
                .at(1)
                .fault("the reply to the next command is lost", &["c1", "m"])
                .at(100)
                .asks("c1")
                .at(101)
                .granted("m", "c1", 30_000)
                .at(500)
                .granted("m", "c1", 30_000)
                .at(501)
                .returns("c1", Outcome::Ok)
                .ends(1_000),
            &["the reply to the next", "c1 asks", "to c1", "to c1"],
        ),
        ("together", "one of two is kept", both(one()), &["c1 asks", "nothing gets through", "to c1"]),
        (
            "waiting",
            "overtaken by one that is always back first",
            (0..5)
                .fold(one().bounds(Bounds { overtaken: 2, ..bounds }).at(1).asks("c2"), |story, at| {
                    let story = story.at(10 + 20 * at).locks("c1", "m", 1_000).waiting("c2");
                    story.at(20 + 20 * at).unlocks("c1", "m")
                })
                .ends(10_000),
            &["c2 asks", "to c1", "c2 waits"],
        ),
        (
            "wake-ups",
            "the message is lost",
            cut(waits(one()), 900, 2_000, "c2")
                .at(1_000)
                .unlocks("c1", "m")
                .published("m", 1)
                .at(30_002)
                .woken("c2", Wake::Timer)
                .ends(60_000),
            &["c2 asks", "nothing gets through", "c1 releases", "m   releases", "woken by a timer"],
        ),
        (
            "wake-ups",
            "a timer that is late",
            asked_late.at(1_000).unlocks("c1", "m").at(30_011).woken("c2", Wake::Timer).ends(60_000),
            &[
                "c2 asks",
                "the clocks of c2 run slow",
                "c1 releases",
                "c2  by its monotonic clock 3.000 s have passed since 0.011 s, and 30.000 s in truth",
                "woken by a timer",
            ],
        ),
        (
            "windows",
            "deleted at the master before the promotion",
            replicated(Guarantee::Exclusive)
                .at(2)
                .locks("c1", "m", 30_000)
                .at(4_999)
                .calls("c3", Call::Release)
                .at(5_000)
                .deleted("m", "c1", "c3")
                .at(9_999)
                .fault("r is promoted", &["r"])
                .at(10_000)
                .became("r", Role::Master)
                .at(11_000)
                .locks("c2", "r", 30_000)
                .ends(50_000),
            &["to c1", "c3 releases", "gone", "r is promoted", "is a master", "to c2"],
        ),
    ]
}

#[test]
fn a_chain_names_the_faults_and_the_clocks_that_a_violation_came_of() {
    let rows = violations();
    for checker in checker::LIST {
        assert!(rows.iter().any(|(of, ..)| *of == checker.name), "{} has no row", checker.name);
    }
    let mut wrong = Vec::new();
    for (checker, title, history, names) in &rows {
        let told = chain(checker, history);
        let mut rest = told.iter();
        let missing = names.iter().find(|name| !rest.any(|line| line.contains(**name)));
        let aside = told.iter().any(|line| line.contains("c4"));
        if missing.is_some() || aside {
            wrong.push(format!("{checker}, {title}: {missing:?} in\n{}", told.join("\n")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
