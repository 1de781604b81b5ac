//! Atomic migrations of slots between nodes of Valkey 9.1, simulated and real: in either direction,
//! and between the two kinds.

use lockstorm_sim::generation::Generation::Valkey91;

use super::rig::{
    Group,
    Whose::{OursAs, RealOf},
    until,
};
use crate::served::program;

/// Longer than any pause of a busy machine.
const NODE_TIMEOUT_MS: u32 = 20_000;

#[test]
fn cluster_slots_move_atomically_between_nodes_of_both_kinds() {
    let (ours, real) = (OursAs(Valkey91), RealOf(Valkey91));
    for (number, pair) in [(ours, ours), (real, real), (real, ours), (ours, real)].into_iter().enumerate() {
        if program(Valkey91).is_none() && (pair.0 == real || pair.1 == real) {
            eprintln!("no valkey-9.1 is installed: {pair:?} is left out");
            continue;
        }
        let whose = [pair.0, pair.1, ours];
        let mut group = Group::together_within(&format!("atomic_{number}"), &whose, NODE_TIMEOUT_MS);
        for (command, reply) in [
            ("SET hello 1 PX 600000", "+OK"),
            ("SET {hello}:forever x", "+OK"),
            ("HSET {hello}:hash f v g w", ":2"),
            ("ZADD {hello}:scores 1.5 m", ":1"),
            ("RPUSH {hello}:list a b", ":2"),
            ("XADD {hello}:stream 1-1 f v", "\"1-1\""),
        ] {
            assert_eq!(group.node('a').ask(command), reply, "{pair:?}: {command}");
        }
        for (from, to) in [('a', 'b'), ('b', 'a')] {
            let id = group.nodes[&to].id.clone();
            let migrate = format!("CLUSTER MIGRATESLOTS SLOTSRANGE 860 870 NODE {id}");
            assert_eq!(group.node(from).ask(&migrate), "+OK", "{pair:?}");
            for node in [from, to] {
                until("the migration", || {
                    let jobs = group.node(node).ask("CLUSTER GETSLOTMIGRATIONS");
                    let newest = jobs.split("\"name\"").nth(1).unwrap_or_default().to_owned();
                    if newest.contains("\"success\"") { Ok(()) } else { Err(format!("{pair:?}: {newest}")) }
                });
            }
            let moved = format!("-MOVED 866 {}", group.nodes[&to].address());
            for (node, command, reply) in [
                (from, "GET hello", &*moved),
                (from, "CLUSTER COUNTKEYSINSLOT 866", ":0"),
                (to, "CLUSTER COUNTKEYSINSLOT 866", ":6"),
                (to, "GET hello", "\"1\""),
                (to, "PTTL {hello}:forever", ":-1"),
                (to, "HGET {hello}:hash g", "\"w\""),
                (to, "ZSCORE {hello}:scores m", "\"1.5\""),
                (to, "LRANGE {hello}:list 0 -1", "[\"a\" \"b\"]"),
                (to, "XLEN {hello}:stream", ":1"),
                (to, "CLUSTER CANCELSLOTMIGRATIONS", "-ERR No migrations ongoing"),
            ] {
                assert_eq!(group.node(node).ask(command), reply, "{pair:?}, {from} to {to}: {command}");
            }
            let left = group.node(to).ask("PTTL hello");
            let left: i64 = left.trim_start_matches(':').parse().expect("a number");
            assert!((1..=600_000).contains(&left), "{pair:?}: {left}");
        }
    }
}
