//! What a script costs: EVALSHA of a lock's acquire script through `Server::step`, pipelined as a busy client would, beside
//! the smallest script there is and beside the making of an engine.
//!
//! `cargo bench --bench scripts`. For a real server on the same machine:
//! `redis-benchmark -P 100 -n 1000000 EVALSHA <sha1> 1 lock 30000 owner`, after `SCRIPT LOAD` of the same text.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use lockstorm_sim::{
    config::Config,
    env::Env,
    event::{ConnId, Event},
    server::Server,
};

/// A reentrant lock's acquire, in the five commands that such scripts are made of.
const ACQUIRE: &str = "if redis.call('exists', KEYS[1]) == 0 or redis.call('hexists', KEYS[1], ARGV[2]) == 1 then \
                       redis.call('hincrby', KEYS[1], ARGV[2], 1) redis.call('pexpire', KEYS[1], ARGV[1]) return nil end \
                       return redis.call('pttl', KEYS[1])";

/// Commands of one write, as many as a pipelining client sends at once.
const PIPELINE: usize = 100;

fn command(words: &[&str]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        out.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
    }
    out
}

/// A server with one client, and what it answered last.
struct Client {
    server: Server,
    env: Env,
}

impl Client {
    fn new() -> Client {
        let mut env = Env::new(1);
        let mut server = Server::new(Config::default(), &mut env);
        let (peer, local) = ("c1:1".into(), "n1:6379".into());
        server.step(&mut env, Event::Connected { conn: ConnId(1), peer, local });
        Client { server, env }
    }

    fn send(&mut self, bytes: &bytes::Bytes) -> usize {
        self.server.step(&mut self.env, Event::Bytes { conn: ConnId(1), bytes: bytes.clone() });
        self.env.outbox.drain(..).count()
    }
}

fn scripts(c: &mut Criterion) {
    let mut group = c.benchmark_group("scripts");
    let cases: [(&str, &str, &[&str]); 3] = [
        ("constant", "return 1", &["0"]),
        ("acquire", ACQUIRE, &["1", "lock", "30000", "owner"]),
        ("contended", ACQUIRE, &["1", "lock", "30000", "another"]),
    ];
    let mut client = Client::new();
    for (name, body, arguments) in cases {
        // EVAL makes the script known; its name is what SCRIPT LOAD would answer.
        let eval: Vec<&str> = ["EVAL", body].into_iter().chain(arguments.iter().copied()).collect();
        client.send(&command(&eval).into());
        let sha = sha1_hex(body);
        let words: Vec<&str> = ["EVALSHA", &sha].into_iter().chain(arguments.iter().copied()).collect();
        let pipeline = bytes::Bytes::from(command(&words).repeat(PIPELINE));
        group.throughput(Throughput::Elements(PIPELINE as u64));
        group.bench_function(name, |b| b.iter(|| client.send(&pipeline)));
    }
    group.throughput(Throughput::Elements(1));
    let eval = bytes::Bytes::from(command(&["EVAL", "return 1", "0"]));
    group.bench_function("first script of a node", |b| {
        b.iter_with_setup(Client::new, |mut client| client.send(&eval));
    });
    group.finish();
}

fn sha1_hex(text: &str) -> String {
    use sha1::Digest;
    sha1::Sha1::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

criterion_group!(benches, scripts);
criterion_main!(benches);
