//! The particular behaviour of the spin lock and the non-reentrant locks, on a real server.

use std::sync::Arc;
use std::time::Duration;

use lockstorm_client::{Client, Lock, OwnerId, SpinBackoff};
use redis::Value;

use crate::support::{Attempts, Flow, Proxy, RedisServer, eventually, soon, task};

const LONG: Duration = Duration::from_secs(20);

/// A user without a right to any channel waits for a spin lock, and releases it: no subscription,
/// no message.
#[tokio::test]
async fn a_spin_lock_needs_no_channel() {
    let Some(server) = RedisServer::start() else { return };
    let setup = ["ACL", "SETUSER", "app", "on", ">secret", "~*", "+@all", "resetchannels"];
    assert_eq!(server.command(&setup).await, Value::Okay);
    let url = server.url().replace("redis://", "redis://app:secret@");
    let (holder, waiter) = (Client::connect(&url).await.unwrap(), Client::connect(&url).await.unwrap());
    let guard = holder.spin_lock("stock").acquire().await.unwrap();
    let waiting = task(async move { waiter.spin_lock("stock").acquire().await });
    eventually("it has asked and was refused", async || {
        format!("{:?}", server.command(&["INFO", "commandstats"]).await).contains("cmdstat_evalsha:calls=2")
    })
    .await;
    guard.release().await.unwrap();
    let guard = soon("it is granted without a message", waiting).await.unwrap().unwrap();
    guard.release().await.unwrap();
    assert_eq!(server.command(&["EXISTS", "stock"]).await, Value::Int(0));
}

/// The spin lock and the plain lock of one name exclude each other, in both directions.
#[tokio::test]
async fn a_spin_lock_excludes_the_plain_lock_of_its_name() {
    let Some(server) = RedisServer::start() else { return };
    let client = Client::connect(&server.url()).await.unwrap();
    let kinds: [fn(&Client) -> Lock; 3] = [
        |client| client.lock("stock"),
        |client| client.spin_lock_with("stock", SpinBackoff::constant(Duration::from_millis(64))),
        |client| client.non_reentrant_lock("stock"),
    ];
    for held in kinds {
        let guard = held(&client).acquire().await.unwrap();
        for asked in kinds {
            assert!(asked(&client).try_acquire().await.unwrap().is_none());
        }
        guard.release().await.unwrap();
    }
}

/// The limit of a wait holds, although the next delay would end after it, and nothing of the waiter
/// remains.
#[tokio::test]
async fn a_spinning_waiter_gives_up_at_its_limit() {
    let Some(server) = RedisServer::start() else { return };
    let client = Client::connect(&server.url()).await.unwrap();
    let lock = client.spin_lock_with("stock", SpinBackoff::constant(Duration::from_secs(3600)));
    let guard = lock.acquire().await.unwrap();
    let waiting = lock.try_acquire_for(Duration::from_millis(200)).into_future();
    assert!(soon("the limit, not the hour", waiting).await.unwrap().is_none());
    guard.release().await.unwrap();
    assert!(!lock.is_locked().await.unwrap());
}

/// The grant's reply is lost, with the connection. Redisson repeats the request, finds the lock
/// held by its owner, and fails while it holds it; this client finds its own hold.
#[tokio::test]
async fn a_lost_grant_of_a_non_reentrant_lock_is_found() {
    let Some(server) = RedisServer::start() else { return };
    let proxy = Proxy::to(&server).await;
    let attempts = Arc::new(Attempts::default());
    let client = Client::builder()
        .endpoint(proxy.url())
        .observer(attempts.clone())
        .response_timeout(Duration::from_millis(500))
        .connect()
        .await
        .unwrap();
    for (name, lock) in
        [("plain", client.non_reentrant_lock("plain")), ("fair", client.non_reentrant_fair_lock("fair"))]
    {
        // Scripts are loaded by now.
        lock.acquire().await.unwrap().release().await.unwrap();
        let before = attempts.count();
        proxy.replies(Flow::Swallow);
        let asking = task({
            let lock = lock.clone();
            async move { lock.try_acquire_for(LONG).owner(OwnerId::new(1)).await }
        });
        eventually("it is granted", async || server.command(&["EXISTS", name]).await == Value::Int(1)).await;
        proxy.replies(Flow::Pass);
        let guard = soon("its own hold is found", asking).await.unwrap().unwrap().expect("granted");
        assert_eq!(attempts.count() - before, 1, "{name}: sent once");
        guard.release().await.unwrap();
        assert_eq!(server.command(&["EXISTS", name]).await, Value::Int(0));
    }
}
