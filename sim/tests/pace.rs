//! Measures the pace of the world: simulated seconds per second, for five nodes and three clients
//! that send each node one request per period. Run it with `cargo test --release -p lockstorm-sim
//! --test pace -- --ignored --nocapture`.

use std::time::{Duration, Instant};

use lockstorm_sim::{
    config::Config,
    drive::{DrivenNode, world},
};
use lockstorm_world::{
    HostCtx, TraceRetention, World,
    time::{Monotonic, True},
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Answers `+OK` to every read: a node without any cost.
async fn ok(ctx: HostCtx) {
    let listener = ctx.listen(6379).await.expect("free");
    loop {
        let (mut stream, _) = listener.accept().await.expect("a listener accepts");
        ctx.spawn(async move {
            let mut buffer = [0; 4096];
            while let Ok(1..) = stream.read(&mut buffer).await {
                if stream.write_all(b"+OK\r\n").await.is_err() {
                    return;
                }
            }
        });
    }
}

async fn ask(ctx: HostCtx, period: Duration) {
    let mut streams = vec![];
    for node in 0..5 {
        streams.push(ctx.dial(&format!("r{node}"), 6379).await.expect("it listens"));
    }
    let mut at = Monotonic::from_secs(1);
    loop {
        for stream in &mut streams {
            stream.write_all(b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n").await.expect("open");
            let mut reply = [0; 5];
            stream.read_exact(&mut reply).await.expect("answered");
            assert_eq!(&reply, b"+OK\r\n");
        }
        at += period;
        ctx.sleep_until(at).await;
    }
}

#[test]
#[ignore = "a measurement, not a check"]
#[expect(clippy::disallowed_methods, reason = "it measures real time")]
fn pace() {
    for redis in [false, true] {
        for period_ms in [10_000, 1_000, 100, 10] {
            let mut builder = World::builder(1).keep(TraceRetention::Nothing);
            for node in 0..5 {
                let server = DrivenNode::new();
                builder = builder.host(format!("r{node}"), move |ctx| {
                    let server = server.clone();
                    async move {
                        match redis {
                            true => world::run(ctx, Config::default(), server).await,
                            false => ok(ctx).await,
                        }
                    }
                });
            }
            for client in 0..3 {
                let period = Duration::from_millis(period_ms);
                builder = builder.host(format!("c{client}"), move |ctx| ask(ctx, period));
            }
            let mut world = builder.build();
            let start = Instant::now();
            // The simulated time keeps rows with many events short, and lets rows with few events
            // have enough of them.
            let simulated = (period_ms * 300).clamp(10_000, 300_000) as i64;
            world.run(True::from_millis(simulated)).expect("it runs");
            let took = start.elapsed().as_secs_f64();
            let (records, packets) = world.counts();
            println!(
                "{} every {period_ms:>6} ms: {:>8.0} x real time, {:.2} us per packet, {packets} packets, {records} records",
                if redis { "redis" } else { "ok   " },
                simulated as f64 / 1_000.0 / took,
                took * 1e6 / packets as f64,
            );
        }
    }
}
