//! A master dies in a cluster of both kinds: each kind counts the other's reports of the failure,
//! and a replica of either kind needs the votes of both.

use super::{
    redis_is_there,
    rig::{
        Group,
        Whose::{Ours, Redis},
        until,
    },
};
use crate::served::nothing_to_compare_with;

/// `cluster-node-timeout`. The others fail a process that a busy machine pauses for longer than
/// that, too; but it has no replica, and recovers when it continues.
const NODE_TIMEOUT_MS: u32 = 1_000;

/// The remaining masters, one of each kind: a failure and an election need both.
const VOTERS: [char; 2] = ['b', 'c'];

/// The number of messages of a type that a node has sent or received, from its CLUSTER INFO.
fn messages(group: &mut Group, name: char, which: &str) -> u64 {
    let info = group.node(name).ask("CLUSTER INFO");
    let field = format!("cluster_stats_messages_{which}:");
    let count = info.split(&field).nth(1).and_then(|rest| rest.split("\\r").next());
    count.map_or(0, |count| count.parse().expect("a number"))
}

/// The flags of a node in another node's view.
fn flags(group: &mut Group, by: char, of: char) -> String {
    let id = group.nodes[&of].id.clone();
    let nodes = group.node(by).ask("CLUSTER NODES");
    let line = nodes.trim_matches('"').split("\\n").find(|line| line.starts_with(&id));
    line.and_then(|line| line.split(' ').nth(2)).unwrap_or_default().to_owned()
}

#[track_caller]
fn until_flags(group: &mut Group, by: char, of: char, expected: &str) {
    until(&format!("{by} has {of} as {expected}"), || {
        let flags = flags(group, by, of);
        if flags == expected { Ok(()) } else { Err(flags) }
    });
}

#[track_caller]
fn until_answer(group: &mut Group, name: char, command: &str, is: impl Fn(&str) -> bool) {
    until(&format!("{command} of {name}"), || {
        let answer = group.node(name).ask(command);
        if is(&answer) { Ok(()) } else { Err(answer) }
    });
}

#[test]
fn a_replica_of_either_kind_is_promoted_by_masters_of_both_kinds() {
    if !redis_is_there() {
        return nothing_to_compare_with();
    }
    let mut group = Group::together_within("failover", &[Ours, Ours, Redis, Redis], NODE_TIMEOUT_MS);
    // The slot of this key belongs to `a`.
    assert_eq!(group.node('a').ask("SET bar 1"), "+OK");
    assert_eq!(group.node('a').ask("WAIT 1 10000"), ":1");
    // First the replica is Redis's; once the old master follows it, ours.
    for (master, replica) in [('a', 'd'), ('d', 'a')] {
        let fails = |group: &mut Group, name| {
            messages(group, name, "fail_sent") + messages(group, name, "fail_received")
        };
        let survivors = [VOTERS[0], VOTERS[1], replica];
        let before =
            survivors.map(|name| (fails(&mut group, name), messages(&mut group, name, "auth-ack_sent")));
        group.node(master).kill();
        until_answer(&mut group, replica, "SET bar 2", |answer| answer == "+OK");
        for (name, (failed, voted)) in survivors.into_iter().zip(before) {
            until_flags(&mut group, name, master, "master,fail");
            // One of them has found that both voters report the failure, and has sent a FAIL.
            assert!(fails(&mut group, name) > failed, "{name} neither sent a FAIL nor received one");
            // The vote of one of three masters is not enough.
            let votes = messages(&mut group, name, "auth-ack_sent") - voted;
            assert_eq!(votes > 0, VOTERS.contains(&name), "{name} has voted {votes} times for {replica}");
        }
        for name in VOTERS {
            until_answer(&mut group, name, "CLUSTER INFO", |info| info.contains("cluster_state:ok"));
        }
        if master == 'a' {
            // It learns that another node has its slots, and follows that node.
            group.node('a').start_as(Ours);
            until_answer(&mut group, 'a', "INFO replication", |info| info.contains("master_link_status:up"));
            VOTERS.iter().for_each(|name| until_flags(&mut group, *name, 'a', "slave"));
        }
    }
    // Node `a` dies without a replica and stays failed, so each of the two remaining masters gets
    // the report of the other, which is of the other kind.
    group.node('a').kill();
    let reports = format!("CLUSTER COUNT-FAILURE-REPORTS {}", group.nodes[&'a'].id);
    for name in VOTERS {
        until_flags(&mut group, name, 'a', "master,fail");
        until_answer(&mut group, name, &reports, |count| count == ":1");
        until_answer(&mut group, name, "CLUSTER INFO", |info| info.contains("cluster_state:fail"));
    }
}
