//! The plain lock on a real server.

use std::time::Duration;

use lockstorm_client::{Client, ErrorKind, OwnerId};

use crate::support::{RedisServer, soon, task};

const LONG: Duration = Duration::from_secs(20);

#[tokio::test]
async fn excludes_others_and_nests_for_its_owner() {
    let Some(server) = RedisServer::start() else { return };
    let client = Client::connect(&server.url()).await.unwrap();
    let (lock, owner) = (client.lock("stock"), OwnerId::new(7));

    let outer = lock.acquire().owner(owner).await.unwrap();
    let inner = lock.try_acquire().owner(owner).lease(Duration::from_secs(5)).await.unwrap().unwrap();
    assert_eq!(lock.hold_count(owner).await.unwrap(), 2);
    assert!(lock.try_acquire().await.unwrap().is_none(), "a new owner must not get it");
    // The nested lease of 5 s does not shorten the outer one of 30 s.
    assert!(lock.remaining().await.unwrap().unwrap() > LONG);
    assert!(outer.validity() > LONG);

    inner.release().await.unwrap();
    assert_eq!(lock.hold_count(owner).await.unwrap(), 1);
    assert!(lock.is_locked().await.unwrap());
    outer.release().await.unwrap();
    assert!(!lock.is_locked().await.unwrap());
    assert_eq!(lock.remaining().await.unwrap(), None);
}

/// The lease would end after one second; five pass, so only renewals can have kept it. A busy
/// machine must not stand still for two thirds of the lease, so the lease is not shorter.
#[tokio::test]
async fn watchdog_keeps_what_has_no_lease() {
    let Some(server) = RedisServer::start() else { return };
    let client = Client::builder()
        .endpoint(server.url())
        .watchdog_timeout(Duration::from_secs(1))
        .connect()
        .await
        .unwrap();
    let lock = client.lock("stock");
    let guard = lock.acquire().await.unwrap();
    let others = Client::connect(&server.url()).await.unwrap();
    assert!(others.lock("stock").try_acquire_for(Duration::from_secs(5)).await.unwrap().is_none());
    assert!(guard.is_valid());
    guard.release().await.unwrap();
    assert!(!lock.is_locked().await.unwrap());
}

#[tokio::test]
async fn release_wakes_a_waiter_of_another_client() {
    let Some(server) = RedisServer::start() else { return };
    let holder = Client::connect(&server.url()).await.unwrap();
    let waiter = Client::connect(&server.url()).await.unwrap();
    let guard = holder.lock("stock").acquire().await.unwrap();
    let waiting = task(async move { waiter.lock("stock").acquire().await });
    // Release only once the waiter listens, so that its first try cannot succeed.
    loop {
        let listeners = server.command(&["PUBSUB", "NUMSUB", "redisson_lock__channel:{stock}"]).await;
        if matches!(&listeners, redis::Value::Array(reply) if reply[1] == redis::Value::Int(1)) {
            break;
        }
    }
    guard.release().await.unwrap();
    // Without the message it would sleep for the 30 s of the lease.
    soon("the release wakes it", waiting).await.unwrap().unwrap().release().await.unwrap();
}

#[tokio::test]
async fn a_dropped_guard_is_released() {
    let Some(server) = RedisServer::start() else { return };
    let client = Client::connect(&server.url()).await.unwrap();
    drop(client.lock("stock").acquire().await.unwrap());
    let again = client.lock("stock").try_acquire_for(LONG).await.unwrap();
    assert!(again.is_some(), "released by the drop");
}

#[tokio::test]
async fn a_lock_that_is_gone_is_lost_and_not_released_twice() {
    let Some(server) = RedisServer::start() else { return };
    let client = Client::builder()
        .endpoint(server.url())
        .watchdog_timeout(Duration::from_millis(600))
        .connect()
        .await
        .unwrap();
    let guard = client.lock("stock").acquire().await.unwrap();
    let lost = guard.lost();
    server.command(&["DEL", "stock"]).await;
    lost.await;
    assert!(!guard.is_valid());
    assert_eq!(guard.validity(), Duration::ZERO);
    let error = guard.release().await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::NotHeld { .. }), "{error}");
    assert!(error.is_definite());
}

/// A guard from before the loss must not release a level that its owner took later.
#[tokio::test]
async fn a_lost_guard_leaves_the_next_hold_of_its_owner_alone() {
    let Some(server) = RedisServer::start() else { return };
    let client = Client::connect(&server.url()).await.unwrap();
    let (lock, owner) = (client.lock("stock"), OwnerId::new(1));
    let first = lock.acquire().owner(owner).lease(Duration::from_millis(200)).await.unwrap();
    first.lost().await;
    let second = loop {
        // The lease ends on the server a little later than for this client.
        if !lock.is_locked().await.unwrap() {
            break lock.acquire().owner(owner).await.unwrap();
        }
    };
    let error = first.release().await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::NotHeld { .. }), "{error}");
    assert_eq!(lock.hold_count(owner).await.unwrap(), 1);
    second.release().await.unwrap();
    assert!(!lock.is_locked().await.unwrap());
}
