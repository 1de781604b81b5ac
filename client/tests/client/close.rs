//! The end of a client, and the remains of its callers, on a real server.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use lockstorm_client::{Client, ErrorKind, Redlock};

use crate::support::{Attempts, Flow, Proxy, RedisServer, eventually, soon, task};

async fn int(server: &RedisServer, command: &[&str]) -> i64 {
    redis::from_redis_value(server.command(command).await).expect("an integer")
}

/// All at the same time: a guard in use, a dropped one, a nested one, two waiters of a plain lock,
/// one of them with a limit, a waiter in a queue, and one that has left it.
#[tokio::test]
async fn a_closed_client_holds_nothing_and_waits_for_nothing() {
    let Some(server) = RedisServer::start() else { return };
    let client = Client::connect(&server.url()).await.unwrap();
    let other = Client::connect(&server.url()).await.unwrap();
    let in_hand = client.lock("in hand").acquire().await.unwrap();
    let owner = lockstorm_client::OwnerId::new(1);
    let outer = client.lock("nested").acquire().owner(owner).await.unwrap();
    let inner = client.lock("nested").acquire().owner(owner).await.unwrap();
    drop(client.fenced_lock("dropped").acquire().await.unwrap());
    let taken =
        [other.lock("plain").acquire().await.unwrap(), other.fair_lock("fair").acquire().await.unwrap()];
    let queue = "redisson_lock_queue:{fair}";
    let mut waiting = Vec::new();
    for lock in [client.lock("plain"), client.fair_lock("fair"), client.fair_lock("fair")] {
        waiting.push(task(async move { lock.acquire().await }));
    }
    let lock = client.lock("plain");
    let with_a_limit = task(async move { lock.try_acquire_for(Duration::from_secs(3600)).await });
    eventually("both queue", async || int(&server, &["LLEN", queue]).await == 2).await;
    waiting.pop().unwrap().abort();

    client.close().await.unwrap();
    assert_eq!(int(&server, &["EXISTS", "in hand", "nested", "dropped", queue]).await, 0);
    assert!(taken.iter().all(lockstorm_client::Guard::is_valid));
    for waiting in waiting {
        let error = soon("it is told", waiting).await.unwrap().unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Closed), "{error}");
    }
    let error = soon("it is told", with_a_limit).await.unwrap().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Closed), "its limit is not over: {error}");
    for guard in [in_hand, outer, inner] {
        assert!(!guard.is_valid());
        let error = guard.release().await.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::NotHeld { .. }), "{error}");
    }
    for late in [client.lock("late"), client.fair_lock("late")] {
        let error = late.try_acquire().await.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Closed) && error.is_definite(), "{error}");
        assert_eq!(error.to_string(), "the client is closed");
    }
    client.close().await.unwrap();
    other.close().await.unwrap();
    let connected = async || {
        let list: String = redis::from_redis_value(server.command(&["CLIENT", "LIST"]).await).unwrap();
        list.lines().count()
    };
    eventually("only the one that asks is left", async || connected().await == 1).await;
}

/// Regression: a `main` drops its guard last, and the runtime ends with the release undone: the key
/// stayed for 30 s.
#[test]
fn a_guard_dropped_at_the_end_of_main_is_released_by_close() {
    let Some(server) = RedisServer::start() else { return };
    let main = |closes: bool| {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
            let client = Client::connect(&server.url()).await.unwrap();
            drop(client.lock("stock").acquire().await.unwrap());
            if closes {
                client.close().await.unwrap();
            }
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let left = runtime.block_on(int(&server, &["EXISTS", "stock"]));
        runtime.block_on(int(&server, &["DEL", "stock"]));
        left
    };
    assert_eq!(main(false), 1, "without close no task is left to release it");
    assert_eq!(main(true), 0);
}

/// A server that does not answer delays `close` no longer than the limit, and the error names the
/// unfinished locks.
#[tokio::test]
async fn close_ends_in_time_and_says_what_is_left() {
    let Some(server) = RedisServer::start() else { return };
    let proxy = Proxy::to(&server).await;
    let limit = Duration::from_millis(500);
    let client = Client::builder().endpoint(proxy.url()).close_timeout(limit).connect().await.unwrap();
    let guard = client.lock("stock").acquire().await.unwrap();
    proxy.requests(Flow::Hold);
    #[expect(clippy::disallowed_methods, reason = "a limit in real time")]
    let begun = Instant::now();
    let unfinished = client.close().await.unwrap_err();
    // The margin is for a busy machine; a response timeout alone is 3 s.
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    assert_eq!((unfinished.locks.as_slice(), unfinished.others), (["stock".to_owned()].as_slice(), 0));
    assert_eq!(
        unfinished.to_string(),
        "the client is closed, and 1 lock may still be held, with 0 other calls without an outcome: stock"
    );
    assert!(!guard.is_valid());
}

/// Places in a queue that could not be given back are counted one by one, however few scripts would
/// do it.
#[tokio::test]
async fn close_counts_the_places_that_are_left_in_a_queue() {
    let Some(server) = RedisServer::start() else { return };
    let proxy = Proxy::to(&server).await;
    let holder = Client::connect(&server.url()).await.unwrap();
    let guard = holder.fair_lock("stock").acquire().await.unwrap();
    let limit = Duration::from_millis(300);
    let client = Client::builder().endpoint(proxy.url()).close_timeout(limit).connect().await.unwrap();
    let waiters: Vec<_> = (0..3)
        .map(|_| {
            let client = client.clone();
            task(async move { client.fair_lock("stock").acquire().await.map(drop) })
        })
        .collect();
    let queued = ["LLEN", "redisson_lock_queue:{stock}"];
    eventually("all are in the queue", async || int(&server, &queued).await == 3).await;
    proxy.requests(Flow::Hold);
    waiters.iter().for_each(tokio::task::JoinHandle::abort);
    for waiter in waiters {
        assert!(waiter.await.unwrap_err().is_cancelled());
    }
    let unfinished = client.close().await.unwrap_err();
    assert_eq!((unfinished.locks.len(), unfinished.others), (0, 3), "{unfinished}");
    guard.release().await.unwrap();
}

/// Closing the first client of a Redlock releases it.
#[tokio::test]
async fn closing_the_first_client_frees_a_redlock() {
    let servers: Option<Vec<_>> = (0..3).map(|_| RedisServer::start()).collect();
    let Some(servers) = servers else { return };
    let clients: Vec<_> =
        servers.iter().map(|server| Client::builder().endpoint(server.url()).build().unwrap()).collect();
    let lock = Redlock::builder(clients.iter().cloned())
        .node_timeout(Duration::from_secs(2))
        .build("stock")
        .unwrap();
    let guard = lock.acquire().await.unwrap();
    for client in &clients {
        client.close().await.unwrap();
    }
    assert!(!guard.is_valid());
    for server in &servers {
        assert_eq!(int(server, &["EXISTS", "stock"]).await, 0);
    }
    let error = lock.acquire().await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Closed), "{error}");
}

fn alive_tasks() -> usize {
    tokio::runtime::Handle::current().metrics().num_alive_tasks()
}

/// Tens of thousands of acquisitions, looks at a latch and requests to a rate limiter are begun and
/// dropped. Those without a sent request end as soon as their caller is gone. The others are
/// followed until their outcome is known, 1,024 at a time. The server is silent during the test.
#[tokio::test]
async fn callers_that_are_gone_leave_bounded_work() {
    const BOUND: usize = 1024;
    let Some(server) = RedisServer::start() else { return };
    let proxy = Proxy::to(&server).await;
    let attempts = Arc::new(Attempts::default());
    let client = Client::builder().endpoint(proxy.url()).observer(attempts.clone()).connect().await.unwrap();
    client.lock("stock").acquire().await.unwrap().release().await.unwrap();
    proxy.replies(Flow::Hold);
    let before = alive_tasks();
    let mut looked_at = 1;
    for lock in [client.lock("stock"), client.fair_lock("queue")] {
        for _ in 0..10_000 {
            assert!(lock.acquire().into_future().now_or_never().is_none());
        }
        // These are polled before their caller is gone.
        let begun: Vec<_> = (0..10_000)
            .map(|_| {
                let mut asking = lock.acquire().into_future();
                assert!((&mut asking).now_or_never().is_none());
                asking
            })
            .collect();
        looked_at += begun.len();
        eventually("all are looked at", async || attempts.count() == looked_at).await;
        drop(begun);
    }
    let (latch, limiter) = (client.latch("latch"), client.rate_limiter("limiter"));
    for _ in 0..10_000 {
        assert!(latch.wait().now_or_never().is_none() && limiter.acquire(1).now_or_never().is_none());
    }
    let begun: Vec<_> = (0..10_000)
        .map(|_| {
            let (mut waiting, mut asking) = (Box::pin(latch.wait()), Box::pin(limiter.acquire(1)));
            assert!((&mut waiting).now_or_never().is_none() && (&mut asking).now_or_never().is_none());
            (waiting, asking)
        })
        .collect();
    // Lets their tasks begin; some sixty run between two turns of this one.
    for _ in 0..2_000 {
        tokio::task::yield_now().await;
    }
    assert!(alive_tasks() - before > 10 * BOUND, "only {} have begun", alive_tasks() - before);
    drop(begun);
    eventually("what has sent nothing ends", async || alive_tasks() - before <= BOUND).await;
    proxy.replies(Flow::Pass);
    eventually("all end", async || alive_tasks() <= before + 8).await;
    eventually("nothing is left", async || {
        int(&server, &["EXISTS", "stock", "queue", "redisson_lock_queue:{queue}"]).await == 0
    })
    .await;
    client.lock("stock").try_acquire().await.unwrap().expect("free").release().await.unwrap();
}

/// One of three nodes swallows its requests. A Redlock continues with the other two, and does not
/// pile up requests for the third: it is asked again only with fewer than 1,024 unanswered
/// requests.
#[tokio::test]
async fn a_node_that_hangs_does_not_pile_up_tasks() {
    const BOUND: usize = 1024;
    let servers: Option<Vec<_>> = (0..3).map(|_| RedisServer::start()).collect();
    let Some(servers) = servers else { return };
    let proxy = Proxy::to(&servers[2]).await;
    let urls = [servers[0].url(), servers[1].url(), proxy.url()];
    let clients = urls.iter().map(|url| Client::builder().endpoint(url).build().unwrap());
    let lock = Redlock::builder(clients).node_timeout(Duration::from_secs(60)).build("stock").unwrap();
    lock.acquire().await.unwrap().release().await.unwrap();
    proxy.requests(Flow::Swallow);
    let before = alive_tasks();
    for _ in 0..3_000 {
        let guard = soon("two are a majority", lock.acquire().lease(Duration::from_secs(30)).into_future());
        guard.await.unwrap().release().await.unwrap();
    }
    // A task of the first release may have counted in `before` and ended since.
    let more = alive_tasks().saturating_sub(before);
    assert!(more <= BOUND + 50, "{more} tasks");
}
