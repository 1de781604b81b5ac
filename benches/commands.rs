//! What the commands cost that locks are made of: through `Server::step`, and beside it a private `redis-server` over a
//! pipelined connection.
//!
//! `cargo bench --bench commands`

mod pipeline;
mod processor;

use criterion::{Criterion, criterion_group, criterion_main};
use pipeline::Pair;
use processor::Processor;

/// By name; each leaves the data as the next time finds it, so that every round does the same work.
const COMMANDS: &[(&str, &[&str])] = &[
    ("ping", &["PING"]),
    ("set", &["SET", "key", "a value of a few bytes"]),
    ("get", &["GET", "key"]),
    ("set nx px, taken", &["SET", "key", "another value", "NX", "PX", "30000"]),
    ("hset", &["HSET", "hash", "field", "1"]),
    ("pexpire", &["PEXPIRE", "hash", "3000000"]),
];

fn commands(c: &mut Criterion<Processor>) {
    let mut group = c.benchmark_group("commands");
    let mut pair = Pair::start();
    for (name, words) in COMMANDS {
        pair.prepare(words);
        pair.measure(&mut group, name, words);
    }
    group.finish();
}

criterion_group! { name = benches; config = processor::criterion(); targets = commands }
criterion_main!(benches);
