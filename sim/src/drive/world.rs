//! A node on a host of the world, and the protocol of real servers that hosts stand for.

use std::{future::Future, io, net::IpAddr, time::Duration};

use bytes::Bytes;
use lockstorm_world::{
    Event, Fate, HostCtx, Protocol, Request, TcpListener, TcpStream,
    time::{Monotonic, Wall},
};

use super::{DrivenNode, Ends, Platform, serve, tap::Tap};
use crate::{
    config::Config,
    env::{Env, Observation},
    event::ConnId,
    resp::ReplyCounter,
    server::Server,
};

/// Runs a node on this host until it exits: a new server with this configuration, in `node`, at the
/// port that the configuration names. Pass it to [`Builder::host`](lockstorm_world::Builder::host).
pub async fn run(ctx: HostCtx, config: Config, node: DrivenNode) {
    run_with(ctx, config.network.port, node, |env, _| Server::new(config, env)).await;
}

/// Like [`run`], with a server that `start` makes. `start` gets the server from before the last
/// crash or exit, if any, to take over its durable data.
pub async fn run_with(
    ctx: HostCtx,
    port: u16,
    node: DrivenNode,
    start: impl FnOnce(&mut Env, Option<Server>) -> Server,
) {
    let mut env = Env::with_entropy(ctx.stream("node").into_inner());
    (env.wall, env.monotonic) = (ctx.wall(), ctx.monotonic());
    let server = start(&mut env, node.take());
    node.replace(server);
    let listener = match ctx.listen(port).await {
        Ok(listener) => listener,
        Err(error) => return ctx.observe("no listener", error.to_string()),
    };
    let bus = match node.look(|server| server.listens_for_cluster()).flatten() {
        Some(port) => match ctx.listen(port).await {
            Ok(bus) => Some(bus),
            Err(error) => return ctx.observe("no listener", error.to_string()),
        },
        None => None,
    };
    serve(ctx, listener, bus, node, env).await;
}

impl Platform for HostCtx {
    type Listener = TcpListener;
    type Stream = TcpStream;

    fn wall(&self) -> Wall {
        HostCtx::wall(self)
    }

    fn monotonic(&self) -> Monotonic {
        HostCtx::monotonic(self)
    }

    fn sleep_until(&self, at: Monotonic) -> impl Future<Output = ()> + 'static {
        HostCtx::sleep_until(self, at)
    }

    fn wait(&self, delay: Duration) -> impl Future<Output = ()> + 'static {
        self.wire_delay(delay)
    }

    async fn accept(&self, listener: &TcpListener) -> io::Result<TcpStream> {
        listener.accept().await.map(|(stream, _)| stream)
    }

    // A host has only one address to dial from.
    async fn dial(&self, host: &str, port: u16, _: Option<IpAddr>) -> io::Result<TcpStream> {
        HostCtx::dial(self, host, port).await
    }

    fn ends(&self, stream: &TcpStream) -> io::Result<Ends> {
        Ok(Ends::tcp(stream.peer_addr()?, stream.local_addr()?))
    }

    const WATCHED: bool = true;

    fn request(&self, peer: IpAddr, conn: ConnId, raw: &Bytes, arguments: &[Bytes]) -> Fate {
        let client = self.host_at(peer).unwrap_or_else(|| "".into());
        let fate = self.judge(&client, arguments);
        self.record(Event::Request { client, connection: conn.0, command: raw.clone() });
        fate
    }

    fn reply(&self, peer: IpAddr, conn: ConnId, bytes: &Bytes) {
        let client = self.host_at(peer).unwrap_or_else(|| "".into());
        self.record(Event::Reply { client, connection: conn.0, bytes: bytes.clone() });
    }

    fn observed(&self, observation: &Observation) {
        let effect = match observation {
            Observation::Command { .. } => return, // the request is on record
            Observation::Key { db, key, event, by } => {
                let by = by.map_or("the node".into(), |conn| conn.to_string());
                format!("{event} {db}:{} by {by}", key.escape_ascii())
            }
            Observation::Published { channel, message, receivers } => {
                format!("published {} to {receivers} of {}", message.escape_ascii(), channel.escape_ascii())
            }
            Observation::Role { role } => format!("role {role}"),
            Observation::Cluster { event, about } => format!("cluster {event} {about}"),
        };
        self.record(Event::Effect { effect });
    }
}

/// The commands that a server answers with pushes instead of a reply.
const ANSWERED_BY_PUSHES: [&[u8]; 6] =
    [b"SUBSCRIBE", b"PSUBSCRIBE", b"SSUBSCRIBE", b"UNSUBSCRIBE", b"PUNSUBSCRIBE", b"SUNSUBSCRIBE"];

/// The protocol of real servers, for worlds in real time. Pass `Resp::default` to
/// [`Builder::protocol`](lockstorm_world::Builder::protocol).
#[derive(Default)]
pub struct Resp {
    tap: Tap,
    replies: ReplyCounter,
}

impl Protocol for Resp {
    fn feed(&mut self, bytes: &[u8]) {
        self.tap.feed(bytes);
    }

    fn next_request(&mut self) -> Result<Option<Request>, Bytes> {
        let Some((raw, arguments)) = self.tap.next()? else { return Ok(None) };
        let has_reply = !ANSWERED_BY_PUSHES.iter().any(|name| name.eq_ignore_ascii_case(&arguments[0]));
        Ok(Some(Request { raw, arguments, has_reply }))
    }

    fn count_replies(&mut self, bytes: &[u8]) -> u64 {
        self.replies.count(bytes)
    }
}

#[cfg(test)]
mod tests {
    use lockstorm_world::{
        Break, Builder, Condition, Latency, MessageFault, Rule, TraceRetention, Verb, World, time::True,
    };
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// A node `r` and a client `c` 10 ms apart. The client sends each command at its time in
    /// milliseconds without waiting for replies, and observes everything it reads.
    fn conversation(commands: &'static [(i64, &'static str)]) -> Builder {
        let node = DrivenNode::new();
        World::builder(1)
            .host("r", move |ctx| run(ctx, Config::default(), node.clone()))
            .host("c", move |ctx| async move {
                let stream = ctx.dial("r", 6379).await.expect("the node listens");
                let (mut reading, mut writing) = tokio::io::split(stream);
                let listener = ctx.clone();
                ctx.spawn(async move {
                    let mut buffer = [0; 4096];
                    loop {
                        match reading.read(&mut buffer).await {
                            Ok(0) => return listener.observe("reply", "closed"),
                            Ok(n) => listener.observe("reply", buffer[..n].escape_ascii().to_string()),
                            Err(error) => return listener.observe("reply", error.kind().to_string()),
                        }
                    }
                });
                for (at, command) in commands {
                    ctx.sleep_until(Monotonic::from_millis(*at)).await;
                    if writing.write_all(command.as_bytes()).await.is_err() {
                        return;
                    }
                }
                std::future::pending::<()>().await;
            })
            .latency(Latency::Fixed(Duration::from_millis(10)))
            .keep(TraceRetention::Events)
    }

    fn replies(world: &World) -> String {
        let lines: Vec<_> = world
            .records()
            .into_iter()
            .filter_map(|record| match record.event {
                Event::Observed { kind: "reply", detail } => {
                    Some(format!("{detail}@{}", record.at.as_millis()))
                }
                _ => None,
            })
            .collect();
        lines.join(" ")
    }

    #[test]
    fn a_rule_takes_one_message_of_many() {
        let commands = &[(100, "SET a 1\r\nGET a\r\n"), (200, "GET a\r\n"), (300, "GET b\r\n")];
        let ms = Duration::from_millis;
        let get =
            |nth, act| Rule { command: Some("get".into()), client: Some("c".into()), nth, ..Rule::new(act) };
        let rows: &[(&[Rule], &str)] = &[
            (&[], r"+OK\r\n$1\r\n1\r\n@120 $1\r\n1\r\n@220 $-1\r\n@320"),
            // Silence from there on, but the connection stays open.
            (&[get(2, MessageFault::Break(Break::LoseReply))], r"+OK\r\n$1\r\n1\r\n@120"),
            (&[get(1, MessageFault::Break(Break::LoseReply))], r"+OK\r\n@120"),
            // Data behind a late message is late as well.
            (
                &[get(2, MessageFault::DelayRequest(ms(150)))],
                r"+OK\r\n$1\r\n1\r\n@120 $1\r\n1\r\n$-1\r\n@370",
            ),
            (&[get(2, MessageFault::DelayReply(ms(150)))], r"+OK\r\n$1\r\n1\r\n@120 $1\r\n1\r\n$-1\r\n@370"),
            (&[get(2, MessageFault::Break(Break::BeforeReply))], r"+OK\r\n$1\r\n1\r\n@120 closed@220"),
            (&[get(2, MessageFault::Break(Break::BeforeRequest))], r"+OK\r\n$1\r\n1\r\n@120 closed@220"),
            (
                &[get(9, MessageFault::Break(Break::LoseReply))],
                r"+OK\r\n$1\r\n1\r\n@120 $1\r\n1\r\n@220 $-1\r\n@320",
            ),
            // Each of several rules acts: 50 ms on the way there and 100 ms on the way back.
            (
                &[get(2, MessageFault::DelayRequest(ms(50))), get(2, MessageFault::DelayReply(ms(100)))],
                r"+OK\r\n$1\r\n1\r\n@120 $1\r\n1\r\n$-1\r\n@370",
            ),
            (
                &[
                    get(2, MessageFault::DelayRequest(ms(50))),
                    get(2, MessageFault::Break(Break::BeforeReply)),
                ],
                r"+OK\r\n$1\r\n1\r\n@120 closed@270",
            ),
            // A shorter delay of a later reply does not shorten the delay of an earlier one.
            (
                &[get(2, MessageFault::DelayReply(ms(250))), get(3, MessageFault::DelayReply(ms(10)))],
                r"+OK\r\n$1\r\n1\r\n@120 $1\r\n1\r\n$-1\r\n@470",
            ),
        ];
        for (rules, expected) in rows {
            let mut world = conversation(commands).build();
            for (at, rule) in rules.iter().enumerate() {
                world.control().now(Condition::Rule(rule.clone()).begin(at.to_string()));
            }
            world.run(True::from_millis(1_000)).expect("it runs");
            assert_eq!(replies(&world), *expected, "{rules:?}");
        }
    }

    #[test]
    fn a_lost_reply_is_of_a_command_that_was_executed_and_a_dropped_request_is_not() {
        for (at, left) in [(Break::LoseReply, "$1\\r\\n1\\r\\n"), (Break::BeforeRequest, "$-1\\r\\n")] {
            let set = Rule { command: Some("SET".into()), ..Rule::new(MessageFault::Break(at)) };
            let node = DrivenNode::new();
            let mut world = World::builder(1)
                .host("r", move |ctx| run(ctx, Config::default(), node.clone()))
                .host("c", |ctx| async move {
                    let mut first = ctx.dial("r", 6379).await.expect("the node listens");
                    first.write_all(b"SET a 1\r\n").await.expect("open");
                    ctx.sleep_until(Monotonic::from_secs(1)).await;
                    let mut second = ctx.dial("r", 6379).await.expect("the node listens");
                    second.write_all(b"GET a\r\n").await.expect("open");
                    let mut buffer = [0; 64];
                    let n = second.read(&mut buffer).await.expect("it answers");
                    ctx.observe("reply", buffer[..n].escape_ascii().to_string());
                })
                .keep(TraceRetention::Events)
                .build();
            world.control().now(Condition::Rule(set).begin("it"));
            world.run(True::from_secs(2)).expect("it runs");
            assert!(replies(&world).starts_with(left), "{at:?}: {}", replies(&world));
        }
    }

    #[test]
    fn keys_expire_by_the_wall_clock_of_their_node() {
        let commands = &[(100, "SET a 1\r\nPEXPIRE a 1000\r\n"), (600, "GET a\r\n"), (1_600, "GET a\r\n")];
        let (alive, gone) = (r"$1\r\n1\r\n", r"$-1\r\n");
        let rows = [
            (vec![], [alive, gone]),
            (vec![Verb::ClockStep { host: "r".into(), by_nanos: 2_000_000_000 }], [gone, gone]),
            (vec![Verb::ClockStep { host: "r".into(), by_nanos: -2_000_000_000 }], [alive, alive]),
            (vec![Verb::ClockStep { host: "c".into(), by_nanos: 2_000_000_000 }], [alive, gone]),
            (vec![Condition::ClockFrozen { host: "r".into(), clock_id: None }.begin("it")], [alive, alive]),
        ];
        for (verbs, [then, later]) in rows {
            let mut world = conversation(commands).build();
            verbs.iter().for_each(|verb| world.control().at(True::from_millis(300), verb.clone()));
            world.run(True::from_secs(2)).expect("it runs");
            assert_eq!(replies(&world), format!(r"+OK\r\n:1\r\n@120 {then}@620 {later}@1620"), "{verbs:?}");
        }
    }

    #[test]
    fn a_watcher_sees_each_change_when_it_is_made_and_may_look_at_the_node() {
        let (node, seen) = (DrivenNode::new(), std::rc::Rc::new(std::cell::RefCell::new(vec![])));
        let software = {
            let (node, seen) = (node.clone(), seen.clone());
            move |ctx: HostCtx| {
                let (node, seen, clocks) = (node.clone(), seen.clone(), ctx.clone());
                let watched = node.clone();
                node.watch(move |observation| {
                    if let Observation::Key { key, event, .. } = observation {
                        let (at, _) = clocks.moment();
                        let keys = watched.look(|server| server.node().dbs[0].len());
                        seen.borrow_mut().push((at.as_millis(), *event, key.clone(), keys));
                    }
                });
                run(ctx, Config::default(), node)
            }
        };
        let client = |ctx: HostCtx| async move {
            let mut stream = ctx.dial("r", 6379).await.expect("the node listens");
            stream.write_all(b"SET a 1\r\nSET b 1\r\nDEL a\r\n").await.expect("open");
            stream.read_exact(&mut [0; 14]).await.expect("answered");
        };
        let latency = Latency::Fixed(Duration::from_millis(10));
        let mut world = World::builder(1).host("r", software).host("c", client).latency(latency).build();
        world.run(True::from_secs(1)).expect("it runs");
        let expected = [("new", "a", 1), ("set", "a", 1), ("new", "b", 2), ("set", "b", 2), ("del", "a", 1)];
        assert_eq!(
            *seen.borrow(),
            expected.map(|(event, key, keys)| (30, event, Bytes::from(key), Some(keys)))
        );
    }

    #[test]
    fn bytes_that_are_no_command_get_the_servers_own_answer() {
        let mut world = conversation(&[(100, "*1\r\n$x\r\n")]).build();
        world.run(True::from_secs(1)).expect("it runs");
        assert_eq!(replies(&world), r"-ERR Protocol error: invalid bulk length\r\n@120 closed@120");
    }

    #[test]
    fn the_requests_of_a_real_server_are_its_commands_and_pushes_are_no_replies() {
        let mut resp = Resp::default();
        resp.feed(b"GET a\r\n*2\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n*1\r\n$4\r\nPI");
        let words =
            |words: &[&str]| words.iter().map(|word| Bytes::copy_from_slice(word.as_bytes())).collect();
        let get = Request { raw: Bytes::from("GET a\r\n"), arguments: words(&["GET", "a"]), has_reply: true };
        assert_eq!(resp.next_request(), Ok(Some(get)));
        let subscribe = Request {
            raw: Bytes::from("*2\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n"),
            arguments: words(&["subscribe", "c"]),
            has_reply: false,
        };
        assert_eq!(resp.next_request(), Ok(Some(subscribe)));
        assert_eq!(resp.next_request(), Ok(None));
        resp.feed(b"NG\r\n*1\r\n$x\r\n");
        assert_eq!(
            resp.next_request().map(|request| request.map(|request| request.raw)),
            Ok(Some(Bytes::from("*1\r\n$4\r\nPING\r\n")))
        );
        assert_eq!(resp.next_request(), Err(Bytes::from("*1\r\n$x\r\n")));
        assert_eq!(resp.count_replies(b"$1\r\n1\r\n>3\r\n$1\r\na\r\n$1\r\nb\r\n:1\r\n+PO"), 1);
        assert_eq!(resp.count_replies(b"NG\r\n"), 1);
    }

    #[test]
    fn a_node_restarts_empty_and_what_it_was_can_be_looked_at() {
        let node = DrivenNode::new();
        let mut world = {
            let node = node.clone();
            conversation(&[(100, "SET a 1\r\n")])
                .host("r2", move |ctx| run(ctx, Config::default(), node.clone()))
                .build()
        };
        world.control().at(True::from_millis(50), Condition::Down { host: "r2".into() }.begin("it"));
        world.run(True::from_millis(60)).expect("it runs");
        let before = node.look(|server| server.node().run_id.clone()).expect("a crash leaves it to look at");
        world.control().at(True::from_millis(70), Verb::Restart { host: "r2".into() });
        world.run(True::from_millis(80)).expect("it runs");
        assert_ne!(node.look(|server| server.node().run_id.clone()), Some(before));
    }

    #[test]
    fn what_no_buffer_holds_crosses_a_link_and_waits_for_a_paused_node() {
        let node = DrivenNode::new();
        let client = |ctx: HostCtx| async move {
            let big = "x".repeat(1 << 20);
            let stream = ctx.dial("r", 6379).await.expect("the node listens");
            let (mut reading, mut writing) = tokio::io::split(stream);
            let header = format!("*3\r\n$3\r\nSET\r\n$1\r\nb\r\n${}\r\n", big.len());
            ctx.spawn(async move {
                for part in [header.as_str(), &big, "\r\n", "GET b\r\n"] {
                    writing.write_all(part.as_bytes()).await.expect("open");
                }
                std::future::pending::<()>().await;
            });
            let mut answer = vec![0; "+OK\r\n$1048576\r\n".len() + (1 << 20) + 2];
            reading.read_exact(&mut answer).await.expect("answered");
            assert!(answer.starts_with(b"+OK\r\n$1048576\r\nxxx") && answer.ends_with(b"xxx\r\n"));
            ctx.observe("reply", "all");
        };
        let latency = Latency::Fixed(Duration::from_millis(1));
        let mut world = World::builder(1)
            .host("r", move |ctx| run(ctx, Config::default(), node.clone()))
            .host("c", client)
            .latency(latency)
            .keep(TraceRetention::Events)
            .build();
        world.control().at(True::from_millis(10), Condition::Paused { host: "r".into() }.begin("it"));
        world.control().at(True::from_millis(500), Condition::Paused { host: "r".into() }.end("it"));
        world.run(True::from_secs(1)).expect("it runs");
        // The request passes during the pause. The answer is sixteen windows of 65,535 bytes and a
        // rest, one window per round trip of 2 ms. The rest leaves after sixteen round trips and
        // takes 1 ms.
        assert_eq!(replies(&world), "all@533");
    }

    #[test]
    fn a_replica_dials_its_master_and_lags_by_its_link() {
        let (r1, r2) = (DrivenNode::new(), DrivenNode::new());
        let mut world = World::builder(1)
            .host("r1", move |ctx| run(ctx, Config::default(), r1.clone()))
            .host("r2", move |ctx| run(ctx, Config::default(), r2.clone()))
            .host("c", |ctx| async move {
                let mut master = ctx.dial("r1", 6379).await.expect("the node listens");
                let mut replica = ctx.dial("r2", 6379).await.expect("the node listens");
                let mut buffer = [0; 64];
                let rows: [(i64, bool, &[u8]); 5] = [
                    (100, false, b"REPLICAOF r1 6379\r\n"),
                    // By now the master has waited 5 s for more replicas, and sent its snapshot.
                    (12_000, true, b"SET a 1\r\n"),
                    (12_100, false, b"GET a\r\n"),
                    (13_000, true, b"SET a 2\r\n"),
                    // The new value needs 10 ms to the master and 300 ms from there.
                    (13_200, false, b"GET a\r\n"),
                ];
                for (at, to_master, command) in rows {
                    ctx.sleep_until(Monotonic::from_millis(at)).await;
                    let stream = if to_master { &mut master } else { &mut replica };
                    stream.write_all(command).await.expect("open");
                    let n = stream.read(&mut buffer).await.expect("answered");
                    ctx.observe("reply", buffer[..n].escape_ascii().to_string());
                }
            })
            .latency(Latency::Fixed(Duration::from_millis(10)))
            .keep(TraceRetention::Events)
            .build();
        let latency = Latency::Fixed(Duration::from_millis(300));
        let slow = Verb::Latency { from: "r1".into(), to: "r2".into(), latency };
        world.control().at(True::from_millis(12_500), slow);
        world.run(True::from_secs(15)).expect("it runs");
        let expected = r"+OK\r\n@120 +OK\r\n@12020 $1\r\n1\r\n@12120 +OK\r\n@13020 $1\r\n1\r\n@13220";
        assert_eq!(replies(&world), expected);
    }
}
