//! The queue of the fair lock with many waiters and with long waits, on a real server.

use std::time::{Duration, Instant};

use lockstorm_client::{Client, OwnerId};
use lockstorm_sim::TestServer;

use crate::support::{Flow, Proxy, RedisServer, eventually, soon, task};

const QUEUE: &str = "redisson_lock_queue:{stock}";
const DEADLINES: &str = "redisson_lock_timeout:{stock}";

fn now() -> Instant {
    #[expect(clippy::disallowed_methods, reason = "figures and limits in real time")]
    Instant::now()
}

async fn int(server: &RedisServer, command: &[&str]) -> i64 {
    redis::from_redis_value(server.command(command).await).expect("an integer")
}

async fn queued(server: &RedisServer) -> i64 {
    int(server, &["LLEN", QUEUE]).await
}

fn builder(url: &str) -> lockstorm_client::Builder {
    Client::builder()
        .endpoint(url)
        .response_timeout(Duration::from_millis(500))
        .retry_delay(Duration::from_millis(50), Duration::from_millis(100))
}

/// Three waiters count as alive for 1 s each after the lease of 900 ms, and the holder works for
/// six seconds. No waiter loses its place to the clock, and a newcomer removes none of them.
#[tokio::test]
async fn a_live_waiter_keeps_its_place_beyond_lease_and_wait() {
    let Some(server) = RedisServer::start() else { return };
    let client = builder(&server.url())
        .watchdog_timeout(Duration::from_millis(900))
        .fair_wait_timeout(Duration::from_secs(1))
        .connect()
        .await
        .unwrap();
    let lock = client.fair_lock("stock");
    let holder = lock.acquire().await.unwrap();
    let mut waiters = Vec::new();
    let granted = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    for number in 1..=3 {
        let (lock, granted) = (lock.clone(), granted.clone());
        waiters.push(task(async move {
            let guard = lock.acquire().owner(OwnerId::new(number)).await.unwrap();
            granted.lock().unwrap().push(number);
            guard.release().await.unwrap();
        }));
        eventually("it queues", async || queued(&server).await == number).await;
    }
    let order = server.command(&["LRANGE", QUEUE, "0", "-1"]).await;
    let begun = now();
    while begun.elapsed() < Duration::from_secs(6) {
        // A newcomer's script removes dead waiters.
        assert!(lock.try_acquire().await.unwrap().is_none());
        assert_eq!(server.command(&["LRANGE", QUEUE, "0", "-1"]).await, order, "after {:?}", begun.elapsed());
    }
    holder.release().await.unwrap();
    for waiter in waiters {
        soon("each in turn", waiter).await.unwrap();
    }
    assert_eq!(*granted.lock().unwrap(), [1, 2, 3]);
}

/// Fills a queue with one client's waiters, and drops all of them, or lets their time end after
/// `wait`. Returns the time until all have left it.
async fn all_leave(server: &RedisServer, waiters: usize, wait: Option<Duration>) -> Duration {
    let client = Client::connect(&server.url()).await.unwrap();
    let lock = client.fair_lock("stock");
    let holder = lock.acquire().await.unwrap();
    let mut waiting = tokio::task::JoinSet::new();
    let (dropped, wait) = (wait.is_none(), wait.unwrap_or(Duration::from_secs(60)));
    let begun = now();
    for _ in 0..waiters {
        let lock = lock.clone();
        waiting.spawn(async move { (now() + wait, lock.try_acquire_for(wait).await) });
    }
    while queued(server).await < i64::try_from(waiters).unwrap() {
        assert!(begun.elapsed() < wait, "only {} have queued", queued(server).await);
        tokio::task::yield_now().await;
    }
    println!("{waiters} queued in {:?}", begun.elapsed());
    let dropped_at = now();
    if dropped {
        waiting.abort_all();
    }
    while queued(server).await == i64::try_from(waiters).unwrap() {
        tokio::task::yield_now().await;
    }
    while queued(server).await > 0 {
        tokio::task::yield_now().await;
    }
    let empty_at = now();
    assert!(holder.is_valid());
    holder.release().await.unwrap();
    assert_eq!(int(server, &["ZCARD", DEADLINES]).await, 0);
    let begun = now();
    lock.acquire().await.unwrap().release().await.unwrap();
    let next = begun.elapsed();
    assert!(next < Duration::from_secs(2), "the lock is free, and yet it took {next:?}");
    // The waiter that began last is the last whose time ends.
    let mut gone_at = dropped_at;
    while let Some(outcome) = waiting.join_next().await {
        match outcome {
            Ok((end, outcome)) => {
                assert!(outcome.expect("no error").is_none(), "the lock was held");
                gone_at = gone_at.max(end);
            }
            Err(error) => assert!(dropped && error.is_cancelled(), "{error}"),
        }
    }
    let took = empty_at.saturating_duration_since(gone_at);
    println!("{waiters} left in {took:?}, the next acquisition took {next:?}");
    took
}

/// 4,000 waiters leave the queue within 2 s, the holder keeps the lock, and the next caller is
/// granted it. Regression: each that left walked the queue, which took 87 s.
#[tokio::test]
async fn four_thousand_dropped_waiters_leave_within_two_seconds() {
    let Some(server) = RedisServer::start() else { return };
    let took = all_leave(&server, 4_000, None).await;
    assert!(took < Duration::from_secs(2), "{took:?}");
}

/// The same for waiters whose time ends together, each of which gets its result.
#[tokio::test]
async fn four_thousand_waiters_whose_time_is_up_leave_within_two_seconds() {
    let Some(server) = RedisServer::start() else { return };
    let took = all_leave(&server, 4_000, Some(Duration::from_secs(15))).await;
    assert!(took < Duration::from_secs(2), "{took:?}");
}

/// `cargo test -p lockstorm-client --test client -- fair_queue:: --ignored --nocapture` prints the
/// figures of BENCHMARKS.md.
#[tokio::test]
#[ignore = "a load of a minute and a half, by real time"]
async fn how_long_it_takes_until_all_have_left() {
    let Some(server) = RedisServer::start() else { return };
    for (waiters, wait) in [(4_000, None), (10_000, None), (4_000, Some(Duration::from_secs(60)))] {
        all_leave(&server, waiters, wait).await;
    }
}

/// 500 waiters that leave together, dropped or at the end of their time, need a few scripts, not
/// one each, and all of them leave.
async fn leave_together(url: &str, dropped: bool) {
    let mut redis = redis::Client::open(url).unwrap().get_multiplexed_async_connection().await.unwrap();
    let client = Client::connect(url).await.unwrap();
    let lock = client.fair_lock("stock");
    let holder = lock.acquire().await.unwrap();
    let mut waiting = tokio::task::JoinSet::new();
    // Longer than all of them take to queue.
    let wait = Duration::from_secs(if dropped { 60 } else { 5 });
    for _ in 0..500 {
        let lock = lock.clone();
        waiting.spawn(async move { lock.try_acquire_for(wait).await });
    }
    let counted = async |command: &str, key: &str| {
        redis::cmd(command).arg(key).query_async::<i64>(&mut redis.clone()).await.unwrap()
    };
    eventually("all queue", async || counted("LLEN", QUEUE).await == 500).await;
    redis::cmd("CONFIG").arg("RESETSTAT").exec_async(&mut redis.clone()).await.unwrap();
    if dropped {
        waiting.abort_all();
    }
    eventually("all leave", async || counted("LLEN", QUEUE).await == 0).await;
    assert_eq!(counted("ZCARD", DEADLINES).await, 0);
    let stats: String = redis::cmd("INFO").arg("commandstats").query_async(&mut redis).await.unwrap();
    // Each script reads the queue once.
    let scripts =
        stats.lines().find_map(|line| line.strip_prefix("cmdstat_lrange:calls=")).expect("they leave");
    let scripts: usize = scripts.split(',').next().unwrap().parse().unwrap();
    // 500 in scripts of 200 make three; dropped waiters come in pieces, so a few more.
    assert!(scripts <= 50, "{scripts} scripts");
    holder.release().await.unwrap();
}

#[tokio::test]
async fn waiters_that_leave_together_share_scripts() {
    let Some(server) = RedisServer::start() else { return };
    for dropped in [true, false] {
        leave_together(&server.url(), dropped).await;
    }
}

#[tokio::test]
async fn waiters_that_leave_together_share_scripts_on_the_simulator() {
    for dropped in [true, false] {
        leave_together(&TestServer::start().await.unwrap().url(), dropped).await;
    }
}

/// The server does not answer while the waiter leaves, for longer than all repeats of one call. The
/// place is given back when it answers again, and does not keep all others out for its 300 s.
#[tokio::test]
async fn a_failed_departure_is_repeated() {
    let Some(server) = RedisServer::start() else { return };
    let proxy = Proxy::to(&server).await;
    let client = builder(&proxy.url()).retry_attempts(0).connect().await.unwrap();
    let other = Client::connect(&server.url()).await.unwrap();
    let holder = other.fair_lock("stock").acquire().await.unwrap();
    let lock = client.fair_lock("stock");
    let waiting = task(async move { lock.acquire().await });
    eventually("it queues", async || queued(&server).await == 1).await;
    proxy.requests(Flow::Swallow);
    waiting.abort();
    #[expect(clippy::disallowed_methods, reason = "several response time-outs, in real time")]
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(queued(&server).await, 1);
    proxy.requests(Flow::Pass);
    eventually("it leaves", async || queued(&server).await == 0).await;
    holder.release().await.unwrap();
}

/// An owner that gives up and asks again immediately is not removed by its earlier request: it
/// keeps its place, or takes a new one, and is granted the lock.
#[tokio::test]
async fn an_owner_that_asks_again_is_not_taken_out_by_its_own_departure() {
    let Some(server) = RedisServer::start() else { return };
    let client = builder(&server.url()).connect().await.unwrap();
    let lock = client.fair_lock("stock");
    let holder = lock.acquire().await.unwrap();
    let waiter = |owner| {
        let lock = lock.clone();
        task(async move { lock.acquire().owner(OwnerId::new(owner)).await })
    };
    for _ in 0..50 {
        let gives_up = waiter(1);
        eventually("it queues", async || queued(&server).await == 1).await;
        gives_up.abort();
    }
    let waiting = waiter(1);
    eventually("it queues", async || queued(&server).await == 1).await;
    // Departures from one queue run one script after the other: by the time that this owner has
    // left, the first owner's departure has been executed.
    let last = waiter(2);
    eventually("it queues behind", async || queued(&server).await == 2).await;
    last.abort();
    let place = format!("{}:1", client.id());
    let places = async || -> Vec<String> {
        redis::from_redis_value(server.command(&["LRANGE", QUEUE, "0", "-1"]).await).expect("a list")
    };
    eventually("it leaves", async || queued(&server).await == 1).await;
    assert_eq!(places().await, [place]);
    holder.release().await.unwrap();
    soon("it is granted", waiting).await.unwrap().unwrap().release().await.unwrap();
}
