//! Measures one pipeline of commands on two servers: ours by `Server::step`, without a wire, and a
//! private `redis-server` behind a loopback connection. The cost of the real one is the processor
//! time in its INFO, without the client's.

use std::{
    io::{Read, Write},
    net::TcpStream,
    time::Duration,
};

use bytes::Bytes;
use criterion::{BenchmarkGroup, BenchmarkId, Throughput};
use lockstorm_lab::support::redis::{Availability, RedisServer, availability};
use lockstorm_sim::{
    config::Config,
    env::Env,
    event::{Action, ConnId, Event},
    generation::Generation,
    server::Server,
};

use crate::processor::Processor;

/// Commands of one write, as many as a pipelining client sends together.
const PIPELINE: usize = 100;

/// Encodes a command as clients send it.
pub(crate) fn command(words: &[&str]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        out.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
    }
    out
}

/// Our server with one client, of the generation of the real one.
pub(crate) struct Stepped {
    server: Server,
    env: Env,
}

impl Stepped {
    pub(crate) fn new() -> Stepped {
        let mut env = Env::new(1);
        let mut server = Server::new(Config::of(Generation::Redis70), &mut env);
        let (peer, local) = ("c1:1".into(), "n1:6379".into());
        server.step(&mut env, Event::Connected { conn: ConnId(1), peer, local });
        Stepped { server, env }
    }

    /// Sends bytes; returns the length of the replies.
    pub(crate) fn send(&mut self, bytes: &Bytes) -> usize {
        self.server.step(&mut self.env, Event::Bytes { conn: ConnId(1), bytes: bytes.clone() });
        let sent = self.env.outbox.drain(..).map(|action| match action {
            Action::Send { bytes, .. } => bytes.len(),
            _ => 0,
        });
        sent.sum()
    }
}

/// A real server with one client, and a second connection that reads its processor time.
struct Real {
    stream: TcpStream,
    console: redis::Connection,
    _server: RedisServer,
}

impl Real {
    fn start() -> Option<Real> {
        match availability() {
            Availability::Present => {}
            Availability::Absent(why) | Availability::Missing(why) => {
                eprintln!("{why}");
                return None;
            }
        }
        let server = RedisServer::start(&[]);
        let stream = server.connect().expect("it answers");
        let client = redis::Client::open(server.url()).expect("a valid address");
        let console = client.get_connection().expect("it answers");
        Some(Real { stream, console, _server: server })
    }

    /// Sends a pipeline, and fills `answer` with its replies.
    fn send(&mut self, pipeline: &[u8], answer: &mut [u8]) {
        self.stream.write_all(pipeline).expect("it runs");
        self.stream.read_exact(answer).expect("it answers as ours does");
    }

    /// The processor time that it has used so far.
    fn used(&mut self) -> Duration {
        let info: String = redis::cmd("INFO").arg("cpu").query(&mut self.console).expect("it answers");
        let seconds = |name: &str| -> f64 {
            let value = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            value.and_then(|value| value.trim().parse().ok()).expect("INFO has it")
        };
        Duration::from_secs_f64(seconds("used_cpu_user") + seconds("used_cpu_sys"))
    }
}

pub(crate) struct Pair {
    stepped: Stepped,
    real: Option<Real>,
}

impl Pair {
    pub(crate) fn start() -> Pair {
        Pair { stepped: Stepped::new(), real: Real::start() }
    }

    /// Sends a command to both servers, without measuring it.
    pub(crate) fn prepare(&mut self, words: &[&str]) {
        let bytes = Bytes::from(command(words));
        let mut answer = vec![0; self.stepped.send(&bytes)];
        if let Some(real) = &mut self.real {
            real.send(&bytes, &mut answer);
        }
    }

    /// Measures repetitions of a pipeline of these commands on both servers.
    pub(crate) fn measure(
        &mut self,
        group: &mut BenchmarkGroup<'_, Processor>,
        name: &str,
        round: &[Vec<&str>],
    ) {
        let commands = round.iter().cycle().take(PIPELINE);
        let pipeline = Bytes::from(commands.flat_map(|words| command(words)).collect::<Vec<u8>>());
        group.throughput(Throughput::Elements(PIPELINE as u64));
        let stepped = &mut self.stepped;
        let mut answer = vec![0; stepped.send(&pipeline)];
        group.bench_function(BenchmarkId::new(name, "step"), |b| b.iter(|| stepped.send(&pipeline)));
        let Some(real) = &mut self.real else { return };
        group.bench_function(BenchmarkId::new(name, "redis-server"), |b| {
            b.iter_custom(|count| {
                let before = real.used();
                for _ in 0..count {
                    real.send(&pipeline, &mut answer);
                }
                real.used().saturating_sub(before)
            });
        });
    }
}
