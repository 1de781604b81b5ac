//! Scripts in the millisecond in which a lease ends. Only the simulator has a clock that a test can
//! set to it.

use redis::aio::MultiplexedConnection;

use super::{
    NIL, eval, int, pair,
    read_write::{READ_ACQUIRE, READ_PROBE},
    semaphores::PERMIT_ACQUIRE,
};
use crate::support::command;

const LEASE: u64 = 5_000;

/// A server, a connection to it, and its URL.
async fn simulated() -> (lockstorm_sim::TestServer, MultiplexedConnection, String) {
    let server = lockstorm_sim::TestServer::builder().manual_clock().start().await.unwrap();
    let url = server.url();
    let redis = redis::Client::open(&*url).unwrap().get_multiplexed_async_connection().await.unwrap();
    (server, redis, url)
}

/// In the millisecond of its deadline a permit has expired: no script renews it or gives it a new
/// lease.
#[tokio::test]
async fn a_permit_ends_with_the_millisecond_before_its_deadline() {
    const RENEW: &str = concat!(
        include_str!("../../../src/locks/permit_semaphore/now.lua"),
        include_str!("../../../src/locks/permit_semaphore/renew.lua")
    );
    const UPDATE: &str = concat!(
        include_str!("../../../src/locks/permit_semaphore/now.lua"),
        include_str!("../../../src/locks/permit_semaphore/update.lua")
    );
    // Permit IDs have this length.
    let id = "0123456789abcdef";
    for (after, is_out) in [(LEASE - 1, 1), (LEASE, 0)] {
        for (script, args, reply) in [
            (RENEW, [&LEASE as &dyn ToString, &id], redis::Value::Array(vec![int(is_out)])),
            (UPDATE, [&LEASE, &id], int(is_out)),
        ] {
            let (_server, mut redis, url) = simulated().await;
            command(&url, "SET p 1").await;
            let keys = ["p", "{p}:timeout", "redisson_sc:{p}"];
            let granted =
                eval(&mut redis, PERMIT_ACQUIRE, &keys, &[&"PUBLISH", &1, &LEASE, &id]).await.unwrap();
            assert_eq!(granted, redis::Value::Okay);
            command(&url, &format!("DEBUG CLOCK ADVANCE {after}")).await;
            let replied = eval(&mut redis, script, &["{p}:timeout"], &args).await.unwrap();
            assert_eq!(replied, reply, "after {after} ms: {script}");
        }
    }
}

/// Redis keeps a key through the millisecond in which it expires, with 0 ms left. A reader's level
/// has ended by then.
#[tokio::test]
async fn a_read_hold_ends_with_the_millisecond_before_its_key_does() {
    let holds = "{rw}:A:rwlock_timeout";
    for (after, left) in [(LEASE - 1, pair(1, 1)), (LEASE, pair(0, 0))] {
        let (_server, mut redis, url) = simulated().await;
        let granted =
            eval(&mut redis, READ_ACQUIRE, &["rw", holds], &[&LEASE, &"A", &"A:write"]).await.unwrap();
        assert_eq!(granted, NIL);
        command(&url, &format!("DEBUG CLOCK ADVANCE {after}")).await;
        let probed = eval(&mut redis, READ_PROBE, &["rw", holds], &[&"A"]).await.unwrap();
        assert_eq!(probed, left, "after {after} ms");
    }
}
