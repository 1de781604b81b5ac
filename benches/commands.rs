//! Measures the commands of locks and those of `redis-benchmark`: through `Server::step`, and
//! beside it on a private `redis-server` over a pipelined connection. EVALSHA is in
//! `benches/scripts.rs`.
//!
//! `cargo bench --bench commands`

mod pipeline;
mod processor;

use criterion::{Criterion, criterion_group, criterion_main};
use pipeline::Pair;
use processor::Processor;

/// The name and the commands of each round. A round restores the data for the next one, so that
/// each does the same work and replies with as many bytes.
const ROUNDS: &[(&str, &[&str])] = &[
    ("ping", &["PING"]),
    ("set", &["SET key value"]),
    ("get", &["GET key"]),
    ("set nx px, taken", &["SET key another NX PX 30000"]),
    ("incr", &["INCR counter"]),
    ("lpush, rpop", &["LPUSH list value", "RPOP list"]),
    ("lrange_100", &["LRANGE list 0 99"]),
    ("sadd", &["SADD set member:000000012345"]),
    ("hset", &["HSET hash field 1"]),
    ("pexpire", &["PEXPIRE hash 3000000"]),
    ("zadd", &["ZADD sorted 1 member:000000012345"]),
    ("zadd, zpopmin", &["ZADD sorted 0 member", "ZPOPMIN sorted"]),
    (
        "mset, 10 keys",
        &[
            "MSET key:1 value key:2 value key:3 value key:4 value key:5 value key:6 value key:7 value key:8 value \
           key:9 value key:10 value",
        ],
    ),
];

fn commands(c: &mut Criterion<Processor>) {
    let mut group = c.benchmark_group("commands");
    let mut pair = Pair::start();
    // Numbers that keep their length, and a hundred elements besides those that the rounds add and
    // remove.
    pair.prepare(&["SET", "counter", "1000000000000"]);
    for number in 0..100 {
        let member = format!("member:{number:012}");
        pair.prepare(&["RPUSH", "list", "value"]);
        pair.prepare(&["ZADD", "sorted", "1", &member]);
    }
    for (name, round) in ROUNDS {
        let commands: Vec<Vec<&str>> = round.iter().map(|line| line.split(' ').collect()).collect();
        commands.iter().for_each(|words| pair.prepare(words));
        pair.measure(&mut group, name, &commands);
    }
    group.finish();
}

criterion_group! { name = benches; config = processor::criterion(); targets = commands }
criterion_main!(benches);
