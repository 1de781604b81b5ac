//! `lockstorm audit --gentle` of real groups: a cluster, and Sentinels.

use std::{fs, process::Child};

use serde_json::Value;

use super::{
    audit::{Live, audit},
    server::{Folder, redis},
};

const EVENTS: [&str; 2] = ["--notify-keyspace-events", "Kg$hxe"];

/// Starts a cluster of two masters with half of the slots each. The slot of `orders:c` is 2836, and
/// that of `orders:a` is 11094.
fn cluster(folder: &Folder) -> [Live; 2] {
    let dir = folder.path();
    let nodes = ["a.conf", "c.conf"].map(|file| {
        let own = ["--save", "", "--dir", &dir, "--cluster-enabled", "yes", "--cluster-config-file", file];
        Live::new(&[&own[..], &EVENTS].concat())
    });
    for (node, slots) in nodes.iter().zip([0..8_192, 8_192..16_384]) {
        let slots: Vec<String> = slots.map(|slot: u32| slot.to_string()).collect();
        assert_eq!(node.run(&format!("CLUSTER ADDSLOTS {}", slots.join(" "))), "+OK");
    }
    assert_eq!(nodes[0].run(&format!("CLUSTER MEET 127.0.0.1 {}", nodes[1].port)), "+OK");
    while !nodes.iter().all(|node| node.run("CLUSTER INFO").contains("cluster_state:ok")) {
        nodes[0].wait(20);
    }
    nodes
}

/// Returns the exit status and the outcome of an audit.
fn outcome(audit: Child) -> (Option<i32>, Value) {
    let output = audit.wait_with_output().expect("it ends");
    let (text, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let json = serde_json::from_str(&text).unwrap_or_else(|why| panic!("{why}: {text}{error}"));
    (output.status.code(), json)
}

/// Returns some words of each entry of a list, sorted.
fn rows(json: &Value, list: &str, words: &[&str]) -> Vec<String> {
    let word = |one: &Value, name: &str| one[name].as_str().unwrap_or("").to_owned();
    let row = |one: &Value| words.iter().map(|name| word(one, name)).collect::<Vec<_>>().join(" ");
    let mut rows: Vec<String> = json[list].as_array().expect("a list").iter().map(row).collect();
    rows.sort();
    rows
}

/// One node lacks a right: the others are audited on, and the outcome names it once.
#[test]
fn a_cluster_is_audited_without_a_node_that_refuses() {
    if !redis() {
        return;
    }
    let folder = Folder::new("cluster");
    let nodes = cluster(&folder);
    let [first, second] = &nodes;
    let names = [first, second].map(|node| format!("127.0.0.1:{}", node.port));
    for (node, rights) in [(first, "+@all"), (second, "+@all -getrange")] {
        assert_eq!(node.run(&format!("ACL SETUSER auditor on >secret ~* &* {rights}")), "+OK");
    }
    let arguments = ["--gentle", "--lock", "orders:*", "--poll", "100ms", "--for", "6s", "--json"];
    let refused =
        audit(&[&[&*format!("redis+cluster://auditor:secret@{}", names[0])], &arguments[..]].concat());
    let allowed = audit(&[&[&*format!("redis+cluster://{}", names[0])], &arguments[..]].concat());
    for node in [first, second] {
        while node.run("CLIENT LIST").lines().filter(|line| line.contains("psub=1")).count() < 2 {
            node.wait(20);
        }
    }
    for owner in ["one", "two"] {
        assert_eq!(first.run(&format!("SET orders:c {owner} PX 30000")), "+OK");
        assert_eq!(second.run(&format!("SET orders:a {owner} PX 30000")), "+OK");
        first.wait(800);
    }
    let (status, json) = outcome(allowed);
    let of = |key: &str, node: &String| format!("overwritten {key} {node}");
    let mut expected = vec![of("orders:c", &names[0]), of("orders:a", &names[1])];
    expected.sort();
    assert_eq!((status, rows(&json, "findings", &["kind", "lock", "node"])), (Some(1), expected), "{json}");
    assert_eq!(json["unseen"], serde_json::json!([]), "{json}");
    let (status, json) = outcome(refused);
    let expected = vec![of("orders:c", &names[0])];
    assert_eq!((status, rows(&json, "findings", &["kind", "lock", "node"])), (Some(1), expected), "{json}");
    assert_eq!(rows(&json, "unseen", &["node", "lacks"]), [format!("{} +getrange", names[1])], "{json}");
    let changes = rows(&json, "changes", &["node", "what"]);
    let left = changes.iter().filter(|change| change.contains(&format!("{} is left: ", names[1]))).count();
    assert_eq!(left, 1, "{changes:?}");
}

/// A hold that the new master has is followed on there.
#[test]
fn a_failover_by_a_sentinel_is_followed_by_events_and_reads() {
    if !redis() {
        return;
    }
    let folder = Folder::new("sentinel");
    let dir = folder.path();
    let own = [&["--save", "", "--dir", &dir, "--repl-diskless-sync-delay", "0"], &EVENTS[..]].concat();
    let old = Live::new(&own);
    let new = Live::new(&[&own[..], &["--replicaof", "127.0.0.1", &old.port.to_string()]].concat());
    while !old.run("INFO replication").contains("state=online") {
        old.wait(20);
    }
    let file = format!("{}/sentinel.conf", folder.path());
    fs::write(&file, format!("sentinel monitor m 127.0.0.1 {} 1\n", old.port)).expect("written");
    let sentinel = Live::new(&[&file, "--sentinel"]);
    let url = format!("redis+sentinel://127.0.0.1:{}/m", sentinel.port);
    let arguments = ["--gentle", "--lock", "orders:*", "--poll", "100ms", "--for", "15s", "--json"];
    let audit = audit(&[&[&*url], &arguments[..]].concat());
    old.is_subscribed_to();
    assert_eq!(old.run("SET orders:a one NX PX 60000"), "+OK");
    // Within this time a read finds the name of the owner.
    old.wait(800);
    while sentinel.run("SENTINEL FAILOVER m") != "+OK" {
        sentinel.wait(200);
    }
    new.is_subscribed_to();
    new.wait(800);
    assert_eq!(new.run("SET orders:a two PX 60000"), "+OK");
    let (status, json) = outcome(audit);
    let [old, new] = [&old, &new].map(|node| format!("127.0.0.1:{}", node.port));
    let found = rows(&json, "findings", &["kind", "lock", "node"]);
    assert_eq!((status, found), (Some(1), vec![format!("overwritten orders:a {new}")]), "{json}");
    let changes = rows(&json, "changes", &["node", "what"]);
    for change in [
        format!("{old} is followed"),
        format!("{old} is no master any more"),
        format!("{new} took the place of {old}"),
        format!("{new} is followed"),
    ] {
        assert!(changes.contains(&change), "{change:?} is not in {changes:?}");
    }
    assert_eq!(rows(&json, "notices", &["kind"]), [""; 0], "{json}");
}
