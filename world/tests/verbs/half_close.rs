//! A half-closed connection: one side has stopped sending and continues to read.

use super::*;

/// Reads to the end, and only then replies with the number of bytes.
async fn count(ctx: HostCtx) {
    let listener = ctx.listen(7).await.expect("the port is free");
    let (mut stream, _) = listener.accept().await.expect("a listener accepts");
    let mut all = Vec::new();
    stream.read_to_end(&mut all).await.expect("nothing breaks");
    stream.write_all(all.len().to_string().as_bytes()).await.expect("the other side still reads");
}

#[test]
fn the_other_side_reads_the_end_and_can_still_answer() {
    for &engine in Engine::ALL {
        let mut world = World::builder(1)
            .engine(engine)
            .host("s", count)
            .host("c", |ctx| async move {
                ctx.sleep_until(Monotonic::from_millis(20)).await;
                let mut stream = ctx.dial("s", 7).await.expect("it listens");
                stream.write_all(b"three").await.expect("open");
                stream.shutdown().await.expect("open");
                let mut answer = String::new();
                stream.read_to_string(&mut answer).await.expect("open on the other side");
                ctx.observe("answer", answer);
            })
            .keep(TraceRetention::All)
            .build();
        world.run(MS(1_000)).expect("it runs");
        assert!(observed(&world, "answer").starts_with("5@"), "{engine:?}: {}", observed(&world, "answer"));
    }
}
