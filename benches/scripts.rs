//! Measures a script: EVALSHA of a lock's acquire script through `Server::step`, pipelined like a
//! busy client, and beside it on a private `redis-server`; with the smallest possible script and
//! the creation of an engine for comparison.
//!
//! `cargo bench --bench scripts`

mod pipeline;
mod processor;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use pipeline::{Pair, Stepped, command};
use processor::Processor;

/// A reentrant lock's acquire, in the five commands typical of such scripts.
const ACQUIRE: &str = "if redis.call('exists', KEYS[1]) == 0 or redis.call('hexists', KEYS[1], ARGV[2]) == 1 then \
                       redis.call('hincrby', KEYS[1], ARGV[2], 1) redis.call('pexpire', KEYS[1], ARGV[1]) return nil end \
                       return redis.call('pttl', KEYS[1])";

fn scripts(c: &mut Criterion<Processor>) {
    let mut group = c.benchmark_group("scripts");
    // The holder keeps the lock for longer than a real server is measured.
    let cases: [(&str, &str, &[&str]); 3] = [
        ("constant", "return 1", &["0"]),
        ("acquire", ACQUIRE, &["1", "lock", "3000000", "owner"]),
        ("contended", ACQUIRE, &["1", "lock", "3000000", "another"]),
    ];
    let mut pair = Pair::start();
    for (name, body, arguments) in cases {
        // EVAL loads the script; its SHA-1 is the name that SCRIPT LOAD would return.
        let eval: Vec<&str> = ["EVAL", body].into_iter().chain(arguments.iter().copied()).collect();
        pair.prepare(&eval);
        let sha = lockstorm_sim::script::sha1_hex(body.as_bytes());
        let words: Vec<&str> = ["EVALSHA", &sha].into_iter().chain(arguments.iter().copied()).collect();
        pair.measure(&mut group, name, &[words]);
    }
    group.throughput(Throughput::Elements(1));
    let eval = bytes::Bytes::from(command(&["EVAL", "return 1", "0"]));
    group.bench_function("first script of a node", |b| {
        b.iter_with_setup(Stepped::new, |mut stepped| stepped.send(&eval));
    });
    group.finish();
}

criterion_group! { name = benches; config = processor::criterion(); targets = scripts }
criterion_main!(benches);
