//! A rig of simulated hosts, in virtual time.

use std::{cell::RefCell, io, rc::Rc, time::Duration};

use lockstorm_sim::{
    config::{Config, options},
    drive::{DrivenNode, world},
    env::{Env, Observation},
    generation::Generation,
    server::Server,
};
use lockstorm_world::{
    Condition, HostCtx, Latency, TcpStream, TraceRetention, Verb, World,
    time::{Monotonic, True},
};

use crate::{
    client::{Client, Place},
    row::{Act, Rig, Row},
    seen::{Log, Seen, leader},
};

/// The start of Sentinels in milliseconds of true time, and the time when they know each other.
const STARTED: i64 = 5_000;
const SETTLED: i64 = 15_000;

/// A host of the world with times counted from the row's zero.
#[derive(Clone)]
struct Virtual {
    ctx: HostCtx,
    zero: i64,
}

impl Place for Virtual {
    type Stream = TcpStream;

    async fn dial(&self, host: &str) -> io::Result<TcpStream> {
        self.ctx.dial(host, port(host)).await
    }

    fn now(&self) -> i64 {
        self.ctx.moment().0.as_millis() - self.zero
    }

    async fn until(&self, at: i64) {
        let wait = (at - self.now()).max(0).unsigned_abs();
        self.ctx.wire_delay(Duration::from_millis(wait)).await;
    }

    fn peer(&self, stream: &TcpStream) -> io::Result<String> {
        Ok(stream.peer_addr()?.ip().to_string())
    }

    fn host_at(&self, address: &str) -> Option<String> {
        self.ctx.host_at(address.parse().ok()?).map(|name| name.to_string())
    }
}

fn port(host: &str) -> u16 {
    if host.starts_with('s') { 26379 } else { 6379 }
}

fn config(rig: &Rig, name: &str) -> Config {
    let mut config = Config::of(Generation::Redis70);
    let mut set = |name: &str, value: &str| {
        options::set_at_start(&mut config, name, value).expect("an option of Redis");
    };
    set("repl-diskless-sync-delay", "0");
    rig.options_of(name).for_each(|(name, value)| set(name, value));
    if rig.masters > 0 {
        set("cluster-enabled", "yes");
        set("cluster-node-timeout", &rig.node_timeout.to_string());
    } else {
        config.replication.announce.ip = name.into();
        // Real nodes here have a file too, into which Sentinels make them write their new role.
        config.server.config_file = "own.conf".into();
        config.replication.replicaof = (name != "m").then(|| ("m".into(), 6379));
    }
    config
}

/// Plays a row. The number of the run determines the seed, and the phase of all periods at zero.
pub(crate) fn play(row: &Row, run: u64) -> Vec<Seen> {
    let rig = row.rig;
    let zero = match rig.starts_at_zero {
        true => STARTED,
        false => SETTLED + phase(run),
    };
    let log: Log = Rc::new(RefCell::new(Vec::new()));
    let mut builder = World::builder(run + 1)
        .latency(Latency::Fixed(Duration::from_micros(100)))
        .keep(TraceRetention::Nothing);
    for name in rig.nodes() {
        let driven = DrivenNode::new();
        let host = name.clone();
        builder = builder.host(name, move |ctx| {
            let config = config(&rig, &host);
            world::run_with(ctx, config.network.port, driven.clone(), move |env, before| match before {
                Some(before) => Server::restart(config, before.crash(), env),
                None => Server::new(config, env),
            })
        });
    }
    for name in rig.sentinels() {
        let (driven, log, host) = (DrivenNode::new(), log.clone(), name.clone());
        builder = builder.host(name, move |ctx| {
            let file = format!("sentinel resolve-hostnames yes\n{}", rig.file(&host, "m"));
            let (watched, by, log, clock) = (driven.clone(), host.clone(), log.clone(), ctx.clone());
            watched.watch(move |observation| {
                let Observation::Published { channel, message, .. } = observation else { return };
                let (event, message) = (String::from_utf8_lossy(channel), String::from_utf8_lossy(message));
                if event.starts_with(['+', '-']) {
                    let at = clock.moment().0.as_millis() - zero;
                    let (event, message) = (event.into_owned(), message.into_owned());
                    log.borrow_mut().push(Seen { at, by: by.clone(), event, message });
                }
            });
            async move {
                ctx.sleep_until(Monotonic::from_millis(STARTED)).await;
                let config = Config::of(Generation::Redis70).with(|config| config.network.port = 26379);
                world::run_with(ctx, 26379, watched, move |env: &mut Env, before| {
                    let saved =
                        before.and_then(|server| Some(server.node().sentinel.as_ref()?.saved().to_owned()));
                    Server::sentinel(config, &saved.unwrap_or(file), env)
                        .expect("a file that can be followed")
                })
                .await;
            }
        });
    }
    let (client_log, played) = (log.clone(), *row);
    let mut world = builder
        .host("client", move |ctx| {
            let client = Client::new(Virtual { ctx, zero }, client_log.clone());
            async move {
                client.place().until(STARTED - zero).await;
                client.play(&played).await;
            }
        })
        .build();
    for (at, act) in row.acts {
        world.run(True::from_millis(zero + at)).expect("a run has an end");
        for verb in verbs(act, &log.borrow()) {
            world.control().now(verb);
        }
    }
    // The lost writes are found out after the end.
    world.run(True::from_millis(zero + row.lasts + 1_000)).expect("a run has an end");
    let mut seen = log.take();
    seen.sort_by_key(|seen| seen.at);
    seen
}

/// The position of zero in the periods of the Sentinels, in milliseconds: INFO comes every ten
/// seconds, PING every second.
pub(crate) fn phase(run: u64) -> i64 {
    (run * 3_863 % 10_000) as i64
}

/// The hosts that an act names.
pub(crate) fn hosts(names: &str, seen: &[Seen]) -> Vec<String> {
    let host = |name: &str| match name {
        "leader" => leader(seen).unwrap_or("s1").to_owned(),
        "master" => master(seen).unwrap_or("m").to_owned(),
        name => name.to_owned(),
    };
    names.split(' ').map(host).collect()
}

/// The master that the Sentinels announced last.
fn master(seen: &[Seen]) -> Option<&str> {
    seen.iter().rev().find(|seen| seen.event == "+switch-master")?.message.split(' ').nth(3)
}

fn verbs(act: &Act, seen: &[Seen]) -> Vec<Verb> {
    let each =
        |names: &str, verb: &dyn Fn(String) -> Verb| hosts(names, seen).into_iter().map(verb).collect();
    let paused = |host| Condition::Paused { host };
    let pairs = |from: &str, to: &str, verb: &dyn Fn(Condition) -> Verb| {
        let (from, to) = (hosts(from, seen), hosts(to, seen));
        let pairs = from.iter().flat_map(|one| to.iter().map(move |other| (one, other)));
        let both = pairs.flat_map(|(one, other)| [(one, other), (other, one)]);
        both.map(|(from, to)| verb(Condition::Cut { from: from.clone(), to: to.clone() })).collect()
    };
    let each_way = |from: &str, to: &str, verb: &dyn Fn(String, String) -> Verb| {
        let (from, to) = (hosts(from, seen), hosts(to, seen));
        let pairs = from.iter().flat_map(|from| to.iter().map(move |to| (from.clone(), to.clone())));
        pairs.map(|(from, to)| verb(from, to)).collect()
    };
    let one_way = |from: &str, to: &str, verb: &dyn Fn(Condition) -> Verb| {
        each_way(from, to, &|from, to| verb(Condition::Cut { from, to }))
    };
    match *act {
        Act::Kill(names) => each(names, &|host| Verb::Kill { host }),
        Act::Start(names) => each(names, &|host| Verb::Restart { host }),
        Act::Freeze(names) => each(names, &|host| paused(host).begin("it")),
        Act::Thaw(names) => each(names, &|host| paused(host).end("it")),
        Act::Cut(from, to) => pairs(from, to, &|cut| cut.begin("it")),
        Act::Heal(from, to) => pairs(from, to, &|cut| cut.end("it")),
        Act::CutOneWay(from, to) => one_way(from, to, &|cut| cut.begin("it")),
        Act::HealOneWay(from, to) => one_way(from, to, &|cut| cut.end("it")),
        Act::Slow(from, to, by) => each_way(from, to, &|from, to| {
            Condition::Slow { from, to, by: Duration::from_millis(by) }.begin("it")
        }),
        // The client sends commands itself.
        Act::Run(..) => Vec::new(),
        Act::Step(names, by) => each(names, &|host| Verb::ClockStep { host, by_nanos: by * 1_000_000 }),
    }
}
