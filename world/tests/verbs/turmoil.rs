//! Worlds on the engine of `turmoil`.

use super::*;

#[test]
fn turmoil_tells_the_same_story_to_the_millisecond() {
    let rows: [&[(i64, &str)]; 12] = [
        &[],
        &[(150, "pause s"), (430, "resume s")],
        &[(150, "suspend c"), (430, "wake c")],
        &[(205, "cut c s"), (730, "heal c s")],
        // One direction only: the byte arrives and its answer waits.
        &[(205, "cut s c"), (730, "heal s c")],
        &[(205, "slow s c 45")],
        &[(5, "latency c s")],
        &[(405, "reset s c")],
        // Packets for a connection that the new incarnation does not know are answered by a reset.
        &[(405, "crash s"), (650, "up s")],
        &[(405, "crash:a c"), (500, "crash:b c"), (600, "up:a c"), (650, "up:b c")],
        &[(405, "pause c"), (500, "crash c"), (600, "up c"), (650, "resume c")],
        &[(300, "double c")],
    ];
    for verbs in rows {
        let story = |engine| {
            let mut world = pings(1).engine(engine).build();
            verbs.iter().for_each(|(at, text)| world.control().at(MS(*at), verb(text)));
            world.run(MS(2_000)).expect("it runs");
            observed(&world, "ping")
        };
        assert_eq!(story(Engine::Turmoil), story(Engine::Event), "{verbs:?}");
    }
}

#[test]
fn a_host_on_turmoil_reaches_itself_at_once() {
    let mut world = World::builder(1)
        .engine(Engine::Turmoil)
        .host("h", |ctx| async move {
            ctx.spawn(echo(ctx.clone()));
            ctx.wire_delay(ms(5)).await;
            let mut stream = ctx.dial("h", 7).await.expect("it listens");
            stream.write_all(b"x").await.expect("open");
            stream.read_exact(&mut [0]).await.expect("answered");
            ctx.observe("it", "answered");
        })
        .keep(TraceRetention::All)
        .build();
    world.run(MS(20)).expect("it runs");
    assert_eq!(observed(&world, "it"), "answered@5");
}

#[test]
fn code_on_turmoil_that_wakes_itself_for_ever_ends_the_run() {
    let mut world = World::builder(1)
        .engine(Engine::Turmoil)
        .limits(1_000, u64::MAX)
        .host("h", |_| async {
            loop {
                tokio::task::yield_now().await;
            }
        })
        .build();
    let error = world.run(MS(20)).expect_err("it never gives way");
    assert!(matches!(error, WorldError::Livelock { host, .. } if host == "h"));
}
