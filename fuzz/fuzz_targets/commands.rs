//! Sends commands with any arguments, several to one server: each gets a reply or waits, and the
//! server keeps running.
//!
//! The input is a list of lines: two bytes that choose the command, and words split at 0xff. A word
//! of one byte below 32 stands for one of [`WORDS`], so that options and keys with values come up
//! often.
#![no_main]

use std::time::Duration;

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use lockstorm_sim::{
    commands::{ALL, Spec},
    config::Config,
    env::Env,
    event::{Action, ConnId, Event},
    server::Server,
};

const WORDS: [&str; 32] = [
    "k",
    "l",
    "h",
    "s",
    "z",
    "x",
    "0",
    "1",
    "-1",
    "9223372036854775807",
    "-9223372036854775808",
    "inf",
    "1.5",
    "*",
    "-",
    "+",
    "$",
    ">",
    "(1",
    "[a",
    "COUNT",
    "LIMIT",
    "WITHSCORES",
    "MAXLEN",
    "STREAMS",
    "GROUP",
    "BLOCK",
    "STORE",
    "EX",
    "NX",
    "GET",
    "return redis.call(unpack(ARGV))",
];

/// A key of each type, under the names that `WORDS` begins with.
const DATA: [&[&str]; 7] = [
    &["SET", "k", "value"],
    &["RPUSH", "l", "a", "b", "c"],
    &["HSET", "h", "f", "1"],
    &["SADD", "s", "1", "2"],
    &["ZADD", "z", "1", "a", "2", "b"],
    &["XADD", "x", "1-1", "f", "v"],
    &["XGROUP", "CREATE", "x", "g", "0"],
];

fn multibulk(words: &[Bytes]) -> Bytes {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend(format!("${}\r\n", word.len()).into_bytes());
        bytes.extend(word);
        bytes.extend(b"\r\n");
    }
    bytes.into()
}

fn name(chosen: usize) -> Vec<Bytes> {
    let all: Vec<&Spec> = ALL
        .iter()
        .copied()
        .flatten()
        .flat_map(|spec| std::iter::once(*spec).chain(spec.subcommands.iter().copied()))
        .collect();
    all[chosen % all.len()].name.split('|').map(|word| Bytes::from_static(word.as_bytes())).collect()
}

struct Rig {
    env: Env,
    server: Server,
    next: u64,
}

impl Rig {
    fn connect(&mut self) -> ConnId {
        self.next += 1;
        let conn = ConnId(self.next);
        self.server
            .step(&mut self.env, Event::Connected { conn, peer: "c:1".into(), local: "n:6379".into() });
        conn
    }

    /// Sends a command; returns true if `conn` received a reply or was closed.
    fn send(&mut self, conn: ConnId, words: &[Bytes]) -> bool {
        self.server.step(&mut self.env, Event::Bytes { conn, bytes: multibulk(words) });
        let mut answered = false;
        for action in self.env.outbox.drain(..) {
            match action {
                Action::Send { conn: to, .. }
                | Action::Close { conn: to }
                | Action::Drain { conn: to }
                | Action::Kill { conn: to, .. } => answered |= to == conn,
                // No other server exists to follow or to migrate to.
                _ => {}
            }
        }
        answered
    }
}

fuzz_target!(|input: &[u8]| {
    let mut env = Env::new(1);
    let config = Config::default().with(|config| {
        config.clients.proto_max_bulk_len = 1 << 20;
        config.scripts.budget = 100_000;
    });
    let server = Server::new(config, &mut env);
    let mut rig = Rig { env, server, next: 0 };
    let conn = rig.connect();
    for words in DATA {
        assert!(rig.send(conn, &words.iter().map(|word| Bytes::from(*word)).collect::<Vec<_>>()));
    }
    for line in input.split(|&byte| byte == b'\n') {
        let [high, low, rest @ ..] = line else { continue };
        let mut words = name(usize::from(*high) << 8 | usize::from(*low));
        words.extend(rest.split(|&byte| byte == 0xff).filter(|word| !word.is_empty()).map(
            |word| match word {
                [which] if usize::from(*which) < WORDS.len() => {
                    Bytes::from_static(WORDS[usize::from(*which)].as_bytes())
                }
                word => Bytes::copy_from_slice(word),
            },
        ));
        rig.send(conn, &words);
        // An hour ends everything that it may wait for (a stalled script, DEBUG SLEEP, an expiry).
        rig.env.monotonic = rig.env.monotonic + Duration::from_secs(3600);
        rig.env.wall = rig.env.wall + Duration::from_secs(3600);
        rig.server.step(&mut rig.env, Event::Alarm);
        rig.env.outbox.clear();
    }
    // The server serves another client, unless a command has ended it, or a script or a pause
    // blocks it forever.
    let other = rig.connect();
    let ping = [Bytes::from_static(b"PING")];
    let node = rig.server.node();
    let held_up =
        node.exiting || node.busy.is_some() || node.paused.is_some() || node.stalled_until.is_some();
    assert!(held_up || rig.send(other, &ping), "the server does not answer");
});
