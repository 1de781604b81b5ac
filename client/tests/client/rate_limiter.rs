//! Rate limiters: the permits of a window, the clock that counts, and lost replies. On the
//! simulator and on a real server.

use std::time::Duration;

use futures_util::future::join_all;
use lockstorm_client::{Client, ErrorKind, RateLimiter, RateMode};
use redis::Value;

use crate::support::{Flow, Proxy, RedisServer, command, eventually, impatient, on_each_server, soon, task};

/// Longer than any test here on a busy machine.
const DAY: Duration = Duration::from_secs(24 * 3600);
const WINDOW: Duration = Duration::from_millis(500);
const SHORT: Duration = Duration::from_millis(50);

async fn limiter(url: &str) -> RateLimiter {
    Client::connect(url).await.unwrap().rate_limiter("calls")
}

#[tokio::test]
async fn permits_are_counted_for_all_clients_together() {
    on_each_server(async |url| {
        let (mine, other) = (limiter(url).await, limiter(url).await);
        assert_eq!(mine.config().await.unwrap(), None);
        for error in [mine.try_acquire(1).await.unwrap_err(), mine.available().await.unwrap_err()] {
            assert!(matches!(error.kind(), ErrorKind::NoRate { .. }) && error.is_definite(), "{error}");
        }
        assert!(mine.try_set_rate(RateMode::Overall, 5, DAY).await.unwrap());
        assert!(!other.try_set_rate(RateMode::PerClient, 7, DAY).await.unwrap(), "there is one");
        let config = other.config().await.unwrap().expect("it is set");
        assert_eq!((config.mode, config.rate, config.interval), (RateMode::Overall, 5, DAY));

        assert!(mine.try_acquire(3).await.unwrap());
        assert_eq!(other.available().await.unwrap(), 2);
        assert!(!other.try_acquire(3).await.unwrap(), "all or none");
        assert!(!other.try_acquire_for(3, SHORT).await.unwrap());
        for _ in 0..2 {
            assert!(other.try_acquire(1).await.unwrap());
        }
        assert_eq!(mine.available().await.unwrap(), 0);
        let error = mine.acquire(6).await.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::OverRate { permits: 6, .. }), "{error}");

        // Earlier grants still count under another rate, lower or higher.
        for (rate, left) in [(4, 0), (8, 3)] {
            mine.set_rate(RateMode::Overall, rate, DAY).await.unwrap();
            assert_eq!(other.available().await.unwrap(), left, "of {rate}");
        }
        // They also count when the number of permits is lost, which Redisson then takes as full.
        command(url, "DEL {calls}:value").await;
        assert_eq!(mine.available().await.unwrap(), 3);
    })
    .await;
}

#[tokio::test]
async fn each_client_has_the_whole_rate() {
    on_each_server(async |url| {
        let (mine, other) = (limiter(url).await, limiter(url).await);
        mine.set_rate(RateMode::PerClient, 2, DAY).await.unwrap();
        assert!(mine.try_acquire(2).await.unwrap());
        assert!(!mine.try_acquire(1).await.unwrap());
        assert!(other.try_acquire(1).await.unwrap());
        assert_eq!((mine.available().await.unwrap(), other.available().await.unwrap()), (0, 1));
    })
    .await;
}

/// Ten grants at a rate of three, by two clients: the tenth comes in the fourth window, and no
/// window has more than three.
#[tokio::test]
async fn no_window_has_more_than_the_rate() {
    on_each_server(async |url| {
        let (mine, other) = (limiter(url).await, limiter(url).await);
        mine.set_rate(RateMode::Overall, 3, WINDOW).await.unwrap();
        let waiting = (0..10).map(|n| {
            let limiter = if n % 2 == 0 { mine.clone() } else { other.clone() };
            task(async move {
                limiter.acquire(1).await.unwrap();
                #[expect(clippy::disallowed_methods, reason = "a test measures real time")]
                tokio::time::Instant::now()
            })
        });
        let granted = soon("all are granted", join_all(waiting)).await;
        let mut granted: Vec<_> = granted.into_iter().map(Result::unwrap).collect();
        granted.sort_unstable();
        // Each reply comes after its grant, and may come late: all together take at least three
        // windows.
        assert!(granted[9] - granted[0] > 3 * WINDOW - SHORT, "{:?}", granted[9] - granted[0]);
        assert!(mine.available().await.unwrap() < 3);
    })
    .await;
}

/// The keys that Redisson's processes read and write: four fields, a number, and grants by their
/// time.
#[tokio::test]
async fn keys_are_those_of_redisson() {
    on_each_server(async |url| {
        let text = |text: &str| Value::BulkString(text.into());
        let limiter = limiter(url).await;
        limiter.try_set_rate(RateMode::PerClient, 4, DAY).await.unwrap();
        let fields = command(url, "HMGET calls rate interval type keepAliveTime").await;
        assert_eq!(fields, Value::Array([text("4"), text("86400000"), text("1"), text("0")].into()));
        limiter.set_rate(RateMode::Overall, 3, DAY).await.unwrap();
        assert_eq!(command(url, "HGET calls type").await, text("0"));
        limiter.acquire(2).await.unwrap();
        assert_eq!(command(url, "GET {calls}:value").await, text("1"));

        // A recent grant of two by Redisson, and a grant that its window has left behind.
        let client = redis::Client::open(url).unwrap();
        let mut connection = client.get_multiplexed_async_connection().await.unwrap();
        let (now, _): (u64, u64) = redis::cmd("TIME").query_async(&mut connection).await.unwrap();
        command(url, "DEL {calls}:permits").await;
        for (age_s, permits) in [(1, 2_u8), (24 * 3600 + 60, 1)] {
            let member = [&[16][..], &[permits; 16], &[permits, 0, 0, 0]].concat();
            let mut grant = redis::cmd("ZADD");
            grant.arg("{calls}:permits").arg((now - age_s) * 1000).arg(member);
            assert_eq!(grant.query_async::<i64>(&mut connection).await.unwrap(), 1);
        }
        command(url, "SET {calls}:value 0").await;
        assert_eq!(limiter.available().await.unwrap(), 1);
        assert!(limiter.try_acquire(1).await.unwrap());
        assert!(!limiter.try_acquire(1).await.unwrap());
    })
    .await;
}

/// The server's clock was set back, or the clock of a Redisson client is ahead: a grant in the
/// future counts for one window.
#[tokio::test]
async fn a_grant_of_the_future_counts_from_now_on() {
    on_each_server(async |url| {
        let limiter = limiter(url).await;
        limiter.set_rate(RateMode::Overall, 1, WINDOW).await.unwrap();
        limiter.acquire(1).await.unwrap();
        let Value::Array(grants) = command(url, "ZRANGE {calls}:permits 0 -1").await else { panic!("one") };
        let [Value::BulkString(grant)] = grants.as_slice() else { panic!("one: {grants:?}") };
        assert_eq!((grant.len(), &grant[17..]), (21, &[1, 0, 0, 0][..]));
        let client = redis::Client::open(url).unwrap();
        let mut connection = client.get_multiplexed_async_connection().await.unwrap();
        let mut ahead = redis::cmd("ZADD");
        ahead.arg("{calls}:permits").arg("9999999999999").arg(grant);
        assert_eq!(ahead.query_async::<i64>(&mut connection).await.unwrap(), 0);
        assert!(!limiter.try_acquire(1).await.unwrap());
        soon("a window is over", limiter.acquire(1)).await.unwrap();
    })
    .await;
}

/// The keys with the permits and the grants of the only client that has taken any.
async fn keys_of_clients(url: &str) -> Vec<String> {
    let keys: Vec<String> = redis::from_redis_value(command(url, "KEYS {calls}:*:*").await).unwrap();
    assert_eq!(keys.len(), 2, "{keys:?}");
    keys
}

/// A limiter that Redisson made with a TTL keeps it, and the permits do not outlive it.
#[tokio::test]
async fn a_limiter_that_ends_by_itself_ends_whole() {
    on_each_server(async |url| {
        command(url, "HSET calls rate 2 interval 1000 type 0 keepAliveTime 300000").await;
        let limiter = limiter(url).await;
        assert!(limiter.try_acquire(1).await.unwrap());
        for key in ["calls", "{calls}:value", "{calls}:permits"] {
            let left = command(url, &format!("PTTL {key}")).await;
            assert!(matches!(left, Value::Int(200_000..=300_000)), "{key}: {left:?}");
        }
        // The keys of one client do not end sooner either, although the windows end long before.
        command(url, "DEL calls {calls}:value {calls}:permits").await;
        command(url, "HSET calls rate 2 interval 1000 type 1").await;
        command(url, "PEXPIRE calls 300000").await;
        assert!(limiter.try_acquire(1).await.unwrap());
        for key in keys_of_clients(url).await {
            let left = command(url, &format!("PTTL {key}")).await;
            assert!(matches!(left, Value::Int(200_000..=300_000)), "{key}: {left:?}");
            command(url, &format!("DEL {key}")).await;
        }
        limiter.set_rate(RateMode::Overall, 2, DAY).await.unwrap();
        assert!(limiter.try_acquire(1).await.unwrap());
        for key in ["calls", "{calls}:value", "{calls}:permits"] {
            assert_eq!(command(url, &format!("PTTL {key}")).await, Value::Int(-1), "{key}");
        }
        // The keys of one client end without it.
        limiter.set_rate(RateMode::PerClient, 2, Duration::from_secs(100)).await.unwrap();
        limiter.acquire(1).await.unwrap();
        for key in keys_of_clients(url).await {
            let left = command(url, &format!("PTTL {key}")).await;
            assert!(matches!(left, Value::Int(100_001..=200_000)), "{key}: {left:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn what_cannot_be_asked_is_refused_before_anything_is_sent() {
    let client = Client::builder().endpoint("redis://127.0.0.1:1").build().unwrap();
    let calls = client.rate_limiter("calls");
    for error in [
        calls.acquire(0).await.unwrap_err(),
        calls.set_rate(RateMode::Overall, 0, DAY).await.unwrap_err(),
        calls.set_rate(RateMode::Overall, u32::MAX, DAY).await.unwrap_err(),
        calls.try_set_rate(RateMode::Overall, 1, Duration::ZERO).await.unwrap_err(),
        client.rate_limiter("").acquire(1).await.unwrap_err(),
        client.rate_limiter("").config().await.unwrap_err(),
    ] {
        assert!(matches!(error.kind(), ErrorKind::Config(_)) && error.is_definite(), "{error}");
    }
    let error = calls.acquire(u32::MAX).await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::OverRate { .. }) && error.is_definite(), "{error}");
}

/// The permits are granted, and the reply never comes: the repeated request finds them, and takes
/// no others.
#[tokio::test]
async fn permits_whose_reply_is_lost_are_taken_once() {
    let Some(server) = RedisServer::start() else { return };
    let proxy = Proxy::to(&server).await;
    let mine = impatient(&proxy.url()).await.rate_limiter("calls");
    let direct = limiter(&server.url()).await;
    // The server knows the scripts from here on, so that each call is one request.
    direct.set_rate(RateMode::Overall, 5, DAY).await.unwrap();
    direct.acquire(1).await.unwrap();
    mine.available().await.unwrap();
    proxy.replies(Flow::Swallow);
    let asking = task(async move { mine.acquire(2).await.unwrap() });
    eventually("they are taken", async || direct.available().await.unwrap() == 2).await;
    proxy.replies(Flow::Pass);
    soon("the client finds out", asking).await.unwrap();
    assert_eq!(direct.available().await.unwrap(), 2);
}
