//! Locks whose replies are lost, whose callers give up and whose servers restart.

use std::sync::Arc;
use std::time::Duration;

use lockstorm_client::{Client, ErrorKind, Handle, Object, OwnerId};

use crate::support::{Attempts, Flow, Proxy, RedisServer, eventually, impatient, task};

const LONG: Duration = Duration::from_secs(20);

async fn exists(server: &RedisServer) -> bool {
    server.command(&["EXISTS", "stock"]).await == redis::Value::Int(1)
}

/// The server grants, and its reply never comes. The client reads the count on a new connection and
/// finds its own hold.
#[tokio::test]
async fn a_grant_whose_reply_is_lost_is_found() {
    let Some(server) = RedisServer::start() else { return };
    let proxy = Proxy::to(&server).await;
    let client = impatient(&proxy.url()).await;
    let owner = OwnerId::new(1);
    let lock = client.lock("stock");
    let outer = lock.acquire().owner(owner).await.unwrap();

    proxy.replies(Flow::Swallow);
    let asking = task({
        let lock = lock.clone();
        async move { lock.acquire().owner(owner).await }
    });
    eventually("the second level is granted", async || {
        server.command(&["HGET", "stock", outer.owner()]).await == redis::Value::BulkString(b"2".into())
    })
    .await;
    proxy.replies(Flow::Pass);
    let inner = asking.await.unwrap().unwrap();
    // The server granted one level, whether the client repeated the request or found the grant.
    assert_eq!(lock.hold_count(owner).await.unwrap(), 2);
    inner.release().await.unwrap();
    assert_eq!(lock.hold_count(owner).await.unwrap(), 1);
    outer.release().await.unwrap();
    assert!(!exists(&server).await);
}

/// The request is held up until the caller gets an error, and then executed. The client releases
/// the resulting hold.
#[tokio::test]
async fn a_grant_after_giving_up_is_taken_back() {
    let Some(server) = RedisServer::start() else { return };
    let proxy = Proxy::to(&server).await;
    let client = impatient(&proxy.url()).await;
    proxy.requests(Flow::Hold);
    let error = client.lock("stock").try_acquire().await.unwrap_err();
    assert!(!error.is_definite());
    assert!(matches!(error.kind(), ErrorKind::ResponseTimeout(_) | ErrorKind::Connect { .. }), "{error}");
    proxy.requests(Flow::Pass);
    // Never granted, or granted and taken back: either way the lock is free for others in the end,
    // and stays so.
    let other = Client::connect(&server.url()).await.unwrap();
    let guard = other.lock("stock").try_acquire_for(LONG).await.unwrap().expect("free again");
    assert!(guard.is_valid());
    assert_eq!(server.command(&["HLEN", "stock"]).await, redis::Value::Int(1));
    guard.release().await.unwrap();
}

/// The request is held up while the client asks again on a new connection. It must not be executed
/// later: the owner would hold two levels, and release one.
#[tokio::test]
async fn a_request_still_on_its_way_is_never_obeyed() {
    let Some(server) = RedisServer::start() else { return };
    let proxy = Proxy::to(&server).await;
    let client = impatient(&proxy.url()).await;
    let owner = OwnerId::new(1);
    // The server knows the scripts from here on, so that the next acquire is one request.
    client.lock("stock").acquire().await.unwrap().release().await.unwrap();
    let connections = async || {
        let list: String = redis::from_redis_value(server.command(&["CLIENT", "LIST"]).await).unwrap();
        list.lines().map(|line| line.split(' ').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let old = connections().await[0].clone();

    proxy.requests_on_open_connections(Flow::Hold);
    let guard = client.lock("stock").acquire().owner(owner).await.unwrap();
    // The server has ended it, so the bytes that are passed on now reach no command.
    assert!(!connections().await.contains(&old), "the old connection, {old}, is still there");
    proxy.requests(Flow::Pass);
    assert_eq!(client.lock("stock").hold_count(owner).await.unwrap(), 1);
    guard.release().await.unwrap();
    assert!(!exists(&server).await);
}

/// Regression: the owner has a level whose own lease is over, and which the server counts for as
/// long as the other one keeps the key. A request that never arrived seemed to have been executed,
/// because the server counted a level more than the client.
#[tokio::test]
async fn a_level_that_was_over_was_taken_for_the_grant_of_a_lost_request() {
    let Some(server) = RedisServer::start() else { return };
    let proxy = Proxy::to(&server).await;
    let client = impatient(&proxy.url()).await;
    let (lock, owner) = (client.lock("stock"), OwnerId::new(1));
    let outer = lock.acquire().owner(owner).await.unwrap();
    let short = lock.acquire().owner(owner).lease(Duration::from_millis(100)).await.unwrap();
    short.lost().await;

    proxy.requests_on_open_connections(Flow::Hold);
    let later = lock.acquire().owner(owner).await.unwrap();
    proxy.requests(Flow::Pass);
    assert_eq!(lock.hold_count(owner).await.unwrap(), 3);
    // The ended level is released like the others, even while a later one exists.
    short.release().await.unwrap();
    assert_eq!(lock.hold_count(owner).await.unwrap(), 2);
    outer.release().await.unwrap();
    later.release().await.unwrap();
    assert!(!exists(&server).await);
}

/// The request that is held up for a good part of the lease, so that the server keeps levels for
/// longer than the client counts them.
#[derive(Debug, PartialEq)]
enum HeldUp {
    Acquire,
    Extend,
    /// The last renewal that arrives.
    Renewal,
}

/// Regression: all levels of the owner are over by its client's clock, while the server still
/// counts them. A request that never arrived seemed to have been executed, because the client knew
/// of none any more: two guards then shared one level, which the first of them released.
#[tokio::test]
async fn levels_that_were_over_were_taken_for_the_grant_of_a_lost_request() {
    use HeldUp::{Acquire, Extend, Renewal};
    for (held_up, levels) in [(Acquire, 2), (Extend, 1), (Renewal, 1)] {
        let Some(server) = RedisServer::start() else { return };
        let what = format!("{held_up:?}");
        let proxy = Proxy::to(&server).await;
        let sent = Arc::new(Attempts::default());
        // A second and a half is left of the ended levels, and one more to connect again.
        let is_renewed = held_up == Renewal;
        let lease = Duration::from_secs(if is_renewed { 9 } else { 3 });
        let client = Client::builder().endpoint(proxy.url()).observer(sent.clone()).watchdog_timeout(lease);
        let client = client.connect().await.unwrap();
        let (lock, owner) = (client.lock("stock"), OwnerId::new(1));
        let acquire = || {
            let request = lock.acquire().owner(owner);
            async move {
                let granted = if is_renewed { request.await } else { request.lease(lease).await };
                granted.unwrap()
            }
        };
        let outer = Arc::new(acquire().await);
        proxy.requests(Flow::Hold);
        let request = {
            let (outer, next) = (outer.clone(), acquire());
            task(async move {
                match held_up {
                    Acquire => Some(next.await),
                    Extend => outer.extend(lease).await.map(|()| None).unwrap(),
                    Renewal => None,
                }
            })
        };
        // A renewal is sent after a third of the lease, and given up when the next one is due.
        let held = if is_renewed { lease * 11 / 18 } else { lease / 2 };
        #[expect(
            clippy::disallowed_methods,
            reason = "a request is held up for a part of its lease, in real time"
        )]
        tokio::time::sleep(held).await;
        proxy.requests(Flow::Pass);
        let inner = request.await.unwrap();
        if is_renewed {
            let left = async || match server.command(&["PTTL", "stock"]).await {
                redis::Value::Int(left) => left,
                other => panic!("{other:?}"),
            };
            eventually("it arrives", async || left().await > 8_000).await;
            proxy.requests(Flow::Hold);
            outer.lost().await;
            // Later renewals never arrive.
            server.command(&["CLIENT", "KILL", "TYPE", "normal"]).await;
            proxy.requests(Flow::Pass);
            eventually("there is a connection", async || lock.hold_count(owner).await.is_ok()).await;
        }
        outer.lost().await;
        if let Some(inner) = &inner {
            inner.lost().await;
        }
        let counts = async |levels: u32| {
            let count = server.command(&["HGET", "stock", outer.owner()]).await;
            assert_eq!(count, redis::Value::BulkString(levels.to_string().into_bytes()), "{what}");
        };
        counts(levels).await;

        // The request for another level is lost with its connection.
        let before = sent.count();
        proxy.requests_on_open_connections(Flow::Hold);
        let later = task({
            let lock = lock.clone();
            async move { lock.acquire().owner(owner).await }
        });
        eventually("it is sent", async || sent.count() > before).await;
        server.command(&["CLIENT", "KILL", "TYPE", "normal"]).await;
        let later = later.await.unwrap().unwrap();
        counts(levels + 1).await;
        later.release().await.unwrap();
        counts(levels).await;
    }
}

/// The release is executed, and its reply never comes. The repeat finds the result of the first
/// under the same request ID, and does not report that the lock was not held.
#[tokio::test]
async fn a_release_whose_reply_is_lost_succeeds() {
    let Some(server) = RedisServer::start() else { return };
    let proxy = Proxy::to(&server).await;
    let client = impatient(&proxy.url()).await;
    // The server knows the scripts from here on, so that the next release is one request.
    client.lock("stock").acquire().await.unwrap().release().await.unwrap();
    let guard = client.lock("stock").acquire().await.unwrap();
    proxy.replies(Flow::Swallow);
    let releasing = task(guard.release());
    eventually("the lock is free", async || !exists(&server).await).await;
    proxy.replies(Flow::Pass);
    releasing.await.unwrap().unwrap();
}

/// The caller drops the future while the request is under way: the hold that it brings is released.
#[tokio::test]
async fn a_dropped_acquire_leaves_nothing_behind() {
    let Some(server) = RedisServer::start() else { return };
    let proxy = Proxy::to(&server).await;
    let attempts = Arc::new(Attempts::default());
    let client = Client::builder().endpoint(proxy.url()).observer(attempts.clone()).connect().await.unwrap();
    // The server knows the script from here on, so that the next acquire is one request.
    client.lock("stock").acquire().await.unwrap().release().await.unwrap();
    proxy.replies(Flow::Hold);
    let asking = task({
        let lock = client.lock("stock");
        async move { lock.acquire().await }
    });
    eventually("the lock is granted", async || exists(&server).await).await;
    asking.abort();
    assert!(asking.await.unwrap_err().is_cancelled());
    proxy.replies(Flow::Pass);
    eventually("the lock is free", async || !exists(&server).await).await;
    assert_eq!(attempts.count(), 2);
}

/// An undone level releases only itself, and the watchdog's thirty seconds do not apply to the
/// others.
#[tokio::test]
async fn a_level_that_is_undone_leaves_the_lease_of_the_others() {
    let Some(server) = RedisServer::start() else { return };
    let proxy = Proxy::to(&server).await;
    let client = Client::connect(&proxy.url()).await.unwrap();
    is_undone(&server, &proxy, client.lock("plain")).await;
    is_undone(&server, &proxy, client.fair_lock("fair")).await;
    is_undone(&server, &proxy, client.fenced_lock("fenced")).await;
}

async fn is_undone<O: Object>(server: &RedisServer, proxy: &Proxy, lock: Handle<O>) {
    let (owner, lease) = (OwnerId::new(1), Duration::from_secs(15));
    let outer = lock.acquire().owner(owner).lease(lease).await.unwrap();
    let levels = async |count: &str| {
        let levels = server.command(&["HVALS", lock.key()]).await;
        levels == redis::Value::Array(vec![redis::Value::BulkString(count.into())])
    };
    proxy.replies(Flow::Hold);
    let inner = task({
        let lock = lock.clone();
        async move { lock.acquire().owner(owner).lease(lease).await }
    });
    eventually("the second level is granted", async || levels("2").await).await;
    inner.abort();
    assert!(inner.await.unwrap_err().is_cancelled());
    proxy.replies(Flow::Pass);
    eventually("the second level is given back", async || levels("1").await).await;
    assert!(lock.remaining().await.unwrap().unwrap() <= lease, "{lock:?}");
    outer.release().await.unwrap();
}

/// A waiter that gives up leaves the queue of a fair lock.
#[tokio::test]
async fn a_dropped_waiter_leaves_the_queue() {
    let Some(server) = RedisServer::start() else { return };
    let client = Client::connect(&server.url()).await.unwrap();
    let guard = client.fair_lock("stock").acquire().await.unwrap();
    let waiting = task({
        let lock = client.fair_lock("stock");
        async move { lock.acquire().await }
    });
    let queued = async || server.command(&["LLEN", "redisson_lock_queue:{stock}"]).await;
    eventually("it queues", async || queued().await == redis::Value::Int(1)).await;
    waiting.abort();
    eventually("it leaves", async || queued().await == redis::Value::Int(0)).await;
    guard.release().await.unwrap();
}

/// A restarted server has lost the lock: the holder learns of it, and everything works again.
/// `renewal.rs` tests how soon it learns of it.
#[tokio::test]
async fn a_restart_loses_the_lock_and_not_the_client() {
    let Some(mut server) = RedisServer::start() else { return };
    let client = Client::builder()
        .endpoint(server.url())
        .watchdog_timeout(Duration::from_secs(3))
        .retry_delay(Duration::from_millis(50), Duration::from_millis(100))
        .connect()
        .await
        .unwrap();
    let guard = client.lock("stock").acquire().await.unwrap();
    server.crash();
    server.restart();
    guard.lost().await;
    let again = client.lock("stock").acquire().await.unwrap();
    assert!(guard.release().await.is_err());
    assert!(again.is_valid());
    again.release().await.unwrap();
}

/// The subscription ends with the server's connection while a waiter sleeps for the 30 s of the
/// lease.
#[tokio::test]
async fn a_waiter_looks_again_after_its_subscription_was_lost() {
    let Some(server) = RedisServer::start() else { return };
    let holder = impatient(&server.url()).await;
    let waiter = impatient(&server.url()).await;
    let guard = holder.lock("stock").acquire().await.unwrap();
    let waiting = task(async move { waiter.lock("stock").try_acquire_for(LONG).await });
    let channel = "redisson_lock__channel:{stock}";
    eventually("it listens", async || {
        let listeners = server.command(&["PUBSUB", "NUMSUB", channel]).await;
        matches!(listeners, redis::Value::Array(reply) if reply[1] == redis::Value::Int(1))
    })
    .await;
    // A deletion publishes no message.
    server.command(&["DEL", "stock"]).await;
    server.command(&["CLIENT", "KILL", "TYPE", "pubsub"]).await;
    waiting.await.unwrap().unwrap().expect("found free on the new subscription").release().await.unwrap();
    drop(guard);
}

/// The reply is lost, and so is the evidence of the grant: the counter of the tokens was evicted,
/// or the user may not read the lock. The grant is released, and the caller gets another.
/// Regression: the question was repeated for a whole lease, in which the lock stayed taken, and the
/// caller got an error.
#[tokio::test]
async fn questions_that_are_refused_for_good_were_repeated_for_a_whole_lease() {
    let Some(server) = RedisServer::start() else { return };
    let lease = Duration::from_secs(600);
    for rights in ["+@all", "+@all -hget"] {
        server.command(&["ACL", "SETUSER", "clerk", "reset", "on", ">secret", "~*", "&*"]).await;
        let rights: Vec<_> = rights.split(' ').collect();
        server.command(&[&["ACL", "SETUSER", "clerk"], &rights[..]].concat()).await;
        let proxy = Proxy::to(&server).await;
        let client = impatient(&proxy.url().replace("redis://", "redis://clerk:secret@")).await;
        let lock = client.fenced_lock("stock");
        // The server knows the scripts from here on.
        lock.acquire().await.unwrap().release().await.unwrap();
        proxy.replies(Flow::Swallow);
        let asking = task({
            let lock = lock.clone();
            async move { lock.acquire().lease(lease).await }
        });
        eventually("it is granted", async || exists(&server).await).await;
        server.command(&["DEL", "redisson_lock_token:{stock}"]).await;
        proxy.replies(Flow::Pass);
        let guard = crate::support::soon("it is granted anew", asking).await.unwrap().unwrap();
        assert_eq!(guard.token(), 1, "by a counter that begins anew");
        assert_eq!(
            server.command(&["HGET", "stock", guard.owner()]).await,
            redis::Value::BulkString(b"1".into())
        );
        guard.release().await.unwrap();
        assert!(!exists(&server).await);
        client.close().await.unwrap_or_else(|unfinished| panic!("{unfinished} with {rights:?}"));
    }
}
