//! The effect of each fault on the wire of a real server: the client's replies with their times,
//! and the server's actions.

use std::{
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    process::{Child, Command, Stdio},
    time::Duration,
};

use lockstorm_sim::drive::world::Resp;
use lockstorm_world::{
    Break, Condition, Engine, Event, HostCtx, Latency, MessageFault, Rule, TraceRetention, Verb, World,
    time::{Monotonic, True},
};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use crate::{PLAYS, redis};

/// A `redis-server` for one test; dropping it kills the process.
struct Redis(Child, SocketAddr);

impl Redis {
    fn start() -> Redis {
        let bound = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
        let address = bound.expect("a free port");
        let mut command = Command::new("redis-server");
        command.args(["--bind", "127.0.0.1", "--save", "", "--port", &address.port().to_string()]);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let redis = Redis(child.expect("redis-server is there"), address);
        #[expect(clippy::disallowed_methods, reason = "a test of real servers, in real time")]
        let mut tries = (0..500).map(|_| {
            std::thread::sleep(Duration::from_millis(20));
            TcpStream::connect(address).is_ok()
        });
        assert!(tries.any(|up| up), "redis-server is up within ten seconds");
        redis
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// The additional delay of a reply under load, in milliseconds.
const LATE_MAX: i64 = 90;

/// Reports each reply, and the end of the connection.
async fn listen(ctx: HostCtx, reading: impl tokio::io::AsyncRead + Unpin) {
    let mut lines = BufReader::new(reading).lines();
    loop {
        match lines.next_line().await {
            Ok(Some(line)) => ctx.observe("answer", line),
            Ok(None) => return ctx.observe("answer", "closed"),
            Err(error) => return ctx.observe("answer", error.kind().to_string()),
        }
    }
}

/// A client 10 ms away increments a number at 100, 200 and 300 ms, and another one reads it at 700
/// ms. Returns the first client's replies with their times, and the second client's reply.
fn conversation(server: SocketAddr, key: &str, verbs: &[(i64, Verb)]) -> (Vec<(String, i64)>, String) {
    let (increment, get) = (format!("INCR {key}\r\n"), format!("GET {key}\r\n"));
    let mut world = World::builder(1)
        .engine(Engine::Real)
        .protocol(Resp::default)
        .host("r", move |ctx| async move {
            ctx.stand_for(6379, Some(server));
            std::future::pending::<()>().await;
        })
        .host("c", move |ctx| {
            let increment = increment.clone();
            async move {
                let stream = ctx.dial("r", 6379).await.expect("the server listens");
                let (reading, mut writing) = tokio::io::split(stream);
                ctx.spawn(listen(ctx.clone(), reading));
                // A later connection without any traffic: faults apply to all connections.
                let _idle = ctx.dial("r", 6379).await.expect("the server listens");
                for at in [100, 200, 300] {
                    ctx.sleep_until(Monotonic::from_millis(at)).await;
                    if writing.write_all(increment.as_bytes()).await.is_err() {
                        break;
                    }
                }
                std::future::pending::<()>().await;
            }
        })
        .host("d", move |ctx| {
            let get = get.clone();
            async move {
                ctx.sleep_until(Monotonic::from_millis(700)).await;
                let stream = ctx.dial("r", 6379).await.expect("the server listens");
                let (reading, mut writing) = tokio::io::split(stream);
                writing.write_all(get.as_bytes()).await.expect("open");
                let mut lines = BufReader::new(reading).lines();
                while let Ok(Some(line)) = lines.next_line().await {
                    ctx.observe("left", line);
                }
            }
        })
        .latency(Latency::Fixed(ms(10)))
        .keep(TraceRetention::Events)
        .build();
    for (at, verb) in verbs {
        world.control().at(True::from_millis(*at), verb.clone());
    }
    world.run(True::from_millis(900)).expect("it runs");
    let (mut answers, mut left) = (Vec::new(), String::new());
    for record in world.records() {
        match record.event {
            Event::Observed { kind: "answer", detail } => answers.push((detail, record.at.as_millis())),
            Event::Observed { kind: "left", detail } => left = detail,
            _ => {}
        }
    }
    (answers, left)
}

/// Undisturbed, a reply takes 20 ms.
#[test]
fn every_fault_of_links_and_messages_shows_on_the_wire_of_a_real_server() {
    if !redis() {
        return;
    }
    let (c, r) = (|| "c".to_owned(), || "r".to_owned());
    let during = |condition: Condition, from: i64, until: i64| {
        vec![(from, condition.clone().begin("it")), (until, condition.end("it"))]
    };
    let both = |one: Vec<(i64, Verb)>, other: Vec<(i64, Verb)>| [one, other].concat();
    let there = || Condition::Cut { from: c(), to: r() };
    let back = || Condition::Cut { from: r(), to: c() };
    let second = |fault| {
        let rule = Rule { command: Some("incr".into()), client: Some(c()), nth: 2, ..Rule::new(fault) };
        during(Condition::Rule(rule), 0, 850)
    };
    let breaks = |at| second(MessageFault::Break(at));
    type Row<'a> = (&'a str, Vec<(i64, Verb)>, Vec<(&'a str, i64)>, &'a str);
    let rows: Vec<Row<'_>> = vec![
        ("nothing", vec![], vec![(":1", 120), (":2", 220), (":3", 320)], "3"),
        // Sent bytes wait, and continue in order when the cut heals.
        (
            "cut",
            both(during(there(), 150, 450), during(back(), 150, 450)),
            vec![(":1", 120), (":2", 470), (":3", 470)],
            "3",
        ),
        ("cut there", during(there(), 150, 450), vec![(":1", 120), (":2", 470), (":3", 470)], "3"),
        ("cut back", during(back(), 150, 450), vec![(":1", 120), (":2", 460), (":3", 460)], "3"),
        // The server has executed the commands, and no reply arrives.
        ("cut back for good", during(back(), 150, 2_000), vec![(":1", 120)], "3"),
        ("cut there for good", during(there(), 150, 2_000), vec![(":1", 120)], "1"),
        (
            "slow",
            during(Condition::Slow { from: r(), to: c(), by: ms(150) }, 150, 850),
            vec![(":1", 120), (":2", 370), (":3", 470)],
            "3",
        ),
        // A lost packet arrives late.
        (
            "loss",
            during(Condition::Lossy { from: c(), to: r(), per_million: 1_000_000 }, 150, 850),
            vec![(":1", 120), (":2", 420), (":3", 520)],
            "3",
        ),
        (
            "reset",
            vec![(150, Verb::Reset { one: c(), other: r() })],
            vec![(":1", 120), ("connection reset", 150)],
            "1",
        ),
        ("lose reply", breaks(Break::LoseReply), vec![(":1", 120)], "3"),
        (
            "late request",
            second(MessageFault::DelayRequest(ms(150))),
            vec![(":1", 120), (":2", 370), (":3", 370)],
            "3",
        ),
        (
            "late reply",
            second(MessageFault::DelayReply(ms(150))),
            vec![(":1", 120), (":2", 370), (":3", 370)],
            "3",
        ),
        ("closed after", breaks(Break::BeforeReply), vec![(":1", 120), ("closed", 220)], "2"),
        ("closed before", breaks(Break::BeforeRequest), vec![(":1", 120), ("closed", 220)], "1"),
    ];
    let redis = Redis::start();
    let play = |(name, verbs, expected, left): &Row<'_>| {
        let mut found = Vec::new();
        for play in 1..=PLAYS {
            let key = format!("{name}:{play}").replace(' ', "-");
            let (answers, kept) = conversation(redis.1, &key, verbs);
            let is_in_time = |(found, expected): (&(String, i64), &(&str, i64))| {
                found.0 == expected.0 && (expected.1..=expected.1 + LATE_MAX).contains(&found.1)
            };
            let alike = answers.len() == expected.len() && answers.iter().zip(expected).all(is_in_time);
            if alike && kept == *left {
                return;
            }
            found.push((answers, kept));
        }
        panic!("{name}: expected {expected:?} and {left}, found {found:#?}");
    };
    std::thread::scope(|scope| {
        let plays: Vec<_> = rows.iter().map(|row| scope.spawn(|| play(row))).collect();
        plays.into_iter().for_each(|played| played.join().expect("as expected"));
    });
}
