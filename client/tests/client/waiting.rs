//! Wake-ups of waiters, on a real server.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use lockstorm_client::{Client, ErrorKind, Event, EventKind, Observer, RateMode, Redlock, WokenBy};
use lockstorm_sim::TestServer;

use crate::support::{Flow, Proxy, RedisServer, command, eventually, on_each_server, soon, task};
use tokio_util::sync::CancellationToken;

const CHANNEL: &str = "redisson_lock__channel:{stock}";

#[derive(Default)]
struct Counts {
    attempts: Mutex<usize>,
    messages: Mutex<usize>,
    waiting: Mutex<usize>,
}

impl Observer for Counts {
    fn observe(&self, event: &Event<'_>) {
        let counter = match event.kind {
            EventKind::Attempt => &self.attempts,
            EventKind::Waiting { .. } => &self.waiting,
            EventKind::Woken { by: WokenBy::Message } => &self.messages,
            _ => return,
        };
        *counter.lock().unwrap() += 1;
    }
}

impl Counts {
    fn of(counter: &Mutex<usize>) -> usize {
        *counter.lock().unwrap()
    }
}

async fn listeners(server: &RedisServer) -> i64 {
    let reply = server.command(&["PUBSUB", "NUMSUB", CHANNEL]).await;
    let (_, count): (String, i64) = redis::from_redis_value(reply).unwrap();
    count
}

/// With a wait of zero the client asks once and does not subscribe.
#[tokio::test]
async fn a_caller_whose_time_is_over_does_not_wait() {
    let Some(server) = RedisServer::start() else { return };
    let counts = Arc::new(Counts::default());
    let client = Client::builder().endpoint(server.url()).observer(counts.clone()).connect().await.unwrap();
    let guard = client.lock("stock").acquire().await.unwrap();
    let before = Counts::of(&counts.attempts);
    assert!(client.lock("stock").try_acquire_for(Duration::ZERO).await.unwrap().is_none());
    assert_eq!(Counts::of(&counts.attempts) - before, 1);
    let stats = server.command(&["INFO", "commandstats"]).await;
    let stats: String = redis::from_redis_value(stats).unwrap();
    assert!(stats.contains("cmdstat_evalsha") && !stats.contains("subscribe"), "{stats}");
    guard.release().await.unwrap();
}

/// Ten waiters of one client share a subscription, and each release wakes one of them. Every waiter
/// asks once and finds the lock taken, once after subscribing, and once when it is woken.
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
    eventually("all wait", async || Counts::of(&counts.waiting) >= WAITERS).await;
    // One connection listens, whatever the number of waiters.
    assert_eq!(listeners(&server).await, 1);
    let before = Counts::of(&counts.attempts);
    guard.release().await.unwrap();
    for waiter in waiters {
        soon("each release wakes the next", waiter).await.unwrap();
    }
    let woken = Counts::of(&counts.attempts) - before;
    // Ten are granted, and a few are woken by a message that another waiter used first; waking all
    // each time would be 10 + 9 + ... + 1 = 55.
    assert!((WAITERS..3 * WAITERS).contains(&woken), "{woken} attempts for {WAITERS} grants");
    eventually("the last waiter unsubscribes", async || listeners(&server).await == 0).await;
}

/// The lock is freed between the first look and the subscription: no message will come for it, and
/// only the look after the subscription finds it. Repeated, because the test cannot choose the
/// moment.
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

fn connection(url: &str) -> redis::Client {
    redis::Client::open(url).unwrap()
}

async fn text(redis: &mut redis::aio::MultiplexedConnection, command: &str) -> String {
    let mut words = command.split(' ');
    let mut cmd = redis::cmd(words.next().unwrap());
    cmd.arg(words.collect::<Vec<_>>());
    cmd.query_async(redis).await.unwrap()
}

/// A user without the right to subscribe, like new users of Redis 7 by default: its waiters fail
/// with NOPERM. Regression: they made one connection after another (24,553 in 7.5 s) until the time
/// for a subscription was over.
async fn refused_subscription(url: &str) {
    let mut redis = connection(url).get_multiplexed_async_connection().await.unwrap();
    let all = "ACL SETUSER app on >secret ~* +@all resetchannels";
    assert_eq!(text(&mut redis, all).await, "OK");
    let holder = Client::connect(url).await.unwrap();
    let guards =
        [holder.lock("stock").acquire().await.unwrap(), holder.lock("other").acquire().await.unwrap()];
    let client = Client::connect(&url.replace("redis://", "redis://app:secret@")).await.unwrap();
    for lock in [client.lock("stock"), client.fair_lock("stock")] {
        let error = soon("it is told", lock.acquire().into_future()).await.unwrap_err();
        let ErrorKind::Server { code, .. } = error.kind() else { panic!("{error}") };
        assert_eq!((code.as_str(), error.is_definite(), error.is_transient()), ("NOPERM", true, false));
    }

    // The user may subscribe to one of two channels: only the other waiter is refused.
    let one = "ACL SETUSER app &redisson_lock__channel:{stock}";
    assert_eq!(text(&mut redis, one).await, "OK");
    let ask = |name: &str| {
        let lock = client.lock(name);
        task(async move { lock.acquire().await })
    };
    let (stock, other) = (ask("stock"), ask("other"));
    assert_eq!(code_of(soon("it is told", other).await.unwrap().unwrap_err()), "NOPERM");
    let [guard, _other] = guards;
    guard.release().await.unwrap();
    let guard = soon("the release wakes it", stock).await.unwrap().unwrap();

    // The right is removed during the wait: the server ends the subscribing connection.
    let stock = ask("stock");
    let listening = async || {
        let numsub = redis::cmd("PUBSUB").arg("NUMSUB").arg(CHANNEL).query_async(&mut redis.clone()).await;
        numsub.is_ok_and(|reply: (String, i64)| reply.1 == 1)
    };
    eventually("it listens", listening).await;
    assert_eq!(text(&mut redis, "ACL SETUSER app resetchannels").await, "OK");
    assert_eq!(code_of(soon("it is told", stock).await.unwrap().unwrap_err()), "NOPERM");
    // The user may not announce its release either.
    drop(guard);
    let info = text(&mut redis, "INFO stats").await;
    let made =
        info.lines().find_map(|line| line.strip_prefix("total_connections_received:")).expect("it counts");
    // This connection, two for each of the clients, and the replacements of the ended one.
    let made: usize = made.parse().unwrap();
    assert!(made < 15, "{made} connections");
}

fn code_of(error: lockstorm_client::Error) -> String {
    let ErrorKind::Server { code, .. } = error.kind() else { panic!("{error}") };
    code.clone()
}

#[tokio::test]
async fn a_refused_subscription_fails_the_acquisition() {
    let Some(server) = RedisServer::start() else { return };
    refused_subscription(&server.url()).await;
}

#[tokio::test]
async fn a_refused_subscription_fails_the_acquisition_on_the_simulator() {
    refused_subscription(&TestServer::start().await.unwrap().url()).await;
}

/// Any future may be dropped while it waits, for example by a token of tokio-util: it leaves its
/// place in the queue, and later grants go to others.
#[tokio::test]
async fn a_wait_that_is_cancelled_leaves_nothing_behind() {
    on_each_server(async |url| {
        let (holder, client) = (Client::connect(url).await.unwrap(), Client::connect(url).await.unwrap());
        let guard = holder.fair_lock("stock").acquire().await.unwrap();
        let queued = async || command(url, "LLEN redisson_lock_queue:{stock}").await;
        let token = CancellationToken::new();
        let (lock, of_task) = (client.fair_lock("stock"), token.clone());
        let waiting = task(async move { of_task.run_until_cancelled(lock.acquire().into_future()).await });
        eventually("it is in the queue", async || queued().await == redis::Value::Int(1)).await;
        token.cancel();
        assert!(soon("it is told", waiting).await.unwrap().is_none());
        eventually("it has left the queue", async || queued().await == redis::Value::Int(0)).await;
        guard.release().await.unwrap();
        assert!(!client.fair_lock("stock").is_locked().await.unwrap());

        // A cancelled call sends nothing, and a call that is not cancelled returns the lock.
        let never = token.run_until_cancelled(client.lock("other").acquire().into_future()).await;
        assert!(never.is_none());
        let token = CancellationToken::new();
        let got = token.run_until_cancelled(client.lock("other").acquire().into_future()).await;
        got.unwrap().unwrap().release().await.unwrap();
    })
    .await;
}

/// A waiter is woken, and dropped while its request is under way: the refusal that follows ends the
/// wait. Regression: it was reported as continuing.
#[tokio::test]
async fn a_waiter_that_was_gone_before_its_refusal_came_was_told_to_wait_on() {
    let Some(server) = RedisServer::start() else { return };
    let (proxy, counts) = (Proxy::to(&server).await, Arc::new(Counts::default()));
    let holder = Client::connect(&server.url()).await.unwrap();
    let client = Client::builder().endpoint(proxy.url()).observer(counts.clone()).connect().await.unwrap();
    let guard = holder.lock("stock").acquire().await.unwrap();
    let lock = client.lock("stock");
    let waiting = task(async move { lock.acquire().await });
    eventually("it waits", async || Counts::of(&counts.waiting) == 1).await;
    let asked = Counts::of(&counts.attempts);
    proxy.requests(Flow::Hold);
    server.command(&["PUBLISH", CHANNEL, "0"]).await;
    eventually("it asks again", async || Counts::of(&counts.attempts) == asked + 1).await;
    waiting.abort();
    assert!(waiting.await.unwrap_err().is_cancelled());
    proxy.requests(Flow::Pass);
    client.close().await.unwrap();
    assert_eq!((Counts::of(&counts.waiting), Counts::of(&counts.attempts)), (1, asked + 1));
    guard.release().await.unwrap();
}

/// A server, or a proxy before it, without RESP3, such as Redis 5: locks work, and a waiter gets an
/// error with the reason.
#[tokio::test]
async fn a_server_without_resp3_says_so_to_waiters() {
    let Some(server) = RedisServer::start_with(&["--rename-command", "HELLO", ""]) else { return };
    let (holder, client) =
        (Client::connect(&server.url()).await.unwrap(), Client::connect(&server.url()).await.unwrap());
    let guard = holder.lock("stock").acquire().await.unwrap();
    assert!(client.lock("stock").try_acquire().await.unwrap().is_none());
    let error = soon("it is told", client.lock("stock").acquire().into_future()).await.unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::Server { .. }) && error.to_string().contains("needs RESP3"),
        "{error}"
    );
    assert!(error.is_definite() && !error.is_transient(), "{error}");
    guard.release().await.unwrap();
    client.lock("stock").acquire().await.unwrap().release().await.unwrap();
}

/// On the same server: waits that need no message work.
#[tokio::test]
async fn waiters_that_no_message_wakes_do_without_resp3() {
    let Some(server) = RedisServer::start_with(&["--rename-command", "HELLO", ""]) else { return };
    let (holder, client) =
        (Client::connect(&server.url()).await.unwrap(), Client::connect(&server.url()).await.unwrap());
    let guard = holder.spin_lock("stock").acquire().await.unwrap();
    let spins = task({
        let client = client.clone();
        async move { client.spin_lock("stock").acquire().await }
    });
    eventually("it is refused again and again", async || {
        let stats = format!("{:?}", server.command(&["INFO", "commandstats"]).await);
        let calls = stats.split("cmdstat_evalsha:calls=").nth(1).and_then(|rest| rest.split(',').next());
        calls.and_then(|calls| calls.parse().ok()).is_some_and(|calls: u32| calls > 5)
    })
    .await;
    guard.release().await.unwrap();
    soon("the spin lock", spins).await.unwrap().unwrap().release().await.unwrap();

    let limiter = client.rate_limiter("calls");
    limiter.try_set_rate(RateMode::Overall, 1, Duration::from_millis(100)).await.unwrap();
    limiter.acquire(1).await.unwrap();
    soon("a permit of the next window", limiter.acquire(1)).await.unwrap();

    let red = Redlock::builder([client]).build("red").unwrap();
    let guard = red.acquire().await.unwrap();
    let waits = task({
        let red = red.clone();
        async move { red.acquire().await }
    });
    guard.release().await.unwrap();
    soon("the Redlock", waits).await.unwrap().unwrap().release().await.unwrap();
}
