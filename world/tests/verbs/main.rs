//! The effects of each verb on hosts, connections and clocks, as code on a host sees them.

mod half_close;
mod real;
mod states;
#[cfg(feature = "turmoil")]
mod turmoil;

use std::{io, time::Duration};

use lockstorm_world::{
    Builder, ClockId, Condition, Control, End, Engine, Event, HostCtx, Latency, Rate, Record, TcpStream,
    TraceRetention, Verb, World, WorldError, first_divergence,
    time::{Monotonic, True},
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const MS: fn(i64) -> True = True::from_millis;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Answers every byte with the same byte.
async fn echo(ctx: HostCtx) {
    let listener = ctx.listen(7).await.expect("the port is free");
    loop {
        let (mut stream, _) = listener.accept().await.expect("a listener accepts");
        ctx.spawn(async move {
            let mut byte = [0];
            while stream.read_exact(&mut byte).await.is_ok() && stream.write_all(&byte).await.is_ok() {}
        });
    }
}

/// Sends byte n when its monotonic clock shows n times 100 ms, and waits for each answer before the
/// next.
async fn ping(ctx: HostCtx) {
    let pings = async {
        let mut stream = ctx.dial("s", 7).await?;
        ctx.observe("ping", "connected");
        for n in 1..=9u8 {
            ctx.sleep_until(Monotonic::from_millis(i64::from(n) * 100)).await;
            stream.write_all(&[n]).await?;
            let mut byte = [0];
            stream.read_exact(&mut byte).await?;
            assert_eq!(byte, [n], "an answer belongs to its question");
            ctx.observe("ping", n.to_string());
        }
        Ok::<_, io::Error>(())
    };
    if let Err(error) = pings.await {
        ctx.observe("ping", format!("{:?}", error.kind()));
    }
}

/// A client `c` that pings a server `s` over links of 10 ms.
fn pings(seed: u64) -> Builder {
    World::builder(seed)
        .host("s", echo)
        .host("c", ping)
        .latency(Latency::Fixed(ms(10)))
        .keep(TraceRetention::All)
}

/// Returns the observations of kind `wanted`, each with its true time in milliseconds.
fn observed(world: &World, wanted: &str) -> String {
    let lines: Vec<_> = world
        .records()
        .into_iter()
        .filter_map(|record| match record.event {
            Event::Observed { kind, detail } if kind == wanted => {
                Some(format!("{detail}@{}", record.at.as_millis()))
            }
            _ => None,
        })
        .collect();
    lines.join(" ")
}

/// Returns the verb of an order in words. The word for a condition may name the cause behind a
/// colon, as in `pause:a s`, both to begin and to end it.
fn verb(text: &str) -> Verb {
    let words: Vec<&str> = text.split(' ').collect();
    let name = |at: usize| words[at].to_owned();
    let (what, cause) = words[0].split_once(':').unwrap_or((words[0], "it"));
    let down = || Condition::Down { host: name(1) };
    let paused = || Condition::Paused { host: name(1) };
    let blocked = || Condition::Blocked { host: name(1) };
    let suspended = || Condition::Suspended { host: name(1) };
    let cut = || Condition::Cut { from: name(1), to: name(2) };
    let slow = || Condition::Slow { from: name(1), to: name(2), by: ms(words[3].parse().expect("ms")) };
    let lossy = || Condition::Lossy { from: name(1), to: name(2), per_million: 1_000_000 };
    let frozen = || Condition::ClockFrozen { host: name(1), clock_id: Some(ClockId::Monotonic) };
    let faster = || Condition::ClockRate { host: name(1), clock_id: None, rate: Rate::factor(1.5) };
    match what {
        "pause" => paused().begin(cause),
        "resume" => paused().end(cause),
        "block" => blocked().begin(cause),
        "unblock" => blocked().end(cause),
        "suspend" => suspended().begin(cause),
        "wake" => suspended().end(cause),
        "crash" => down().begin(cause),
        "up" => down().end(cause),
        "kill" => Verb::Kill { host: name(1) },
        "stop" => Verb::Stop { host: name(1) },
        "restart" => Verb::Restart { host: name(1) },
        "cut" => cut().begin(cause),
        "heal" => cut().end(cause),
        "reset" => Verb::Reset { one: name(1), other: name(2) },
        "slow" => slow().begin(cause),
        "unslow" => slow().end(cause),
        "latency" => Verb::Latency { from: name(1), to: name(2), latency: Latency::Fixed(ms(50)) },
        "lose" => lossy().begin(cause),
        "unlose" => lossy().end(cause),
        "step" => Verb::ClockStep { host: name(1), by_nanos: 3_600_000_000_000 },
        "double" => Verb::ClockRate { host: name(1), clock_id: None, rate: Rate::factor(2.0) },
        "faster" => faster().begin(cause),
        "unfaster" => faster().end(cause),
        "freeze" => frozen().begin(cause),
        "unfreeze" => frozen().end(cause),
        "calm" => Verb::Calm,
        "finish" => Verb::Finish,
        other => panic!("no verb {other}"),
    }
}

/// Client code for a multi-threaded runtime requires these bounds; the test is that this compiles.
#[test]
fn a_host_can_be_handed_to_code_that_wants_send() {
    fn wants_send<T: Send + 'static>(_: T) {}
    fn wants_handle<T: Clone + Send + Sync + 'static>(_: &T) {}
    let host = |ctx: HostCtx| async move {
        wants_handle(&ctx);
        let other = ctx.clone();
        wants_send(async move { other.dial("h", 1).await.map(|stream| drop(tokio::io::split(stream))) });
        wants_send(ctx.sleep_until(Monotonic::ZERO));
        ctx.observe("it", "ran");
    };
    let mut world = World::builder(1).host("h", host).keep(TraceRetention::Events).build();
    world.run(MS(1)).expect("it runs");
    assert_eq!(observed(&world, "it"), "ran@0");
}

#[test]
fn every_verb_shows_on_the_wire() {
    // Undisturbed, the handshake takes 20 ms and so does an answer. The run ends at 600 ms.
    let rows: &[(&[(i64, &str)], &str)] = &[
        (&[], "connected@20 1@120 2@220 3@320 4@420 5@520"),
        // Ping 2 waits in the server's kernel from 210 to 350; ping 3 is late by then.
        (&[(150, "pause s"), (350, "resume s")], "connected@20 1@120 2@360 3@380 4@420 5@520"),
        (&[(150, "pause c"), (350, "resume c")], "connected@20 1@120 2@370 3@390 4@420 5@520"),
        // Every cause pauses for as long as it lasts, in whatever order they begin.
        (
            &[(150, "pause:a s"), (160, "pause:b s"), (170, "resume:b s"), (350, "resume:a s")],
            "connected@20 1@120 2@360 3@380 4@420 5@520",
        ),
        (
            &[(150, "pause:a s"), (160, "pause:b s"), (170, "resume:a s"), (350, "resume:b s")],
            "connected@20 1@120 2@360 3@380 4@420 5@520",
        ),
        // A pause outlasts a restart of the machine. A process that blocks itself stops blocking
        // when it ends.
        (
            &[(50, "pause s"), (60, "crash s"), (70, "up s"), (350, "resume s")],
            "connected@20 ConnectionReset@120",
        ),
        (
            &[(150, "pause c"), (160, "crash c"), (170, "up c"), (350, "resume c")],
            "connected@20 1@120 connected@370 1@390 2@410 3@430 4@450 5@520",
        ),
        (
            &[(150, "block c"), (160, "crash c"), (170, "up c"), (350, "unblock c")],
            "connected@20 1@120 connected@190 1@210 2@230 3@320 4@420 5@520",
        ),
        (&[(150, "block c"), (350, "unblock c")], "connected@20 1@120 2@370 3@390 4@420 5@520"),
        // 200 ms are missing on the client's monotonic clock.
        (&[(150, "suspend c"), (350, "wake c")], "connected@20 1@120 2@420 3@520"),
        (
            &[(150, "suspend:a c"), (200, "suspend:b c"), (250, "wake:a c"), (350, "wake:b c")],
            "connected@20 1@120 2@420 3@520",
        ),
        // A pause that outlasts the suspension stops the code but not the clock: 100 ms are
        // missing, and ping 2 is late.
        (
            &[(150, "suspend c"), (200, "pause c"), (250, "wake c"), (350, "resume c")],
            "connected@20 1@120 2@370 3@420 4@520",
        ),
        // A suspended kernel accepts nothing: ping 2 is sent again at 350.
        (&[(150, "suspend s"), (350, "wake s")], "connected@20 1@120 2@370 3@390 4@420 5@520"),
        (&[(150, "cut c s"), (350, "heal c s")], "connected@20 1@120 2@370 3@390 4@420 5@520"),
        (&[(150, "cut s c"), (350, "heal s c")], "connected@20 1@120 2@360 3@380 4@420 5@520"),
        (
            &[(150, "cut:a c s"), (160, "cut:b c s"), (250, "heal:a c s"), (350, "heal:b c s")],
            "connected@20 1@120 2@370 3@390 4@420 5@520",
        ),
        // Packets already in flight at the cut wait as well.
        (&[(205, "cut c s"), (350, "heal c s")], "connected@20 1@120 2@370 3@390 4@420 5@520"),
        (&[(150, "cut c s"), (150, "pause s"), (350, "calm")], "connected@20 1@120 2@370 3@390 4@420 5@520"),
        // A new connection over a cut link waits for it to heal.
        (&[(0, "cut c s"), (200, "heal c s")], "connected@220 1@240 2@260 3@320 4@420 5@520"),
        (&[(205, "reset c s")], "connected@20 1@120 ConnectionReset@205"),
        (&[(5, "reset s c")], "ConnectionRefused@5"),
        // No packet informs the client that the machine is gone.
        (&[(150, "crash s")], "connected@20 1@120"),
        // The new kernel does not know the connection: ping 2 is sent again at 350 and answered by
        // a reset.
        (&[(150, "crash s"), (350, "up s")], "connected@20 1@120 ConnectionReset@370"),
        (&[(150, "crash s"), (350, "restart s")], "connected@20 1@120 ConnectionReset@370"),
        // Two crashes: the host is up after the last one ends, or when it is restarted explicitly;
        // later ends of the crashes then have no effect.
        (
            &[(150, "crash:a c"), (200, "crash:b c"), (250, "up:a c"), (350, "up:b c")],
            "connected@20 1@120 connected@370 1@390 2@410 3@430 4@450 5@520",
        ),
        (
            &[(150, "crash:a c"), (200, "crash:b c"), (250, "restart c"), (300, "up:a c"), (350, "up:b c")],
            "connected@20 1@120 connected@270 1@290 2@310 3@330 4@420 5@520",
        ),
        (&[(150, "restart s")], "connected@20 1@120 ConnectionReset@220"),
        // The kernel of a dead process closes its connections; the client notices it when it reads.
        (&[(150, "kill s")], "connected@20 1@120 UnexpectedEof@200"),
        (&[(150, "stop s")], "connected@20 1@120 UnexpectedEof@200"),
        (&[(0, "kill s")], "ConnectionRefused@20"),
        // A new incarnation starts from the beginning, and its monotonic clock has continued.
        (
            &[(150, "crash c"), (350, "up c")],
            "connected@20 1@120 connected@370 1@390 2@410 3@430 4@450 5@520",
        ),
        (&[(150, "latency c s")], "connected@20 1@120 2@260 3@360 4@460 5@560"),
        (&[(150, "slow s c 40")], "connected@20 1@120 2@260 3@360 4@460 5@560"),
        // Delays of one link add up, and each ends by itself.
        (
            &[
                (150, "slow:a s c 40"),
                (160, "slow:b s c 10"),
                (250, "unslow:b s c 10"),
                (450, "unslow:a s c 40"),
            ],
            "connected@20 1@120 2@270 3@360 4@460 5@520",
        ),
        // A lost packet arrives one retransmission timeout later, 200 ms; it is not lost twice.
        (&[(150, "lose c s")], "connected@20 1@120 2@420"),
        (
            &[(150, "lose:a c s"), (160, "lose:b c s"), (170, "unlose:a c s"), (250, "unlose:b c s")],
            "connected@20 1@120 2@420 3@440 4@460 5@520",
        ),
        // The monotonic clock shows n times 100 ms when n times 50 ms have passed.
        (&[(0, "double c")], "connected@20 1@70 2@120 3@170 4@220 5@270 6@320 7@370 8@420 9@470"),
        // At 150 the clock shows 150; from then on it needs 25 ms for 50.
        (&[(150, "double c")], "connected@20 1@120 2@195 3@245 4@295 5@345 6@395 7@445 8@495 9@545"),
        (&[(150, "freeze c"), (350, "unfreeze c")], "connected@20 1@120 2@420 3@520"),
        (
            &[(150, "freeze:a c"), (160, "freeze:b c"), (170, "unfreeze:b c"), (350, "unfreeze:a c")],
            "connected@20 1@120 2@420 3@520",
        ),
        // Each cause makes the clock faster by one half, so both together make it twice as fast. At
        // 300 the clock shows 600, and it continues at its own rate.
        (
            &[(0, "faster:a c"), (0, "faster:b c"), (300, "unfaster:a c"), (300, "unfaster:b c")],
            "connected@20 1@70 2@120 3@170 4@220 5@270 6@320 7@420 8@520",
        ),
        (
            &[(0, "double c"), (150, "faster c"), (150, "unfaster c")],
            "connected@20 1@70 2@120 3@170 4@220 5@270 6@320 7@370 8@420 9@470",
        ),
        // No task sleeps by the wall clock.
        (&[(150, "step c"), (150, "step s")], "connected@20 1@120 2@220 3@320 4@420 5@520"),
        (&[(250, "finish")], "connected@20 1@120 2@220"),
    ];
    for (orders, expected) in rows {
        let mut world = pings(1).build();
        for &(at, text) in *orders {
            world.control().at(MS(at), verb(text));
        }
        world.run(MS(600)).unwrap_or_else(|error| panic!("{orders:?}: {error}"));
        assert_eq!(observed(&world, "ping"), *expected, "{orders:?}");
    }
}

#[test]
fn a_seed_is_a_run() {
    let run = |seed| {
        let latency = Latency::Exponential { min: ms(1), mean: ms(5), cap: ms(100) };
        let mut world = pings(seed).latency(latency).build();
        world.control().at(MS(150), verb("pause s"));
        world.control().at(MS(350), verb("resume s"));
        world.run(MS(2_000)).expect("it runs");
        (world.fingerprint(), world.records())
    };
    let ((first, records), (again, same), (other, different)) = (run(1), run(1), run(2));
    assert_eq!(first_divergence(&records, &same), None);
    assert_eq!(first, again);
    assert_ne!(first, other);
    let divergence = first_divergence(&records, &different).expect("another seed draws another latency");
    assert!(divergence.to_string().contains("SYN"), "{divergence}");
}

#[test]
fn as_many_records_are_kept_as_are_asked_for() {
    let records = |keep| {
        let mut world = pings(1).keep(keep).build();
        world.run(MS(600)).expect("it runs");
        (world.records(), world.counts())
    };
    let is_packet = |record: &Record| matches!(record.event, Event::Packet { .. });
    let (all, (count, packets)) = records(TraceRetention::All);
    assert_eq!(all.len() as u64, count);
    assert!(packets > 10 && all.iter().filter(|record| is_packet(record)).count() as u64 >= packets);
    let (events, counts) = records(TraceRetention::Events);
    let expected: Vec<_> = all.iter().filter(|record| !is_packet(record)).cloned().collect();
    assert_eq!((events, counts), (expected, (count, packets)));
    assert_eq!(records(TraceRetention::Last(3)).0, all[all.len() - 3..]);
    assert_eq!([TraceRetention::Last(0), TraceRetention::Nothing].map(|keep| records(keep).0), [[], []]);
}

#[test]
fn running_in_two_parts_is_running_at_once() {
    let run = |stops: &[i64]| {
        let mut world = pings(3).build();
        for &stop in stops {
            assert_eq!(world.run(MS(stop)), Ok(End::TimeUp));
            assert_eq!(world.now(), MS(stop));
        }
        world.fingerprint()
    };
    assert_eq!(run(&[600]), run(&[0, 115, 120, 333, 600]));
}

#[test]
fn a_hook_orders_a_fault_upon_an_event() {
    // The answer to ping 1 comes at 120; 3 ms later the server is paused, for good.
    let hook = |record: &Record, control: &Control| {
        if matches!(&record.event, Event::Observed { detail, .. } if detail == "1") {
            control.at(record.at + ms(3), verb("pause s"));
        }
    };
    let mut world = pings(1).hook(hook).build();
    world.run(MS(600)).expect("it runs");
    assert_eq!(observed(&world, "ping"), "connected@20 1@120");
    let fault =
        world.records().into_iter().find(|record| matches!(record.event, Event::Fault { .. })).expect("one");
    assert_eq!(fault.at, MS(123));
}

#[test]
fn an_endless_loop_is_an_error_and_names_its_host() {
    let spin = |_| async {
        loop {
            tokio::task::yield_now().await;
        }
    };
    let mut world =
        World::builder(1).host("idle", |_| async {}).host("spin", spin).limits(1_000, u64::MAX).build();
    let error = world.run(MS(1)).expect_err("it never ends");
    assert_eq!(error, WorldError::Livelock { at: True::ZERO, host: "spin".into(), steps: 1_000 });
}

#[test]
fn a_run_has_an_end() {
    let tick = |ctx: HostCtx| async move {
        for n in 1.. {
            ctx.sleep_until(Monotonic::from_millis(n)).await;
        }
    };
    let mut world = World::builder(1).host("tick", tick).limits(1_000, 50).build();
    assert!(matches!(world.run(MS(1_000)), Err(WorldError::TooLong { steps: 50, .. })));
}

#[test]
fn an_order_for_an_unknown_host_is_an_error() {
    let mut world = pings(1).build();
    world.control().now(verb("crash nobody"));
    let error = world.run(MS(1)).expect_err("there is no such host").to_string();
    assert_eq!(error, "no host is called nobody, as \"crash of nobody, by it\" has it; there are s, c");
}

#[test]
#[should_panic(expected = "a bug on a host")]
fn a_panic_on_a_host_ends_the_run() {
    let buggy = |ctx: HostCtx| async move { ctx.spawn(async { panic!("a bug on a host") }) };
    let _ = World::builder(1).host("buggy", buggy).build().run(MS(1));
}

#[test]
fn tasks_die_with_their_host_and_what_software_captured_survives() {
    let lives = std::rc::Rc::new(std::cell::Cell::new(0));
    let software = {
        let lives = lives.clone();
        move |ctx: HostCtx| {
            lives.set(lives.get() + 1);
            let task = ctx.clone();
            ctx.spawn(async move {
                for n in 0.. {
                    task.sleep_until(Monotonic::from_millis(n * 100)).await;
                    task.observe("alive", format!("{}", task.incarnation()));
                }
            });
            async {}
        }
    };
    let mut world = World::builder(1).host("h", software).keep(TraceRetention::Events).build();
    world.control().at(MS(150), verb("crash h"));
    world.control().at(MS(350), verb("restart h"));
    world.run(MS(450)).expect("it runs");
    assert_eq!(observed(&world, "alive"), "0@0 0@100 1@350 1@350 1@350 1@350 1@400");
    assert_eq!(lives.get(), 2);
}

#[test]
fn software_may_act_on_a_stop_within_the_instant() {
    let software = |ctx: HostCtx| async move {
        ctx.stopping().await;
        ctx.observe("stop", "saved");
        ctx.sleep_until(ctx.monotonic() + ms(1)).await;
        ctx.observe("stop", "too late");
    };
    let mut world = World::builder(1).host("h", software).keep(TraceRetention::Events).build();
    world.control().at(MS(5), verb("stop h"));
    world.run(MS(10)).expect("it runs");
    assert_eq!(observed(&world, "stop"), "saved@5");
}

#[test]
fn sleeps_end_at_the_very_nanosecond_and_foreign_timers_to_the_millisecond() {
    #[expect(clippy::disallowed_methods, reason = "a user's own code may sleep by tokio's clock")]
    let software = |ctx: HostCtx| async move {
        ctx.sleep_until(Monotonic::from_nanos(1_234_567)).await;
        ctx.observe("nanos", "exact");
        tokio::time::sleep(ms(5)).await;
        ctx.observe("nanos", "foreign");
    };
    let mut world = World::builder(1).host("h", software).keep(TraceRetention::Events).build();
    world.run(MS(10)).expect("it runs");
    let times: Vec<_> = world
        .records()
        .into_iter()
        .filter(|record| matches!(record.event, Event::Observed { .. }))
        .map(|record| record.at.as_nanos())
        .collect();
    // tokio's clock stood at 1 ms when the foreign sleep began.
    assert_eq!(times, [1_234_567, 6_000_000]);
}

#[test]
fn a_cut_link_drops_packets_that_no_kernel_retransmits() {
    // The server reports the bytes that reach it. The link is cut from 50 to 300. Data sent over it
    // waits in a kernel, and is lost with that kernel or with the abandoned connection attempt.
    let server = |ctx: HostCtx| async move {
        let listener = ctx.listen(7).await.expect("free");
        loop {
            let (mut stream, _) = listener.accept().await.expect("a listener accepts");
            ctx.observe("server", "connection");
            let ctx2 = ctx.clone();
            ctx.spawn(async move {
                let mut byte = [0];
                while stream.read_exact(&mut byte).await.is_ok() {
                    ctx2.observe("server", byte[0].to_string());
                }
            });
        }
    };
    let client = |ctx: HostCtx| async move {
        if ctx.incarnation() > 0 {
            return;
        }
        let mut stream = ctx.dial("s", 7).await.expect("the link is whole");
        ctx.sleep_until(Monotonic::from_millis(100)).await;
        stream.write_all(&[1]).await.expect("open");
        let attempt = ctx.dial("s", 7);
        tokio::select! {
            biased;
            _ = attempt => panic!("the link is cut"),
            () = ctx.sleep_until(Monotonic::from_millis(200)) => {}
        }
        std::future::pending::<()>().await;
    };
    let rows: [(&[(i64, &str)], &str); 3] = [
        (&[], "connection@30 1@310"),
        (&[(250, "crash c")], "connection@30"),
        // The kernel of a killed process survives, and still sends its data.
        (&[(250, "kill c")], "connection@30 1@310"),
    ];
    for (orders, expected) in rows {
        let mut world = World::builder(1)
            .host("s", server)
            .host("c", client)
            .latency(Latency::Fixed(ms(10)))
            .keep(TraceRetention::Events)
            .build();
        for (at, text) in [&[(50, "cut c s"), (300, "heal c s")], orders].concat() {
            world.control().at(MS(at), verb(text));
        }
        world.run(MS(600)).expect("it runs");
        assert_eq!(observed(&world, "server"), expected, "{orders:?}");
        let sockets = world.sockets("s").expect("a host");
        assert!(sockets <= 2, "the listener and at most one connection: {sockets}");
        if orders.iter().any(|(_, order)| *order == "crash c") {
            assert_eq!(world.sockets("c"), Some(0), "its kernel is gone");
        }
    }
}

#[test]
fn hosts_have_addresses_and_sockets_by_their_names() {
    let idle = |_: HostCtx| std::future::pending();
    let world = World::builder(1).host("s", idle).host("c", idle).build();
    let (s, c) = (world.address("s").expect("a host"), world.address("c").expect("a host"));
    assert_ne!(s, c);
    assert_eq!((world.sockets("s"), world.sockets("c")), (Some(0), Some(0)));
    assert_eq!((world.address("x"), world.sockets("x")), (None, None));
}

#[test]
fn packets_of_a_link_keep_their_order_whatever_their_latency() {
    // Ten messages a nanosecond apart over a link whose latency varies by a factor of hundred.
    let sender = |ctx: HostCtx| async move {
        let mut stream = ctx.dial("to", 7).await.expect("it listens");
        let start = ctx.monotonic();
        for n in 0..100u8 {
            ctx.sleep_until(start + Duration::from_nanos(u64::from(n))).await;
            stream.write_all(&[n]).await.expect("it is open");
        }
        std::future::pending().await
    };
    let receiver = |ctx: HostCtx| async move {
        let (mut stream, _) = ctx.listen(7).await.expect("free").accept().await.expect("one comes");
        let mut bytes = [0; 100];
        stream.read_exact(&mut bytes).await.expect("all come");
        assert_eq!(bytes, std::array::from_fn(|n| n as u8));
        ctx.observe("all", "there");
    };
    let latency = Latency::Uniform { min: ms(1), max: ms(100) };
    let mut world = World::builder(5).host("to", receiver).host("from", sender).latency(latency).build();
    world.run(MS(1_000)).expect("it runs");
    assert!(observed(&world, "all").starts_with("there"));
}

#[test]
fn a_half_open_connection_kept_the_port_of_a_host_that_crashed() {
    // The request to connect has arrived by 10 ms; its answer is in flight at 15 ms.
    let client = |ctx: HostCtx| async move {
        let given_up = ctx.dial("s", 7).await.is_err();
        ctx.sleep_until(Monotonic::from_millis(200)).await;
        let again = ctx.dial("s", 7).await.is_ok();
        ctx.observe("it", format!("given up: {given_up}, again: {again}"));
    };
    let latency = Latency::Fixed(ms(10));
    let mut world = World::builder(1)
        .host("s", echo)
        .host("c", client)
        .latency(latency)
        .keep(TraceRetention::All)
        .build();
    for (at, text) in [(15, "crash s"), (16, "reset s c"), (100, "up s")] {
        world.control().at(MS(at), verb(text));
    }
    world.run(MS(1_000)).expect("it runs");
    assert_eq!(observed(&world, "it"), "given up: true, again: true@220");
}
