//! How waiters are woken, on a real server.

mod support;

use std::sync::{Arc, Mutex};

use lockstorm_client::{Client, Event, Observer, What, WokenBy};
use support::{RedisServer, eventually, soon, task};

const CHANNEL: &str = "redisson_lock__channel:{stock}";

#[derive(Default)]
struct Counts {
    attempts: Mutex<usize>,
    messages: Mutex<usize>,
    waiting: Mutex<usize>,
}

impl Observer for Counts {
    fn observe(&self, event: &Event<'_>) {
        let counter = match event.what {
            What::Attempt => &self.attempts,
            What::Waiting { .. } => &self.waiting,
            What::Woken { by: WokenBy::Message } => &self.messages,
            _ => return,
        };
        *counter.lock().unwrap() += 1;
    }
}

async fn listeners(server: &RedisServer) -> i64 {
    let reply = server.command(&["PUBSUB", "NUMSUB", CHANNEL]).await;
    let (_, count): (String, i64) = redis::from_redis_value(reply).unwrap();
    count
}

/// Ten waiters of one client share a subscription, and each release wakes one of them: every waiter asks once to find
/// the lock taken, once after subscribing, and once when it is woken.
#[tokio::test]
async fn waiters_share_a_subscription_and_are_woken_one_by_one() {
    const WAITERS: usize = 10;
    let Some(server) = RedisServer::start() else { return };
    let counts = Arc::new(Counts::default());
    let client = Client::builder().endpoint(server.url()).observer(counts.clone()).connect().await.unwrap();
    let guard = client.lock("stock").acquire().await.unwrap();
    let mut waiters = Vec::new();
    for _ in 0..WAITERS {
        let lock = client.lock("stock");
        waiters.push(task(async move { lock.acquire().await.unwrap().release().await.unwrap() }));
    }
    eventually("all wait", async || *counts.waiting.lock().unwrap() >= WAITERS).await;
    // One connection listens, whatever the number of waiters.
    assert_eq!(listeners(&server).await, 1);
    let before = *counts.attempts.lock().unwrap();
    guard.release().await.unwrap();
    for waiter in waiters {
        soon("each release wakes the next", waiter).await.unwrap();
    }
    let woken = *counts.attempts.lock().unwrap() - before;
    // Ten that are granted, and a few that are woken by a message which another took before them; all at once would
    // be 10 + 9 + ... + 1 = 55.
    assert!((WAITERS..3 * WAITERS).contains(&woken), "{woken} attempts for {WAITERS} grants");
    eventually("the last waiter unsubscribes", async || listeners(&server).await == 0).await;
}

/// The lock is freed between the first look and the subscription: no message will come for it, so that only the look
/// after the subscription finds it. Repeated, because the moment cannot be chosen from outside.
#[tokio::test]
async fn no_release_is_missed() {
    let Some(server) = RedisServer::start() else { return };
    let clients =
        [Client::connect(&server.url()).await.unwrap(), Client::connect(&server.url()).await.unwrap()];
    let workers: Vec<_> = (0..8)
        .map(|worker: usize| {
            let lock = clients[worker % 2].lock("stock");
            task(async move {
                for _ in 0..50 {
                    lock.acquire().await.unwrap().release().await.unwrap();
                }
            })
        })
        .collect();
    for worker in workers {
        // A single missed release costs the 30 s of a lease.
        soon("400 hand-offs", worker).await.unwrap();
    }
}
