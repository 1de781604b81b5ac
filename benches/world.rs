//! Measures the cost of a world: independent of idle time, and linear in events and nodes.
//!
//! `cargo bench --bench world`

mod processor;

use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use lockstorm_sim::{
    config::Config,
    drive::{DrivenNode, world},
    durability::Disk,
    server::Server,
};
use lockstorm_world::{Builder, HostCtx, Latency, TraceRetention, World, time::True};
use processor::Processor;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// A world of `count` nodes, without clients.
fn nodes(count: usize) -> Builder {
    let latency = Latency::Fixed(Duration::from_millis(1));
    (0..count).fold(World::builder(1).latency(latency).keep(TraceRetention::Nothing), |builder, number| {
        let node = DrivenNode::new();
        builder.host(format!("n{number}"), move |ctx| world::run(ctx, Config::default(), node.clone()))
    })
}

/// Three masters with a replica each, which know each other, without clients.
fn cluster() -> Builder {
    const SLOTS: [&str; 3] = ["0-5460", "5461-10922", "10923-16383"];
    let id = |at: usize| format!("{at:x}").repeat(40);
    let latency = Latency::Fixed(Duration::from_millis(1));
    (0..6).fold(World::builder(1).latency(latency).keep(TraceRetention::Nothing), |builder, mine| {
        let lines = (0..6).map(|at| {
            let (role, master) = if at < 3 { ("master", "-".into()) } else { ("slave", id(at - 3)) };
            let (me, slots) = (if at == mine { "myself," } else { "" }, SLOTS.get(at).unwrap_or(&""));
            format!("{} n{at}:6379@16379 {me}{role} {master} 0 0 {} connected {slots}\n", id(at), at % 3 + 1)
        });
        let file = lines.collect::<String>() + "vars currentEpoch 3 lastVoteEpoch 0\n";
        let (node, name) = (DrivenNode::new(), format!("n{mine}"));
        builder.host(name.clone(), move |ctx| {
            let mut config = Config::default().with(|config| config.persistence.save = Vec::new());
            config.cluster.enabled = true;
            config.cluster.announce_ip = name.clone();
            let disk = Disk { nodes: Some(file.clone()), ..Disk::default() };
            world::run_with(ctx, 6379, node.clone(), move |env, _| Server::restart(config, disk, env))
        })
    })
}

/// A master with two replicas, and three Sentinels that watch it, without clients.
fn watched() -> Builder {
    let latency = Latency::Fixed(Duration::from_millis(1));
    let builder = World::builder(1).latency(latency).keep(TraceRetention::Nothing);
    let builder = ["m", "r1", "r2"].into_iter().fold(builder, |builder, name| {
        let node = DrivenNode::new();
        builder.host(name, move |ctx| {
            let mut config = Config::default().with(|config| config.persistence.save = Vec::new());
            config.replication.announce.ip = name.into();
            config.replication.replicaof = (name != "m").then(|| ("m".into(), 6379));
            world::run(ctx, config, node.clone())
        })
    });
    ["s1", "s2", "s3"].into_iter().fold(builder, |builder, name| {
        let node = DrivenNode::new();
        builder.host(name, move |ctx| {
            let file = format!(
                "sentinel resolve-hostnames yes\nsentinel announce-ip {name}\nsentinel announce-port 26379\nsentinel monitor main m 6379 2\n"
            );
            let config = Config::default().with(|config| config.network.port = 26379);
            world::run_with(ctx, 26379, node.clone(), move |env, _| {
                Server::sentinel(config.clone(), &file, env).expect("a file that can be followed")
            })
        })
    })
}

/// Sends a request to a node, waits, and repeats that forever.
async fn ask(ctx: HostCtx, node: String, every: Duration) {
    let mut stream = ctx.dial(&node, 6379).await.expect("the node listens");
    loop {
        stream.write_all(b"PING\r\n").await.expect("the node is up");
        stream.read_exact(&mut [0; "+PONG\r\n".len()]).await.expect("the node answers");
        ctx.sleep_until(ctx.monotonic() + every).await;
    }
}

/// A world of `count` nodes, and a client that sends each a request `every` so often.
fn asked(count: usize, every: Duration) -> Builder {
    nodes(count).host("c", move |ctx| async move {
        for number in 0..count {
            ctx.spawn(ask(ctx.clone(), format!("n{number}"), every));
        }
        std::future::pending::<()>().await;
    })
}

fn run(builder: Builder, seconds: i64) {
    builder.build().run(True::from_secs(seconds)).expect("it runs");
}

fn world(c: &mut Criterion<Processor>) {
    let mut idle = c.benchmark_group("idle seconds");
    for seconds in [60, 600, 6_000, 60_000] {
        idle.bench_function(BenchmarkId::from_parameter(seconds), |b| b.iter(|| run(nodes(5), seconds)));
    }
    idle.finish();
    let mut idle = c.benchmark_group("idle seconds of a cluster");
    for seconds in [60, 600, 3_600] {
        idle.bench_function(BenchmarkId::from_parameter(seconds), |b| b.iter(|| run(cluster(), seconds)));
    }
    idle.finish();
    let mut idle = c.benchmark_group("idle seconds of three Sentinels");
    for seconds in [60, 600, 3_600] {
        idle.bench_function(BenchmarkId::from_parameter(seconds), |b| b.iter(|| run(watched(), seconds)));
    }
    idle.finish();
    let mut events = c.benchmark_group("requests in a minute");
    for requests in [60, 600, 6_000] {
        events.throughput(Throughput::Elements(requests));
        let every = Duration::from_secs(60) / u32::try_from(requests).expect("a small number");
        events.bench_function(BenchmarkId::from_parameter(requests), |b| b.iter(|| run(asked(1, every), 60)));
    }
    events.finish();
    let mut hosts = c.benchmark_group("nodes asked every second");
    for count in [1, 4, 16, 64] {
        hosts.throughput(Throughput::Elements(count));
        let nodes = usize::try_from(count).expect("a small number");
        hosts.bench_function(BenchmarkId::from_parameter(count), |b| {
            b.iter(|| run(asked(nodes, Duration::from_secs(1)), 60));
        });
    }
    hosts.finish();
}

criterion_group! { name = benches; config = processor::criterion().sample_size(10); targets = world }
criterion_main!(benches);
