//! Real time.

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
