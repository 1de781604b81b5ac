//! The order of the fair lock and the tokens of the fenced lock, on a real server.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use lockstorm_client::{Client, Handle, Object, OwnerId};

use crate::support::{RedisServer, soon, task};

const LONG: Duration = Duration::from_secs(20);

/// Waiters of two clients queue one after another, and the lock is granted in that order.
#[tokio::test]
async fn fair_lock_is_granted_in_order() {
    let Some(server) = RedisServer::start() else { return };
    let clients =
        [Client::connect(&server.url()).await.unwrap(), Client::connect(&server.url()).await.unwrap()];
    let first = clients[0].fair_lock("stock").acquire().await.unwrap();
    let granted = Arc::new(Mutex::new(Vec::new()));
    let mut waiters = tokio::task::JoinSet::new();
    for number in 0..4_usize {
        let (lock, granted) = (clients[number % 2].fair_lock("stock"), granted.clone());
        waiters.spawn(async move {
            let guard = lock.acquire().await.unwrap();
            granted.lock().unwrap().push(number);
            guard.release().await.unwrap();
        });
        while server.command(&["LLEN", "redisson_lock_queue:{stock}"]).await
            != redis::Value::Int(i64::try_from(number).unwrap() + 1)
        {}
    }
    assert!(clients[1].fair_lock("stock").try_acquire().await.unwrap().is_none());
    first.release().await.unwrap();
    soon("each is woken by the one before", waiters.join_all()).await;
    assert_eq!(*granted.lock().unwrap(), [0, 1, 2, 3]);
}

/// A waiter with a limit of 300 ms leaves the queue, and does not keep the next one from the lock.
#[tokio::test]
async fn fair_waiter_that_gives_up_leaves_no_trace() {
    let Some(server) = RedisServer::start() else { return };
    let client = Client::connect(&server.url()).await.unwrap();
    let lock = client.fair_lock("stock");
    let guard = lock.acquire().await.unwrap();
    assert!(lock.try_acquire_for(Duration::from_millis(300)).await.unwrap().is_none());
    guard.release().await.unwrap();
    lock.try_acquire_for(LONG).await.unwrap().expect("free").release().await.unwrap();
    while server.command(&["EXISTS", "redisson_lock_queue:{stock}"]).await != redis::Value::Int(0) {}
    assert_eq!(server.command(&["EXISTS", "redisson_lock_timeout:{stock}"]).await, redis::Value::Int(0));
}

/// The deadline in the queue is the requested wait in milliseconds after the holder's lease.
#[tokio::test]
async fn fair_deadline_is_the_wait_in_milliseconds() {
    let Some(server) = RedisServer::start() else { return };
    let client = Client::connect(&server.url()).await.unwrap();
    let guard = client.fair_lock("stock").acquire().await.unwrap();
    let waiter = client.fair_lock("stock");
    let waiting = task(async move { waiter.try_acquire_for(Duration::from_secs(10)).await });
    let deadline = loop {
        let reply =
            server.command(&["ZRANGE", "redisson_lock_timeout:{stock}", "0", "-1", "WITHSCORES"]).await;
        let scores: Vec<(String, f64)> = redis::from_redis_value(reply).unwrap();
        if let [(_, score)] = scores[..] {
            break score;
        }
    };
    let time: (u64, u64) = redis::from_redis_value(server.command(&["TIME"]).await).unwrap();
    #[expect(clippy::cast_precision_loss, reason = "milliseconds since 1970 fit")]
    let ahead = deadline - (time.0 * 1000 + time.1 / 1000) as f64;
    // The deadline is the holder's lease of 30 s plus the wait of 10 s. Redisson adds the wait as
    // 10 ms.
    assert!((35_000.0..=40_100.0).contains(&ahead), "{ahead}");
    guard.release().await.unwrap();
    waiting.await.unwrap().unwrap().expect("its turn").release().await.unwrap();
}

#[tokio::test]
async fn fencing_tokens_grow_with_each_grant() {
    let Some(server) = RedisServer::start() else { return };
    let client = Client::connect(&server.url()).await.unwrap();
    let (lock, owner) = (client.fenced_lock("stock"), OwnerId::new(1));
    assert_eq!(lock.last_token().await.unwrap(), None);
    let outer = lock.acquire().owner(owner).await.unwrap();
    let inner = lock.acquire().owner(owner).await.unwrap();
    assert_eq!((outer.token(), inner.token()), (1, 2));
    assert!(lock.try_acquire().await.unwrap().is_none(), "a refusal takes no token");
    inner.release().await.unwrap();
    outer.release().await.unwrap();
    assert_eq!(lock.acquire().await.unwrap().token(), 3);
    assert_eq!(lock.last_token().await.unwrap(), Some(3));
}

#[tokio::test]
async fn force_release_frees_and_tells_the_holder() {
    let Some(server) = RedisServer::start() else { return };
    let client = Client::connect(&server.url()).await.unwrap();
    is_freed_by_force(client.lock("a")).await;
    is_freed_by_force(client.fair_lock("b")).await;
    is_freed_by_force(client.fenced_lock("c")).await;
}

async fn is_freed_by_force<O: Object>(lock: Handle<O>) {
    assert!(!lock.force_release().await.unwrap());
    let guard = lock.acquire().await.unwrap();
    assert!(lock.force_release().await.unwrap());
    guard.lost().await;
    assert!(!lock.is_locked().await.unwrap());
    guard.release().await.unwrap_err();
}
