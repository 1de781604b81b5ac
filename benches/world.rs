//! How the cost of a world grows: not with idle time, and in line with events and with nodes.
//!
//! `cargo bench --bench world`

mod processor;

use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use lockstorm_sim::{
    config::Config,
    drive::DrivenNode,
    time::True,
    world::{self, Builder, HostCtx, Latency, TraceRetention, World},
};
use processor::Processor;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// So many nodes, without clients.
fn nodes(count: usize) -> Builder {
    let latency = Latency::Fixed(Duration::from_millis(1));
    (0..count).fold(World::builder(1).latency(latency).keep(TraceRetention::Nothing), |builder, number| {
        let node = DrivenNode::new();
        builder.host(format!("n{number}"), move |ctx| world::node::run(ctx, Config::default(), node.clone()))
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

/// The same nodes, and a client that asks each of them something every so often.
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
