//! A program of one's own on trial: two workers that use the lock to take turns at a shared ledger,
//! one of which is paused for longer than its lease while it believes that it is alone.
//!
//! Try it: `cargo run -p lockstorm --example own_code`

use std::time::Duration;

use lockstorm::{
    file::{
        fault::{Fault, Happening, Pause, Trigger},
        scenario::{Fence, Lock, LockKind, Resource, Scenario},
    },
    judge::verdict::Expectation,
    run::code::CodeHost,
    units::{Draw, Span},
};

/// The code of the program on trial. It knows Redis and a lock; of the laboratory it knows only the
/// host that it reports to.
async fn worker(host: CodeHost) {
    let client = host.client().build().expect("the scenario has nodes");
    let lock = client.fenced_lock(host.lock_name());
    for _ in 0..3 {
        let asked = lock.acquire().lease(Duration::from_secs(1));
        let Ok(guard) = host.acquiring(None, asked).await else { continue };
        // The work, and then its result: with the token, so that the ledger can refuse a worker
        // that comes late.
        host.sleep(Duration::from_millis(200)).await;
        host.write(Some(guard.token())).await;
        // It may be lost by now; then there is nothing to give back.
        let _ = host.releasing(guard.release()).await;
        host.sleep(Duration::from_millis(100)).await;
    }
}

/// The workers, and the pause that strikes the first of them.
fn scenario(fence: Fence) -> Scenario {
    let acquired = Trigger {
        client: Some("w1".into()),
        of: None,
        event: Happening::Acquired,
        nth: 1,
        always: false,
        delay: Draw::Fixed(Span::millis(50)),
    };
    let scenario = Scenario::builder("two workers and a pause")
        .node("redis", Default::default())
        .client_code("w1", worker)
        .client_code("w2", worker)
        .lock(Lock { kind: LockKind::Fenced, ..Lock::default() })
        .resource(Resource { fence })
        .fault(
            "pause",
            Fault {
                pause: Some(Pause("w1".into())),
                on: Some(acquired),
                length: Some(Draw::Fixed(Span::secs(3))),
                ..Fault::default()
            },
        )
        .lasting(Span::secs(20), Span::default())
        .expect("l1", Expectation::holds())
        .expect("l2", Expectation::holds())
        // The write of the paused worker comes after that of the other one, whatever the ledger
        // does about it;
        .expect("l3", Expectation::violated());
    // a fence refuses it.
    let scenario = match fence {
        Fence::None => scenario,
        _ => scenario.expect("l4", Expectation::holds()),
    };
    scenario.build()
}

fn main() {
    for fence in [Fence::None, Fence::Greater] {
        let judged = match lockstorm::experiment(scenario(fence)).seeds(0..20).try_check() {
            Ok(judged) => judged,
            Err(failed) => panic!("{failed}"),
        };
        println!("fence {fence:?}: {} runs, each as expected", judged.len());
        for layer in ["l3", "l4"] {
            let found = judged[0].finding(layer).expect("every checker is asked");
            println!("  {layer} {}: {}", found.verdict.word(), found.verdict.sentence());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_keeps_the_paused_worker_out() {
        lockstorm::experiment(scenario(Fence::None)).seeds(0..5).check();
        lockstorm::experiment(scenario(Fence::Greater)).seeds(0..5).check();
    }
}
