//! `redis-cli --cluster` on clusters of ours, and on clusters that are half of Redis.

use std::{
    io::Write,
    process::{Command, Stdio},
};

use super::{
    redis_is_there,
    rig::{
        Group,
        Whose::{self, Ours, Redis},
        until,
    },
};
use crate::served::{Served, asks, folder, nothing_to_compare_with};

/// The number of keys, in many slots.
const KEYS: usize = 200;

/// The output of `redis-cli` for these words and this standard input, without colours; true if it
/// exits with success.
fn cli(words: &[&str], input: &str) -> (bool, String) {
    let mut child = Command::new("redis-cli")
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("redis-cli runs");
    child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    let printed =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    let mut plain = String::new();
    for (at, part) in printed.split("\u{1b}[").enumerate() {
        plain += if at == 0 { part } else { part.split_once('m').map_or("", |(_, text)| text) };
    }
    (output.status.success(), plain)
}

/// Runs a subcommand of `redis-cli --cluster` and asserts its success.
#[track_caller]
fn cluster(words: &[&str]) -> String {
    let words: Vec<&str> = ["--cluster"].iter().chain(words).copied().collect();
    let (good, printed) = cli(&words, "yes\n");
    assert!(good, "redis-cli {}: {printed}", words.join(" "));
    printed
}

/// Waits until the tool reports no problem.
#[track_caller]
fn until_checked(at: &str) {
    until("the check", || {
        let (good, printed) = cli(&["--cluster", "check", at], "");
        let right = ["[OK] All nodes agree about slots configuration.", "[OK] All 16384 slots covered."];
        let is_good = good && right.iter().all(|line| printed.contains(line));
        if is_good && !printed.contains("[WARNING]") { Ok(()) } else { Err(printed) }
    });
}

/// The masters with slots, by name.
fn masters(group: &mut Group) -> Vec<char> {
    let is_master = |name: &char, group: &mut Group| {
        let nodes = group.node(*name).ask("CLUSTER NODES");
        let line = nodes.split("\\n").find(|line| line.contains("myself")).expect("its own").to_owned();
        line.contains("master") && line.split(' ').count() > 8
    };
    let names: Vec<char> = group.nodes.keys().copied().collect();
    names.into_iter().filter(|name| is_master(name, group)).collect()
}

/// The total number of keys on the masters.
fn keys(group: &mut Group) -> usize {
    let of = |name: char, group: &mut Group| -> usize {
        group.node(name).ask("DBSIZE").trim_start_matches(':').parse().expect("a number")
    };
    masters(group).into_iter().map(|name| of(name, group)).sum()
}

fn through_all_subcommands(name: &str, whose: [Whose; 6]) {
    let mut group = Group::apart(name, &whose);
    let addresses: Vec<String> = group.nodes.values().map(|node| node.address()).collect();
    let at = addresses[0].as_str();
    let mut create = vec!["create"];
    create.extend(addresses.iter().map(String::as_str));
    create.extend(["--cluster-replicas", "1", "--cluster-yes"]);
    assert!(cluster(&create).contains("[OK] All 16384 slots covered."));
    group.until_ok();
    until_checked(at);
    assert_eq!(masters(&mut group), ['a', 'b', 'c']);

    let port = group.nodes[&'a'].port.to_string();
    let sets: String = (0..KEYS).map(|key| format!("SET key:{key} {key}\n")).collect();
    assert!(cli(&["-c", "-p", &port], &sets).0);
    let all_are_there = || {
        let gets: String = (0..KEYS).map(|key| format!("GET key:{key}\n")).collect();
        let (_, printed) = cli(&["-c", "-p", &port], &gets);
        let values = printed.lines().filter(|line| !line.starts_with("->") && !line.is_empty());
        assert_eq!(values.collect::<Vec<_>>(), (0..KEYS).map(|key| key.to_string()).collect::<Vec<_>>());
    };
    let info = cluster(&["info", at]);
    assert!(info.contains(&format!("[OK] {KEYS} keys in 3 masters.")), "{info}");

    // Slots move with their keys.
    let ids: Vec<String> = ('a'..='c').map(|name| group.nodes[&name].id.clone()).collect();
    for (from, to, slots) in [(ids[0].as_str(), &ids[1], "200"), ("all", &ids[2], "90")] {
        cluster(&[
            "reshard",
            at,
            "--cluster-from",
            from,
            "--cluster-to",
            to,
            "--cluster-slots",
            slots,
            "--cluster-yes",
        ]);
        until_checked(at);
    }
    all_are_there();

    // An empty node gets slots, and a replica.
    group.add('g', whose[0]);
    let (new, id) = (group.nodes[&'g'].address(), group.nodes[&'g'].id.clone());
    assert!(cluster(&["add-node", &new, at]).contains("[OK] New node added correctly."));
    group.until_all("CLUSTER INFO", |info| info.contains("known_nodes:7"));
    group.until_ok();
    cluster(&["rebalance", at, "--cluster-use-empty-masters", "--cluster-weight", &format!("{id}=0.02")]);
    until_checked(at);
    assert_eq!(masters(&mut group), ['a', 'b', 'c', 'g']);
    all_are_there();
    group.add('h', whose[1]);
    let (replica, replica_id) = (group.nodes[&'h'].address(), group.nodes[&'h'].id.clone());
    cluster(&["add-node", &replica, at, "--cluster-slave", "--cluster-master-id", &id]);
    group.until_all("CLUSTER INFO", |info| info.contains("known_nodes:8"));
    group.until_ok();
    let called = cluster(&["call", at, "PING"]);
    assert_eq!(called.matches("PONG").count(), 8, "{called}");

    // An interrupted migration: the slot is open at both ends, with a key at each. 6657 is one of
    // b's slots.
    let [a, b] = ['a', 'b'].map(|name| group.nodes[&name].id.clone());
    let target = group.nodes[&'a'].port;
    for (node, command, answer) in [
        ('b', "SET {key:1}x 1".to_owned(), "+OK"),
        ('a', format!("CLUSTER SETSLOT 6657 IMPORTING {b}"), "+OK"),
        ('b', format!("CLUSTER SETSLOT 6657 MIGRATING {a}"), "+OK"),
        ('b', format!("MIGRATE 127.0.0.1 {target} key:1 0 5000"), "+OK"),
    ] {
        assert_eq!(group.node(node).ask(&command), answer, "{command}");
    }
    let (_, warned) = cli(&["--cluster", "check", at], "");
    assert!(warned.contains("The following slots are open: 6657."), "{warned}");
    cluster(&["fix", at]);
    until_checked(at);
    all_are_there();
    // A slot without a master.
    for name in masters(&mut group) {
        group.node(name).ask("CLUSTER DELSLOTS 6657");
    }
    let fixed = cluster(&["fix", at]);
    assert!(fixed.contains("Covering slot 6657"), "{fixed}");
    until_checked(at);
    group.until_ok();
    all_are_there();

    // The new nodes leave.
    cluster(&["del-node", at, &replica_id]);
    let (good, refused) = cli(&["--cluster", "del-node", at, &id], "");
    assert!(!good || refused.contains("is not empty"), "{refused}");
    cluster(&["rebalance", at, "--cluster-weight", &format!("{id}=0")]);
    until_checked(at);
    cluster(&["del-node", at, &id]);
    for name in ['g', 'h'] {
        group.nodes.remove(&name);
    }
    group.until_all("CLUSTER INFO", |info| info.contains("known_nodes:6"));
    until_checked(at);
    all_are_there();

    // The keys of a server outside the cluster.
    let alone = Served::beside(&folder(&format!("cluster_{name}_alone")), &[]);
    asks(&mut alone.connect(), "MSET import:1 1 import:2 2 import:3 3", "+OK\r\n");
    cluster(&["import", at, "--cluster-from", &alone.address.to_string()]);
    asks(&mut alone.connect(), "DBSIZE", ":0\r\n");
    assert_eq!(keys(&mut group), KEYS + 1 + 3);
}

#[test]
fn the_tool_makes_and_changes_a_cluster_of_ours() {
    if !redis_is_there() {
        return nothing_to_compare_with();
    }
    through_all_subcommands("tool_ours", [Ours; 6]);
}

#[test]
fn the_tool_makes_and_changes_a_cluster_of_redis_and_ours() {
    if !redis_is_there() {
        return nothing_to_compare_with();
    }
    through_all_subcommands("tool_mixed", [Ours, Redis, Ours, Redis, Ours, Redis]);
}

/// A node's saved view: its own line of CLUSTER NODES and those of others, without times.
fn remembered(group: &mut Group, name: char) -> Vec<String> {
    let nodes = group.node(name).ask("CLUSTER NODES");
    let without_times = |line: &str| {
        let words = line.trim_matches('"').split(' ').enumerate();
        words.filter(|(at, _)| ![4, 5, 7].contains(at)).map(|(_, word)| word).collect::<Vec<_>>().join(" ")
    };
    let mut lines: Vec<String> =
        nodes.trim_matches('"').split("\\n").filter(|line| !line.is_empty()).map(without_times).collect();
    lines.sort();
    lines
}

#[test]
fn a_node_goes_on_with_the_file_that_the_other_server_has_written() {
    if !redis_is_there() {
        return nothing_to_compare_with();
    }
    let mut group = Group::together("files", [Ours, Redis, Ours, Redis, Ours, Redis]);
    let [a, b] = ['a', 'b'].map(|name| group.nodes[&name].id.clone());
    for (node, command) in [
        ('a', format!("CLUSTER SETSLOT 5461 IMPORTING {b}")),
        ('a', format!("CLUSTER SETSLOT 7 MIGRATING {b}")),
        ('b', format!("CLUSTER SETSLOT 5461 MIGRATING {a}")),
        ('b', format!("CLUSTER SETSLOT 7 IMPORTING {a}")),
    ] {
        assert_eq!(group.node(node).ask(&command), "+OK", "{command}");
    }
    // A master and a replica of each kind, one at a time, so that the others do not fail over.
    for (name, whose) in [('a', Redis), ('b', Ours), ('d', Ours), ('e', Redis), ('a', Ours)] {
        let before = remembered(&mut group, name);
        group.node(name).start_as(whose);
        group.until_ok();
        until(&format!("{name} knows what it knew"), || {
            let after = remembered(&mut group, name);
            if after == before { Ok(()) } else { Err(format!("{after:#?}\nbefore:\n{before:#?}")) }
        });
    }
    assert!(group.node('a').ask("CLUSTER INFO").contains("cluster_my_epoch:1\\r"));
}
