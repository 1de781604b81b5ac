//! Worlds in real time.

#[cfg(target_os = "linux")]
use std::net::{IpAddr, SocketAddr};

#[cfg(target_os = "linux")]
use lockstorm_world::real_address;

use super::*;

#[test]
fn in_real_time_code_runs_and_the_clocks_of_processes_cannot_be_bent() {
    let mut world = World::builder(1)
        .engine(Engine::Real)
        .host("s", echo)
        .host("c", |ctx| async move {
            ctx.sleep_until(Monotonic::from_millis(20)).await;
            let mut stream = ctx.dial("s", 7).await.expect("it listens");
            stream.write_all(b"x").await.expect("open");
            stream.read_exact(&mut [0]).await.expect("answered");
            ctx.observe("it", "answered");
            let step = || Verb::ClockStep { host: "c".into(), by_nanos: 1 };
            ctx.control().now(step());
            ctx.stand_for(8, None);
            ctx.control().after(ms(1), step());
        })
        .keep(TraceRetention::All)
        .build();
    let error = world.run(MS(5_000)).expect_err("no clock of a process is set");
    assert!(matches!(error, WorldError::Impossible { .. }), "{error}");
    assert!(world.now() >= MS(20) && world.now() < MS(5_000), "{}", world.now());
    assert!(observed(&world, "it").starts_with("answered@"));
}

/// A reset concerns two hosts: connections of a third host to either of them stay open.
#[test]
fn a_reset_in_real_time_is_of_no_connection_but_those_between_its_two_hosts() {
    async fn ask(stream: &mut TcpStream) -> io::Result<()> {
        stream.write_all(b"x").await?;
        stream.read_exact(&mut [0]).await.map(drop)
    }
    let barrier = std::rc::Rc::new(tokio::sync::Barrier::new(3));
    let client = |kind: &'static str| {
        let barrier = barrier.clone();
        move |ctx: HostCtx| {
            let barrier = barrier.clone();
            async move {
                let mut stream = ctx.dial("s", 7).await.expect("it listens");
                ask(&mut stream).await.expect("open");
                barrier.wait().await;
                barrier.wait().await;
                let answered = ask(&mut stream).await.is_ok();
                ctx.observe(kind, if answered { "answered" } else { "reset" });
                barrier.wait().await;
            }
        }
    };
    let (a, b, operators) = (client("a"), client("b"), barrier.clone());
    let operator = move |ctx: HostCtx| {
        let barrier = operators.clone();
        async move {
            barrier.wait().await;
            ctx.control().now(Verb::Reset { one: "a".into(), other: "s".into() });
            // The order is executed before a host sleeps.
            ctx.wire_delay(ms(20)).await;
            barrier.wait().await;
            barrier.wait().await;
            ctx.control().now(Verb::Finish);
        }
    };
    let builder = World::builder(1).engine(Engine::Real).host("s", echo).host("a", a).host("b", b);
    let mut world = builder.host("operator", operator).keep(TraceRetention::All).build();
    world.run(MS(30_000)).expect("it runs");
    for (client, outcome) in [("a", "reset@"), ("b", "answered@")] {
        let seen = observed(&world, client);
        assert!(seen.starts_with(outcome), "{client}: {seen}");
    }
}

/// Host `c` cannot reach `s` before the cut is over, and `d` can. A connection from an address of
/// no host is closed, because its link is unknown.
#[cfg(target_os = "linux")]
#[test]
fn a_door_leads_over_the_link_from_the_host_whose_address_dials_it() {
    async fn ask(from: IpAddr, door: SocketAddr) -> io::Result<()> {
        let socket = tokio::net::TcpSocket::new_v4()?;
        socket.bind((from, 0).into())?;
        let mut stream = socket.connect(door).await?;
        stream.write_all(b"x").await?;
        stream.read_exact(&mut [0]).await.map(drop)
    }
    let listener = std::net::TcpListener::bind((real_address(0), 0)).expect("a loopback address");
    let door = listener.local_addr().expect("a listener");
    let listener = std::cell::Cell::new(Some(listener));
    let server = move |ctx: HostCtx| {
        let listener = listener.take();
        async move {
            listener.map_or(Ok(()), |listener| ctx.open_door(7, listener)).expect("it listens");
            echo(ctx).await;
        }
    };
    let process = move |number: usize, wanted: &'static str| {
        move |ctx: HostCtx| async move {
            let asked = ask(real_address(number), door).await;
            ctx.observe(wanted, if asked.is_ok() { "answered" } else { "closed" });
            assert_eq!(ctx.door("s", 7), Some(door));
        }
    };
    let by_code = move |ctx: HostCtx| async move {
        let stranger = ask("127.0.0.1".parse().expect("an address"), door).await;
        ctx.observe("stranger", if stranger.is_ok() { "answered" } else { "closed" });
        let mut stream = ctx.dial(&door.ip().to_string(), door.port()).await.expect("it listens");
        stream.write_all(b"x").await.expect("open");
        stream.read_exact(&mut [0]).await.expect("answered");
        ctx.observe("code", "answered");
    };
    let builder = World::builder(1).engine(Engine::Real).latency(Latency::Fixed(ms(5))).host("s", server);
    let builder = builder.host("c", process(1, "c")).host("d", process(2, "d")).host("e", by_code);
    let mut world = builder.keep(TraceRetention::All).build();
    let cut = Condition::Cut { from: "c".into(), to: "s".into() };
    world.control().at(True::ZERO, cut.clone().begin("a cable"));
    world.control().at(MS(1_000), cut.end("a cable"));
    world.run(MS(2_000)).expect("it runs");
    let time_of = |wanted: &str, outcome: &str| -> i64 {
        let seen = observed(&world, wanted);
        let time = seen.strip_prefix(outcome).and_then(|rest| rest.strip_prefix('@')?.parse().ok());
        time.unwrap_or_else(|| panic!("{wanted}: {seen}"))
    };
    assert!(time_of("c", "answered") >= 1_000);
    assert!((20..1_000).contains(&time_of("d", "answered")));
    assert!((20..1_000).contains(&time_of("code", "answered")));
    time_of("stranger", "closed");
}

#[test]
fn no_condition_bends_the_clock_of_a_process() {
    let host = || "c".to_owned();
    for condition in [
        Condition::ClockRate { host: host(), clock_id: None, rate: Rate::factor(2.0) },
        Condition::ClockFrozen { host: host(), clock_id: None },
    ] {
        let verb = Verb::Begin { cause: "it".into(), condition };
        let words = verb.to_string();
        let mut world = World::builder(1)
            .engine(Engine::Real)
            .host("c", move |ctx| {
                let verb = verb.clone();
                async move {
                    ctx.stand_for(8, None);
                    ctx.control().now(verb);
                    ctx.sleep_until(Monotonic::from_millis(5_000)).await;
                }
            })
            .build();
        let error = world.run(MS(5_000)).expect_err("no clock of a process is bent");
        assert!(matches!(&error, WorldError::Impossible { verb } if *verb == words), "{error}");
    }
}
