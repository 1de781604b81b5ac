//! Histories of holds that come back with their node, and the findings expected from the checkers.

use super::tests::first_line;
use crate::judge::history::{
    Call, GainCause, History, LockKind, LossCause, Outcome, Reason, Role, Wake, story::Story,
};

/// Two nodes of a group. `m` grants C1 the lock for six seconds, and C1 releases it after one.
fn released() -> Story {
    let story = Story::failover(LockKind::Exclusive).became("r", Role::Replica);
    story.at(0).locks("c1", "m", 6_000).at(1_000).unlocks("c1", "m").at(1_400)
}

/// `m` restarts with the released hold, whose lease lasts for another 4.6 s.
fn back(story: Story) -> Story {
    story.regained("m", "c1", 4_600, 1, GainCause::Restart)
}

/// C1 asks, and learns that it holds the lock for the rest of that lease.
fn told(story: Story) -> Story {
    back(story.asks("c1")).at(1_500).believes("c1", 4_500).returns("c1", Outcome::Ok)
}

/// The node's clock jumps ahead, and it grants the lock to C2.
fn passed_on(story: Story, at: i64) -> History {
    let jumped = [100_000 + at, at, at];
    let story = story.at(at).clocks("m", jumped, [0; 3]).vanished("m", "c1", LossCause::Expired);
    story.locks("c2", "m", 1_000).at(at + 500).unlocks("c2", "m").ends(20_000)
}

#[test]
fn what_a_node_came_back_with_is_promised_from_when_its_owner_is_told_of_it() {
    let renewed = || told(released()).at(3_000).extended("m", "c1", 6_000).believes("c1", 6_000);
    let rows = [
        ("nobody has asked for it", passed_on(back(released()), 3_000), "holds overlap=0ms times=0"),
        ("its owner was told of it", passed_on(told(released()), 3_000), "violated overlap=500ms times=1"),
        ("and its lease was over", passed_on(told(released()), 6_001), "holds overlap=0ms times=0"),
        ("its owner renewed it", passed_on(renewed(), 8_000), "violated overlap=500ms times=1"),
        (
            "its owner renewed it, and said nothing",
            passed_on(back(released()).at(3_000).extended("m", "c1", 6_000), 8_000),
            "violated overlap=500ms times=1",
        ),
        (
            "its owner renewed it, and gave it back in vain",
            passed_on(
                renewed().at(7_000).calls("c1", Call::Release).disbelieves("c1", Reason::Released),
                8_000,
            ),
            "holds overlap=0ms times=0",
        ),
        (
            "another one renewed it",
            passed_on(back(released()).at(3_000).extended_by("m", "c1", 6_000, "c3"), 8_000),
            "holds overlap=0ms times=0",
        ),
    ];
    for (what, history, expected) in rows {
        let said = first_line("l1", &history);
        assert_eq!(said, expected, "{what}");
    }
}

/// C1 holds one level when the level that it released comes back. C1 releases its level, and a node
/// that has neither of the two grants C2 the lock.
#[test]
fn a_level_that_came_back_is_below_those_that_its_owner_has() {
    let twice = Story::failover(LockKind::Exclusive).became("r", Role::Replica).at(0).locks("c1", "m", 9_000);
    let once = twice.at(10).granted("m", "c1", 9_000).at(20).released("m", "c1");
    let back = once.at(1_000).regained("m", "c1", 8_000, 2, GainCause::Restart);
    let released = back.at(2_000).released("m", "c1").at(2_500).became("r", Role::Master);
    let history = released.vanished("r", "c1", LossCause::Failover).locks("c2", "r", 1_000).ends(9_000);
    assert_eq!(first_line("l1", &history), "holds overlap=0ms times=0");
}

/// A hold that was lost and comes back is the hold that the node granted.
#[test]
fn a_hold_that_comes_back_within_its_promise_is_the_same() {
    let lost = Story::failover(LockKind::Exclusive).became("r", Role::Replica).at(0).locks("c1", "m", 6_000);
    let lost = lost.at(1_000).became("r", Role::Master).vanished("r", "c1", LossCause::Failover);
    let back = lost.at(2_000).became("m", Role::Master).regained("m", "c1", 4_000, 1, GainCause::Failover);
    let given_back = back.at(3_000).unlocks("c1", "m").at(3_500).locks("c2", "m", 1_000).ends(9_000);
    assert_eq!(first_line("l1", &given_back), "holds overlap=0ms times=0");
}

#[test]
fn a_double_grant_of_what_came_back_falls_into_the_window_that_it_came_of() {
    let none = "failover=0 two_masters=0 crash=0";
    let renewed = told(released()).at(3_000).extended("m", "c1", 6_000).believes("c1", 6_000);
    let deleted = told(released()).at(3_000).deleted("m", "c1", "c3").granted("m", "c2", 1_000).ends(20_000);
    // R is promoted with the hold that C1 had released on M, and without the later grant to C2.
    let second = released().locks("c2", "m", 6_000).at(1_500).became("r", Role::Master);
    let second = second.vanished("r", "c2", LossCause::Failover).asks("c1");
    let second = second.regained("r", "c1", 4_000, 1, GainCause::Failover).became("m", Role::Replica);
    let second = second.at(1_600).believes("c1", 3_900).returns("c1", Outcome::Ok).ends(20_000);
    // R is promoted without the hold that had come back with M.
    let first = told(released()).at(2_000).became("r", Role::Master);
    let first = first.vanished("r", "c1", LossCause::Failover).became("m", Role::Replica);
    let first = first.at(2_100).locks("c2", "r", 1_000).ends(20_000);
    let lost = "failover=1 two_masters=0 crash=0";
    let rows = [
        ("its clock jumps", passed_on(told(released()), 3_000), format!("{none} clock=1 unexplained=0")),
        (
            "its clock jumps after a renewal",
            passed_on(renewed, 8_000),
            format!("{none} clock=1 unexplained=0"),
        ),
        ("another one deletes it", deleted, format!("{none} clock=0 unexplained=1")),
        ("it comes back beside another one's", second, format!("{lost} clock=0 unexplained=0")),
        ("a failover loses it", first, format!("{lost} clock=0 unexplained=0")),
    ];
    for (what, history, expected) in rows {
        let said = first_line("windows", &history);
        assert!(said.contains(&expected), "{what}: {said}");
    }
}

#[test]
fn what_a_node_came_back_with_has_a_lease_and_is_no_level_of_its_owners_calls() {
    let ends_in_time = |story: Story| story.at(6_001).vanished("m", "c1", LossCause::Expired).ends(20_000);
    let untold = ends_in_time(back(released()));
    assert_eq!(first_line("lease", &untold), "holds cut=0ms outlived=1ms phantom=4.601s");
    // M grants one more level above it, and C1 releases that level.
    let asks = || back(released()).at(1_500).locks("c1", "m", 5_000);
    let nested = ends_in_time(asks().at(2_000).unlocks("c1", "m"));
    assert_eq!(first_line("reentrancy", &nested), "holds off=0 deepest=2");
    let thrice = ends_in_time(
        asks()
            .at(2_000)
            .asks("c1")
            .granted("m", "c1", 5_000)
            .granted("m", "c1", 5_000)
            .returns("c1", Outcome::Ok),
    );
    assert_eq!(first_line("reentrancy", &thrice), "violated off=1 deepest=4");
    // The node has lost one of the owner's two levels.
    let fewer =
        Story::failover(LockKind::Exclusive).at(0).locks("c1", "m", 9_000).at(10).locks("c1", "m", 9_000);
    let fewer =
        fewer.at(1_000).regained("m", "c1", 8_000, 1, GainCause::Restart).at(2_000).unlocks("c1", "m");
    assert_eq!(first_line("reentrancy", &fewer.ends(20_000)), "holds off=0 deepest=2");
    let wrong = told(released()).at(3_000).asks("c1").returns("c1", Outcome::Ok).ends(20_000);
    assert_eq!(first_line("reentrancy", &wrong), "violated off=1 deepest=1");
}

#[test]
fn who_stands_in_the_way_is_an_owner_that_a_node_came_back_with() {
    let reads =
        back(Story::of_kind(LockKind::ReadWrite).at(0).locks("c1", "m", 6_000).unlocks("c1", "m").at(100));
    let history = reads.at(200).granted("m", "c2", 1_000).ends(9_000);
    assert!(first_line("read-write", &history).starts_with("violated times=1"));
    // No client needs to react to a release that the node has lost.
    let waits = Story::one_node().at(0).locks("c1", "m", 6_000).at(10).asks("c2").waiting("c2");
    let waits = back(waits.at(1_000).unlocks("c1", "m").at(1_100)).at(6_100);
    let history = waits.woken("c2", Wake::Timer).granted("m", "c2", 1_000).ends(9_000);
    assert!(
        !first_line("wake-ups", &history).starts_with("violated"),
        "{}",
        first_line("wake-ups", &history)
    );
}
