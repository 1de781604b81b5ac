//! The links that chains of violations have, and those that they leave out.

use super::*;
use crate::judge::{
    checker,
    history::{EventKind, Lock, LockKind as Guarantee, LossCause, Reason, Role, Serving, Wake, story::Story},
};

pub(super) fn chain(of: &str, history: &History) -> Vec<String> {
    let findings = checker::check(history);
    let finding = findings.iter().find(|finding| finding.checker == of).expect("a checker");
    let Some(witness) = finding.verdict.witness() else { return vec![finding.verdict.sentence().to_owned()] };
    let lines = lines(history, witness);
    for (place, line) in lines.iter().enumerate() {
        assert!(line.after.iter().all(|cause| *cause < place), "{line:?} came of what was later");
    }
    text(&lines)
}

fn asks_and_gets(story: Story, client: &str, nodes: &[&str], at: i64) -> Story {
    let story = story.at(at).asks(client).at(at + 1);
    let story = nodes.iter().fold(story, |story, node| story.granted(node, client, 10_000));
    story.at(at + 2).believes(client, 9_000)
}

/// Every story also has parts that do not contribute to the violation, before and after it: a
/// client that is paused and takes no part, a clock of a node that is not asked, a hold that ended
/// before.
#[test]
fn a_chain_has_what_led_to_a_violation_and_nothing_else() {
    let one = Story::one_node;
    let aside = |story: Story, from: i64| story.at(from).fault_until(90_000, "c4 stands still", &["c4"]);
    let failover = asks_and_gets(aside(Story::failover(Guarantee::Exclusive), 0), "c1", &["m"], 1_000)
        .at(1_003)
        .fault("m crashed", &["m"])
        .at(1_010)
        .became("r", Role::Master)
        .vanished("r", "c1", LossCause::Failover);
    let jump = asks_and_gets(aside(Story::quorum(), 0), "c1", &["a", "b", "c"], 1_000)
        .at(2_000)
        .fault("the wall clock of e stepped +1 s", &["e"])
        .clocks("e", [3_000, 2_000, 2_000], [0; 3])
        .fault("the wall clock of c stepped +10.001 s", &["c"])
        .at(2_001)
        .vanished("c", "c1", LossCause::Expired);
    let before = asks_and_gets(aside(one(), 0), "c3", &["m"], 100).at(200).unlocks("c3", "m");
    let paused = asks_and_gets(before, "c1", &["m"], 1_000)
        .at(1_500)
        .fault_until(20_000, "c1 stands still", &["c1"])
        .at(1_600)
        .asks("c2")
        .waiting("c2")
        .at(11_001)
        .vanished("m", "c1", LossCause::Expired)
        .at(11_002)
        .woken("c2", Wake::Timer)
        .at(11_003)
        .granted("m", "c2", 10_000)
        .at(11_004)
        .believes("c2", 9_000)
        .at(20_001)
        .wrote("c2", None, 12_000)
        .wrote("c1", None, 20_000);
    for (checker, history, expected) in [
        (
            "l2",
            asks_and_gets(failover, "c2", &["r"], 2_000).ends(60_000),
            &[
                "     1.000 s  c1  c1 asks for `stock`",
                "     1.001 s  m   grants `stock` to c1, 10000 ms",
                "     1.002 s  c1  c1 believes it holds `stock` for 9.000 s by its boottime clock",
                "     1.003 s  ~   m crashed at 1.003 s",
                "     1.010 s  r   is a master",
                "     1.010 s  r   `stock` of c1 is gone: r did not have it",
                "     2.000 s  c2  c2 asks for `stock`",
                "     2.001 s  r   grants `stock` to c2, 10000 ms",
                "     2.002 s  c2  c2 believes it holds `stock` for 9.000 s by its boottime clock",
            ][..],
        ),
        (
            "l1",
            asks_and_gets(jump, "c2", &["c", "d", "e"], 3_000).ends(60_000),
            &[
                "     1.000 s  c1  c1 asks for `stock`",
                "     1.001 s  a   grants `stock` to c1, 10000 ms",
                "     1.001 s  b   grants `stock` to c1, 10000 ms",
                "     1.001 s  c   grants `stock` to c1, 10000 ms",
                "     1.002 s  c1  c1 believes it holds `stock` for 9.000 s by its boottime clock",
                "     2.000 s  ~   the wall clock of c stepped +10.001 s at 2.000 s",
                "     2.001 s  c   `stock` of c1 is gone: expired",
                "     3.000 s  c2  c2 asks for `stock`",
                "     3.001 s  c   grants `stock` to c2, 10000 ms",
                "     3.001 s  d   grants `stock` to c2, 10000 ms",
                "     3.001 s  e   grants `stock` to c2, 10000 ms",
            ],
        ),
        (
            "l3",
            paused.at(21_000).disbelieves("c1", Reason::Expired).ends(60_000),
            &[
                "     1.000 s  c1    c1 asks for `stock`",
                "     1.001 s  m     grants `stock` to c1, 10000 ms",
                "     1.002 s  c1    c1 believes it holds `stock` for 9.000 s by its boottime clock",
                "     1.500 s  ~     c1 stands still from 1.500 s to 20.000 s",
                "     1.600 s  c2    c2 asks for `stock`",
                "    11.001 s  m     `stock` of c1 is gone: expired",
                "    11.002 s  c2    c2 is woken by a timer",
                "    11.003 s  m     grants `stock` to c2, 10000 ms",
                "    11.004 s  c2    c2 believes it holds `stock` for 9.000 s by its boottime clock",
                "    20.001 s  shop  c2 writes with no token, one seen before, sent at 12.000 s",
                "    20.001 s  shop  c1 writes with no token, one seen before, sent at 20.000 s",
            ],
        ),
    ] {
        assert_eq!(chain(checker, &history), expected, "{checker}");
    }
}

fn says(story: Story, node: &str, word: &str, about: &str) -> Story {
    story.tell(node, EventKind::Cluster { event: word.into(), about: about.into() })
}

pub(super) fn announces(story: Story, by: &str, event: &str) -> Story {
    let message = "master main 10.0.0.1 6379".into();
    story.tell(by, EventKind::Sentinel { event: event.into(), message })
}

/// A promotion is caused by the decisions of Sentinels, or by an election that the node itself won;
/// the reports and views of others did not lead to it. A message is caused by the end of the hold,
/// not by other actions of the node.
#[test]
fn a_chain_has_what_a_promotion_and_a_message_came_of() {
    let served = |how| EventKind::Serves { lock: Lock(0), how };
    let granted = || asks_and_gets(Story::failover(Guarantee::Exclusive), "c1", &["m"], 1_000).at(1_003);
    let watched = ["+sdown", "+odown", "+try-failover", "+selected-slave", "+slave"]
        .into_iter()
        .fold(granted().fault("m crashed", &["m"]).at(1_005), |story, event| announces(story, "c3", event))
        .at(1_010)
        .became("r", Role::Master)
        .vanished("r", "c1", LossCause::Failover);
    let elected = says(granted().fault("m crashed", &["m"]).at(1_005), "r", "elected", "2");
    let elected = says(elected.at(1_006), "m", "fail", "r")
        .at(1_010)
        .tell("r", served(Serving::Whole))
        .vanished("r", "c1", LossCause::Failover);
    let told = asks_and_gets(Story::one_node(), "c1", &["m"], 1_000)
        .at(1_500)
        .asks("c2")
        .waiting("c2")
        .at(2_000)
        .deleted("m", "c1", "c3")
        .about("other")
        .granted("m", "c4", 1_000)
        .released("m", "c4")
        .about("stock")
        .published("m", 1)
        .at(2_001)
        .woken("c2", Wake::Message)
        .at(2_002)
        .granted("m", "c2", 10_000)
        .at(2_003)
        .believes("c2", 9_000);
    let chains = [
        ("by Sentinels", asks_and_gets(watched, "c2", &["r"], 2_000)),
        ("by an election", asks_and_gets(elected, "c2", &["r"], 2_000)),
        ("by a message", told),
    ];
    let chains =
        chains.map(|(title, story)| format!("## {title}\n{}\n", chain("l2", &story.ends(60_000)).join("\n")));
    insta::assert_snapshot!(chains.join("\n"));
}

/// A long chain keeps its end, where the violation is.
#[test]
fn of_a_long_chain_the_end_is_kept() {
    let mut story = asks_and_gets(Story::one_node(), "c1", &["m"], 0);
    for step in 0..40 {
        story = story.at(10 + step).fault("the wall clock of m stepped +1 ms", &["m"]);
    }
    let story = story.at(100).vanished("m", "c1", LossCause::Expired);
    let lines = chain("l2", &asks_and_gets(story, "c2", &["m"], 200).ends(60_000));
    // All of the seven events, and the latest 24 faults.
    let faults = lines.iter().filter(|line| line.contains("stepped")).count();
    assert_eq!((faults, lines.len()), (24, 31), "{}", lines.join("\n"));
    assert!(lines[30].contains("c2 believes it holds"), "{}", lines[30]);
}
