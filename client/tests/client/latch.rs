//! Count-down latches: their opening, their waiters, and lost replies. On the simulator and on a
//! real server.

use std::time::Duration;

use futures_util::future::{FutureExt, join_all};
use lockstorm_client::{Client, ErrorKind, Latch};
use redis::Value;

use crate::support::{
    Flow, Proxy, RedisServer, command, eventually, impatient, listeners, on_each_server, soon, task,
};

const SHORT: Duration = Duration::from_millis(50);
const CHANNEL: &str = "redisson_countdownlatch__channel__{start}";

async fn latch(url: &str) -> Latch {
    Client::connect(url).await.unwrap().latch("start")
}

#[tokio::test]
async fn it_is_set_once_and_counted_down() {
    on_each_server(async |url| {
        let (mine, other) = (latch(url).await, latch(url).await);
        assert_eq!(mine.count().await.unwrap(), 0, "there is none");
        assert_eq!(mine.count_down().await.unwrap(), None);
        mine.wait().await.unwrap();
        assert!(!mine.delete().await.unwrap());

        assert!(mine.try_set(2).await.unwrap());
        assert!(!other.try_set(5).await.unwrap(), "it is closed already");
        assert_eq!(other.count().await.unwrap(), 2);
        assert!(!other.wait_for(SHORT).await.unwrap());
        assert_eq!(mine.count_down().await.unwrap(), Some(1));
        assert!(!other.wait_for(Duration::ZERO).await.unwrap());
        assert_eq!(other.count_down().await.unwrap(), Some(0));
        assert!(mine.wait_for(Duration::ZERO).await.unwrap());
        assert_eq!(mine.count_down().await.unwrap(), None, "it is open, and stays so");
        assert_eq!(command(url, "EXISTS start").await, Value::Int(0));

        // Redisson leaves a count of zero: it is open, and a count-down uses it up.
        command(url, "SET start 0").await;
        mine.wait().await.unwrap();
        assert_eq!(mine.count_down().await.unwrap(), None);
        assert!(mine.try_set(1).await.unwrap());
        assert!(mine.delete().await.unwrap());
        assert_eq!(mine.count().await.unwrap(), 0);
    })
    .await;
}

#[tokio::test]
async fn it_opens_for_all_who_wait() {
    on_each_server(async |url| {
        let mine = latch(url).await;
        mine.try_set(2).await.unwrap();
        let mut waiting = Vec::new();
        for _ in 0..2 {
            let latch = latch(url).await;
            for _ in 0..3 {
                let latch = latch.clone();
                waiting.push(task(async move { latch.wait().await.unwrap() }));
            }
        }
        listeners(url, CHANNEL, 2).await;
        mine.count_down().await.unwrap();
        assert!(!mine.wait_for(SHORT).await.unwrap());
        assert!(waiting.iter().all(|waiter| !waiter.is_finished()), "it is counted down by one of two");
        mine.count_down().await.unwrap();
        soon("all go on", join_all(waiting)).await;
        listeners(url, CHANNEL, 0).await;
    })
    .await;
}

/// The keys and messages that Redisson's processes read and write: a number without a TTL, `1` for
/// a count that is set, `0` for an opening. Redisson publishes `1` for a deletion, and its own
/// waiters then keep waiting.
#[tokio::test]
async fn keys_and_messages_are_those_of_redisson() {
    on_each_server(async |url| {
        let mut listener = redis::Client::open(url).unwrap().get_async_pubsub().await.unwrap();
        listener.subscribe(CHANNEL).await.unwrap();
        let mut messages = listener.on_message();
        let mut published = async || -> String {
            let message = soon("it is published", futures_util::StreamExt::next(&mut messages)).await;
            message.expect("the server is there").get_payload().unwrap()
        };
        let latch = latch(url).await;
        // Neither of these publishes, so the next message is that of the count.
        assert_eq!(latch.count_down().await.unwrap(), None);
        assert!(!latch.delete().await.unwrap());
        assert!(latch.try_set(2).await.unwrap());
        assert_eq!(published().await, "1");
        assert_eq!(command(url, "GET start").await, Value::BulkString(b"2".into()));
        assert_eq!(command(url, "PTTL start").await, Value::Int(-1));
        assert!(!latch.try_set(2).await.unwrap());
        latch.count_down().await.unwrap();
        latch.count_down().await.unwrap();
        assert_eq!(published().await, "0");
        latch.try_set(1).await.unwrap();
        assert_eq!(published().await, "1");
        latch.delete().await.unwrap();
        assert_eq!(published().await, "0");
    })
    .await;
}

/// H-28: Redisson's waiters keep waiting when the latch is deleted, has expired, or is gone with
/// FLUSHALL.
#[tokio::test]
async fn a_latch_that_vanishes_lets_its_waiters_go() {
    on_each_server(async |url| {
        // A message, Redisson's or ours, releases the waiter immediately. Without one, the waiter
        // finds out at its next look.
        let patient = latch(url).await;
        for deletion in [["DEL start", &format!("PUBLISH {CHANNEL} 1")].as_slice(), &[]] {
            patient.try_set(1).await.unwrap();
            let waiting = task({
                let patient = patient.clone();
                async move { patient.wait().await.unwrap() }
            });
            listeners(url, CHANNEL, 1).await;
            for words in deletion {
                command(url, words).await;
            }
            if deletion.is_empty() {
                assert!(latch(url).await.delete().await.unwrap());
            }
            soon("the waiter goes on", waiting).await.unwrap();
        }
        let looks_often = Client::builder().endpoint(url).watchdog_timeout(Duration::from_millis(200));
        let often = looks_often.connect().await.unwrap().latch("start");
        for gone in ["FLUSHALL", "PEXPIRE start 1"] {
            often.try_set(1).await.unwrap();
            let waiting = task({
                let often = often.clone();
                async move { often.wait().await.unwrap() }
            });
            listeners(url, CHANNEL, 1).await;
            assert!(!waiting.is_finished());
            command(url, gone).await;
            soon(gone, waiting).await.unwrap();
        }
    })
    .await;
}

#[tokio::test]
async fn what_cannot_be_asked_is_refused_before_anything_is_sent() {
    let client = Client::builder().endpoint("redis://127.0.0.1:1").build().unwrap();
    for error in [
        client.latch("start").try_set(0).await.unwrap_err(),
        client.latch("").try_set(1).await.unwrap_err(),
        client.latch("").count_down().await.unwrap_err(),
        client.latch("").wait().await.unwrap_err(),
    ] {
        assert!(matches!(error.kind(), ErrorKind::Config(_)) && error.is_definite(), "{error}");
    }
}

/// M3: the server executes a count-down, and its reply never comes; the repeat does not count
/// again. Regression: it opened the latch early.
#[tokio::test]
async fn a_count_down_whose_reply_is_lost_counts_once() {
    let Some(server) = RedisServer::start() else { return };
    let proxy = Proxy::to(&server).await;
    let mine = impatient(&proxy.url()).await.latch("start");
    let direct = latch(&server.url()).await;
    // The server knows the scripts from here on, so that each change is one request.
    direct.try_set(1).await.unwrap();
    direct.count_down().await.unwrap();
    mine.count().await.unwrap();

    proxy.replies(Flow::Swallow);
    let setting = task({
        let mine = mine.clone();
        async move { assert!(mine.try_set(2).await.unwrap(), "it was this one") }
    });
    eventually("it is set", async || direct.count().await.unwrap() == 2).await;
    proxy.replies(Flow::Pass);
    soon("the client finds out", setting).await.unwrap();

    proxy.replies(Flow::Swallow);
    let counting = task(async move { assert_eq!(mine.count_down().await.unwrap(), Some(1)) });
    eventually("it is counted", async || direct.count().await.unwrap() == 1).await;
    proxy.replies(Flow::Pass);
    soon("the client finds out", counting).await.unwrap();
    assert_eq!(direct.count().await.unwrap(), 1);
}

/// The caller is gone once its request has begun: it still counts, and once.
#[tokio::test]
async fn a_dropped_count_down_is_seen_through() {
    on_each_server(async |url| {
        let latch = latch(url).await;
        latch.try_set(3).await.unwrap();
        assert!(latch.count_down().now_or_never().is_none());
        eventually("it is counted", async || latch.count().await.unwrap() == 2).await;
        assert_eq!(latch.count_down().await.unwrap(), Some(1));
    })
    .await;
}
