//! Clusters of nodes of several generations: they meet, pass messages on, and take over from a dead
//! master.

use std::time::Duration;

use lockstorm_sim::generation::{
    Feature,
    Generation::{self, Redis62, Redis70, Redis82, Valkey81, Valkey91},
};

use super::replication::{Outcome, outcome};
use crate::{
    cluster::rig::{
        Group, Line,
        Whose::{self, OursAs, RealOf},
        now, text, until,
    },
    served::{INSTALLED, program},
};

/// `cluster-node-timeout`, as in the tests of one generation.
const NODE_TIMEOUT_MS: u32 = 1_000;

/// Within this time a replica has taken over; real clusters took 2 to 3 s. A busy machine may need
/// a second election, which begins after twice the timeout and at least four seconds.
const TAKES_OVER: Duration = Duration::from_secs(15);

fn generation(whose: Whose) -> Generation {
    match whose {
        RealOf(generation) | OursAs(generation) => generation,
        Whose::Redis | Whose::Ours => INSTALLED,
    }
}

fn is_there(whose: &Whose) -> bool {
    !matches!(whose, RealOf(generation) if program(*generation).is_none())
}

/// The masters `a`, `b` and `c`, and `d`, the replica of `a`.
fn lives_on(whose: [Whose; 4]) {
    if !whose.iter().all(is_there) {
        return;
    }
    let name = format!("{whose:?}");
    let folder: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    let mut group = Group::together_within(&format!("mixed_{folder}"), &whose, NODE_TIMEOUT_MS);
    passes_messages_on(&mut group, &name);
    shards_have_ids(&mut group, &name);

    // The slot of this key belongs to `a`.
    assert_eq!(group.node('a').ask("SET bar 1"), "+OK", "{name}");
    assert_eq!(group.node('a').ask("WAIT 1 10000"), ":1", "{name}");
    group.node('a').kill();
    let killed = now();
    until(&format!("{name}: d takes over"), || match group.node('d').ask("GET bar") {
        answer if answer == "\"1\"" => Ok(()),
        answer => Err(answer),
    });
    assert!(killed.elapsed() < TAKES_OVER, "{name}: {:?}", killed.elapsed());
    let gone = group.nodes[&'a'].id.clone();
    for by in ['b', 'c', 'd'] {
        until(&format!("{name}: {by} is well without a"), || {
            let (nodes, info) = (group.node(by).ask("CLUSTER NODES"), group.node(by).ask("CLUSTER INFO"));
            let line = nodes.split("\\n").find(|line| line.contains(&gone) && line.contains("fail"));
            match line.is_some_and(|line| line.contains("master,fail")) && info.contains("cluster_state:ok") {
                true => Ok(()),
                false => Err(format!("{nodes} {info}")),
            }
        });
    }

    // The old master comes back as a replica, if it can read a snapshot of the new one.
    group.node('a').start_as(whose[0]);
    for by in ['b', 'c', 'd'] {
        until(&format!("{name}: {by} has a as a replica"), || {
            let nodes = group.node(by).ask("CLUSTER NODES");
            let is_replica =
                |line: &str| line.trim_start_matches('"').starts_with(&gone) && line.contains(" slave ");
            if nodes.split("\\n").any(is_replica) { Ok(()) } else { Err(nodes) }
        });
    }
    if outcome(generation(whose[3]), generation(whose[0])) == Outcome::Up {
        until(&format!("{name}: a follows d"), || {
            let info = group.node('a').ask("INFO replication");
            if info.contains("master_link_status:up") { Ok(()) } else { Err(info) }
        });
    }
}

/// A message of each node reaches a subscriber of each node.
fn passes_messages_on(group: &mut Group, name: &str) {
    let mut subscribers: Vec<(char, Line)> = Vec::new();
    for (at, node) in &group.nodes {
        let mut line = Line::to(node.port).expect("it listens");
        line.send(&["SUBSCRIBE", "channel"].map(str::to_owned));
        assert!(text(&line.receive()).contains("subscribe"), "{name}");
        subscribers.push((*at, line));
    }
    for (from, node) in &mut group.nodes {
        node.ask(&format!("PUBLISH channel from-{from}"));
        for (at, line) in &mut subscribers {
            let message = text(&line.receive());
            assert!(message.contains(&format!("\"from-{from}\"")), "{name}: {from} to {at}: {message}");
        }
    }
}

/// A replica has the shard id of its master, where there are such ids.
fn shards_have_ids(group: &mut Group, name: &str) {
    let has_ids = |group: &Group, node: char| generation(group.nodes[&node].whose).has(Feature::ShardIds);
    if !has_ids(group, 'a') || !has_ids(group, 'd') {
        return;
    }
    let id = group.node('a').ask("CLUSTER MYSHARDID");
    assert_eq!(id.len(), 42, "{name}: {id}");
    until(&format!("{name}: d has the shard id of a"), || match group.node('d').ask("CLUSTER MYSHARDID") {
        other if other == id => Ok(()),
        other => Err(format!("{other} is not {id}")),
    });
}

#[test]
fn nodes_of_several_generations_take_over_from_each_other() {
    for whose in [
        [OursAs(Valkey91), RealOf(Redis82), RealOf(Valkey91), RealOf(Valkey91)],
        [RealOf(Redis82), OursAs(Valkey91), RealOf(Redis70), OursAs(Redis82)],
        [RealOf(Redis70), OursAs(Redis82), OursAs(Valkey81), OursAs(Valkey91)],
        [RealOf(Redis62), OursAs(Redis70), RealOf(Redis82), OursAs(Valkey81)],
        [OursAs(Redis62), RealOf(Redis62), RealOf(Valkey81), RealOf(Redis82)],
        [RealOf(Redis70), OursAs(Redis62), RealOf(Redis62), OursAs(Valkey91)],
    ] {
        lives_on(whose);
    }
}

#[test]
#[ignore = "of many clusters and their real times: cargo test -p lockstorm-cli --test serve -- --ignored mixed"]
fn every_node_takes_over_from_every_master_that_it_can_follow() {
    let generations = Generation::ALL;
    for (at, master) in generations.into_iter().enumerate() {
        for replica in generations {
            if outcome(master, replica) != Outcome::Up {
                continue;
            }
            // The voters are of two generations, real and simulated in turn.
            let voters = [1, 2].map(|step| generations[(at + step) % generations.len()]);
            lives_on([RealOf(master), OursAs(voters[0]), RealOf(voters[1]), OursAs(replica)]);
            lives_on([OursAs(master), RealOf(voters[0]), OursAs(voters[1]), RealOf(replica)]);
        }
    }
}

/// Redis 8.2 sends other nodes a secret in an extension of the bus whose number is that of the IPv4
/// address for clients in Valkey. So Valkey names the secret in place of the address.
#[test]
fn valkey_takes_the_secret_of_redis_for_its_address() {
    for [a, b, c] in [
        [RealOf(Redis82), RealOf(Valkey91), OursAs(Valkey91)],
        [OursAs(Redis82), RealOf(Valkey81), OursAs(Valkey81)],
    ] {
        if ![a, b, c].iter().all(is_there) {
            continue;
        }
        let name = format!("{:?}", [a, b, c]);
        let folder: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
        let mut group = Group::together_within(&format!("secret_{folder}"), &[a, b, c], NODE_TIMEOUT_MS);
        let port = group.nodes[&'a'].port;
        let mut named = Vec::new();
        for by in ['b', 'c'] {
            until(&format!("{name}: {by} redirects to a secret"), || {
                let redirection = group.node(by).ask("GET bar");
                let host = redirection
                    .strip_prefix("-MOVED 5061 ")
                    .and_then(|to| to.strip_suffix(&format!(":{port}")));
                match host
                    .filter(|host| host.len() == 40 && host.bytes().all(|byte| byte.is_ascii_hexdigit()))
                {
                    Some(host) => {
                        named.push(host.to_owned());
                        Ok(())
                    }
                    None => Err(redirection),
                }
            });
        }
        assert_eq!(named[0], named[1], "{name}");
    }
}
