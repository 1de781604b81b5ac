//! The scripts against recorded replies of Redisson's, on a real server: the two kinds of clients
//! share locks, so keys, fields, scores, messages and replies must agree. A row states each
//! intended difference.

mod fair_dead;
mod faster_multi;
mod last_millisecond;
mod levels;
mod read_write;
mod semaphores;

use futures_util::StreamExt;
use redis::{FromRedisValue, Value, aio::MultiplexedConnection};

use crate::support::{RedisServer, soon};

const ACQUIRE: &str = include_str!("../../src/locks/reentrant/acquire.lua");
const RELEASE: &str = include_str!("../../src/locks/reentrant/release.lua");
const FORCE_RELEASE: &str = include_str!("../../src/locks/reentrant/force_release.lua");
const RENEW: &str = include_str!("../../src/renew/renew.lua");
const FENCED_ACQUIRE: &str = include_str!("../../src/locks/fenced/acquire.lua");
const SPIN_RELEASE: &str = include_str!("../../src/locks/spin/release.lua");
const SPIN_FORCE_RELEASE: &str = include_str!("../../src/locks/spin/force_release.lua");
const FAIR_ACQUIRE: &str = concat!(
    include_str!("../../src/locks/fair/shift.lua"),
    include_str!("../../src/locks/fair/sweep.lua"),
    include_str!("../../src/locks/fair/acquire.lua")
);
const FAIR_TRY_ACQUIRE: &str = concat!(
    include_str!("../../src/locks/fair/shift.lua"),
    include_str!("../../src/locks/fair/sweep.lua"),
    include_str!("../../src/locks/fair/try_acquire.lua")
);
const FAIR_ABANDON: &str = include_str!("../../src/locks/fair/abandon.lua");
const FAIR_RELEASE: &str = concat!(
    include_str!("../../src/locks/fair/shift.lua"),
    include_str!("../../src/locks/fair/sweep.lua"),
    include_str!("../../src/locks/fair/release.lua")
);
const FAIR_FORCE_RELEASE: &str = concat!(
    include_str!("../../src/locks/fair/shift.lua"),
    include_str!("../../src/locks/fair/sweep.lua"),
    include_str!("../../src/locks/fair/force_release.lua")
);

/// The wall clock of the callers in the fair vectors.
const NOW: u64 = 1_000_000_000_000;
const LEASE: u64 = 30_000;
const LATCH: u64 = 16_000;
const MARKER: &str = "NON_REENTRANT_REACQUIRE";
const NIL: Value = Value::Nil;

fn int(n: i64) -> Value {
    Value::Int(n)
}

fn pair(a: i64, b: i64) -> Value {
    Value::Array(vec![Value::Int(a), Value::Int(b)])
}

/// Runs a script.
async fn eval(
    redis: &mut MultiplexedConnection,
    script: &str,
    keys: &[&str],
    args: &[&dyn ToString],
) -> redis::RedisResult<Value> {
    let args: Vec<_> = args.iter().map(|arg| arg.to_string()).collect();
    redis::cmd("EVAL").arg(script).arg(keys.len()).arg(keys).arg(args).query_async(redis).await
}

struct Vectors {
    redis: MultiplexedConnection,
    server: RedisServer,
}

impl Vectors {
    async fn start() -> Option<Self> {
        let server = RedisServer::start()?;
        let client = redis::Client::open(server.url()).unwrap();
        let redis = client.get_multiplexed_async_connection().await.unwrap();
        Some(Self { redis, server })
    }

    async fn run(
        &mut self,
        script: &str,
        keys: &[&str],
        args: &[&dyn ToString],
    ) -> redis::RedisResult<Value> {
        eval(&mut self.redis, script, keys, args).await
    }

    async fn get<T: FromRedisValue>(&mut self, command: &str) -> T {
        let mut words = command.split(' ');
        let mut cmd = redis::cmd(words.next().unwrap());
        cmd.arg(words.collect::<Vec<_>>());
        cmd.query_async(&mut self.redis).await.unwrap()
    }

    async fn check_pttl(&mut self, key: &str, expected: i64) {
        let left: i64 = self.get(&format!("PTTL {key}")).await;
        // A slow machine takes its time between two commands; no other figure in a vector is within
        // that distance.
        assert!((expected - 1000..=expected).contains(&left), "{key} has {left} ms left, not {expected}");
    }

    async fn hash(&mut self, key: &str) -> Vec<(String, i64)> {
        let map: std::collections::BTreeMap<String, i64> = self.get(&format!("HGETALL {key}")).await;
        map.into_iter().collect()
    }

    async fn acquire(&mut self, owner: &str, lease: u64) -> Value {
        self.run(ACQUIRE, &["lk"], &[&lease, &owner]).await.unwrap()
    }

    async fn release(&mut self, owner: &str, request: &str) -> Value {
        let latch = format!("redisson_unlock_latch:{{lk}}:{request}");
        let keys = ["lk", "redisson_lock__channel:{lk}", &latch];
        self.run(RELEASE, &keys, &[&0, &owner, &"PUBLISH", &LATCH]).await.unwrap()
    }

    async fn fair_acquire(&mut self, owner: &str, wait: u64, now: u64) -> Value {
        self.run(FAIR_ACQUIRE, &WAITING, &[&LEASE, &owner, &wait, &now]).await.unwrap()
    }

    async fn fair_release(&mut self, owner: &str, now: u64) -> Value {
        let latch = format!("redisson_unlock_latch:{{fl}}:{owner}:{now}");
        let keys = [FAIR[0], FAIR[1], FAIR[2], FAIR[3], ALIVE, &latch];
        self.run(FAIR_RELEASE, &keys, &[&0, &owner, &now, &"PUBLISH", &LATCH]).await.unwrap()
    }

    /// The queue with each waiter's deadline, counted from [`NOW`]; `None` for a waiter without
    /// one.
    async fn queue(&mut self) -> Vec<(String, Option<i64>)> {
        let mut queue = Vec::new();
        for waiter in self.get::<Vec<String>>(&format!("LRANGE {} 0 -1", FAIR[1])).await {
            let score: Option<f64> = self.get(&format!("ZSCORE {} {waiter}", FAIR[2])).await;
            #[expect(clippy::cast_possible_truncation, reason = "milliseconds since 1970 fit")]
            queue.push((waiter, score.map(|score| score as i64 - NOW as i64)));
        }
        queue
    }
}

/// The messages on a channel of a real server.
struct Messages(redis::aio::PubSub);

impl Messages {
    async fn on(server: &RedisServer, channel: &str) -> Self {
        let mut messages = redis::Client::open(server.url()).unwrap().get_async_pubsub().await.unwrap();
        messages.subscribe(channel).await.unwrap();
        Self(messages)
    }

    async fn next(&mut self) -> String {
        let mut messages = self.0.on_message();
        soon("it is published", messages.next()).await.unwrap().get_payload().unwrap()
    }
}

const FAIR: [&str; 4] =
    ["fl", "redisson_lock_queue:{fl}", "redisson_lock_timeout:{fl}", "redisson_lock__channel:{fl}"];
/// Only this client has this key.
const ALIVE: &str = "redisson_lock_alive:{fl}";
const WAITING: [&str; 4] = [FAIR[0], FAIR[1], FAIR[2], ALIVE];
const FORCED: [&str; 5] = [FAIR[0], FAIR[1], FAIR[2], FAIR[3], ALIVE];

fn waiting(of: &[(&str, i64)]) -> Vec<(String, Option<i64>)> {
    of.iter().map(|(owner, deadline)| ((*owner).to_owned(), Some(*deadline))).collect()
}

#[tokio::test]
async fn reentrant() {
    let Some(mut v) = Vectors::start().await else { return };
    assert_eq!(v.acquire("A", 30_000).await, NIL);
    assert_eq!(v.hash("lk").await, [("A".into(), 1)]);
    v.check_pttl("lk", 30_000).await;
    // Redisson cuts the lease to 5 s here; a shorter nested lease must not.
    assert_eq!(v.acquire("A", 5_000).await, NIL);
    assert_eq!(v.hash("lk").await, [("A".into(), 2)]);
    v.check_pttl("lk", 30_000).await;
    assert!(matches!(v.acquire("B", 30_000).await, Value::Int(29_000..=30_000)));

    assert_eq!(v.release("A", "q1").await, int(0));
    assert_eq!(v.hash("lk").await, [("A".into(), 1)]);
    v.check_pttl("lk", 30_000).await;
    assert_eq!(v.get::<String>("GET redisson_unlock_latch:{lk}:q1").await, "0");
    v.check_pttl("redisson_unlock_latch:{lk}:q1", 16_000).await;
    assert_eq!(v.release("A", "q1").await, int(0), "the same request again");
    assert_eq!(v.hash("lk").await, [("A".into(), 1)]);

    assert_eq!(v.release("A", "q2").await, int(1));
    assert_eq!(v.get::<i64>("EXISTS lk").await, 0);
    assert_eq!(v.get::<String>("GET redisson_unlock_latch:{lk}:q2").await, "1");
    assert_eq!(v.release("A", "q3").await, NIL);
    assert_eq!(v.get::<i64>("EXISTS redisson_unlock_latch:{lk}:q3").await, 0);
    assert_eq!(v.release("A", "q2").await, int(1), "the same request again");
    // Redisson deletes a latch with a command of its own; here the next release may do so.
    assert_eq!(v.acquire("A", 30_000).await, NIL);
    let keys = [
        "lk",
        "redisson_lock__channel:{lk}",
        "redisson_unlock_latch:{lk}:q4",
        "redisson_unlock_latch:{lk}:q1",
        "redisson_unlock_latch:{lk}:q2",
    ];
    assert_eq!(v.run(RELEASE, &keys, &[&0, &"A", &"PUBLISH", &LATCH]).await.unwrap(), int(1));
    for (latch, exists) in [("q1", 0), ("q2", 0), ("q4", 1)] {
        assert_eq!(
            v.get::<i64>(&format!("EXISTS redisson_unlock_latch:{{lk}}:{latch}")).await,
            exists,
            "{latch}"
        );
    }

    let force: [&str; 2] = ["lk", "redisson_lock__channel:{lk}"];
    assert_eq!(v.run(FORCE_RELEASE, &force, &[&0, &"PUBLISH"]).await.unwrap(), int(0));
    v.get::<i64>("HSET lk foreign 1").await;
    assert_eq!(v.acquire("A", 30_000).await, int(-1), "a key without a time to live");
    assert_eq!(v.run(FORCE_RELEASE, &force, &[&0, &"PUBLISH"]).await.unwrap(), int(1));
    v.get::<String>("SET lk text").await;
    let error = v.run(ACQUIRE, &["lk"], &[&30_000, &"A"]).await.unwrap_err();
    assert_eq!(error.code(), Some("WRONGTYPE"), "{error}");
}

/// Only in this client: the reply to a release that frees the lock also contains the number of
/// clients that its message reached.
#[tokio::test]
async fn release_counts_the_clients_that_it_tells() {
    const CHANNEL: &str = "redisson_lock__channel:{lk}";
    let Some(mut v) = Vectors::start().await else { return };
    let _listeners = [Messages::on(&v.server, CHANNEL).await, Messages::on(&v.server, CHANNEL).await];
    v.acquire("A", 30_000).await;
    v.acquire("A", 30_000).await;
    assert_eq!(v.release("A", "q1").await, int(0));
    assert_eq!(v.release("A", "q2").await, int(3));
    assert_eq!(v.release("A", "q2").await, int(1), "it is told once");
}

/// Section 3: an owner that asks again gets the marker, and nothing changes. Redisson returns it as
/// an error.
#[tokio::test]
async fn non_reentrant() {
    let Some(mut v) = Vectors::start().await else { return };
    let refused = Value::SimpleString(MARKER.to_owned());
    assert_eq!(v.run(ACQUIRE, &["lk"], &[&30_000, &"A", &MARKER]).await.unwrap(), NIL);
    assert_eq!(v.run(ACQUIRE, &["lk"], &[&60_000, &"A", &MARKER]).await.unwrap(), refused);
    assert_eq!(v.hash("lk").await, [("A".into(), 1)]);
    v.check_pttl("lk", 30_000).await;
    let other = v.run(ACQUIRE, &["lk"], &[&30_000, &"B", &MARKER]).await.unwrap();
    assert!(matches!(other, Value::Int(29_000..=30_000)));

    let queued: [&dyn ToString; 5] = [&LEASE, &"A", &LEASE, &NOW, &MARKER];
    let immediate: [&dyn ToString; 5] = [&LEASE, &"A", &NOW, &LEASE, &MARKER];
    assert_eq!(v.run(FAIR_ACQUIRE, &WAITING, &queued).await.unwrap(), NIL);
    assert_eq!(v.run(FAIR_ACQUIRE, &WAITING, &queued).await.unwrap(), refused);
    assert_eq!(v.run(FAIR_TRY_ACQUIRE, &WAITING, &immediate).await.unwrap(), refused);
    assert_eq!(v.hash("fl").await, [("A".into(), 1)]);
    assert_eq!(v.queue().await, [], "its holder is not queued behind itself");
}

/// Section 4: the plain lock's hash and latch, and no message.
#[tokio::test]
async fn spin() {
    let Some(mut v) = Vectors::start().await else { return };
    let release = async |v: &mut Vectors, owner: &str, request: &str| {
        let latch = format!("redisson_unlock_latch:{{lk}}:{request}");
        v.run(SPIN_RELEASE, &["lk", &latch], &[&owner, &LATCH]).await.unwrap()
    };
    let mut heard = redis::Client::open(v.server.url()).unwrap().get_async_pubsub().await.unwrap();
    heard.subscribe(&["redisson_lock__channel:{lk}", "end"]).await.unwrap();
    for _ in 0..2 {
        assert_eq!(v.acquire("A", LEASE).await, NIL);
    }
    assert_eq!(release(&mut v, "A", "q1").await, int(0));
    assert_eq!(release(&mut v, "A", "q1").await, int(0), "the same request again");
    assert_eq!(v.hash("lk").await, [("A".into(), 1)]);
    assert_eq!(release(&mut v, "B", "q2").await, NIL);
    assert_eq!(release(&mut v, "A", "q3").await, int(1));
    assert_eq!(v.get::<String>("GET redisson_unlock_latch:{lk}:q3").await, "1");
    assert_eq!(release(&mut v, "A", "q3").await, int(1), "the same request again");
    assert_eq!(release(&mut v, "A", "q4").await, NIL);
    assert_eq!(v.run(SPIN_FORCE_RELEASE, &["lk"], &[]).await.unwrap(), int(0));
    assert_eq!(v.acquire("B", LEASE).await, NIL);
    assert_eq!(v.run(SPIN_FORCE_RELEASE, &["lk"], &[]).await.unwrap(), int(1));
    v.get::<i64>("PUBLISH end 1").await;
    let mut messages = heard.on_message();
    let first = soon("the end", messages.next()).await.unwrap();
    assert_eq!(first.get_channel_name(), "end", "nothing was published before");
}

#[tokio::test]
async fn renewal() {
    let Some(mut v) = Vectors::start().await else { return };
    for (lock, owner) in [("lk", "A"), ("l2", "B")] {
        v.get::<i64>(&format!("HSET {lk} {owner} 1", lk = lock)).await;
        v.get::<i64>(&format!("PEXPIRE {lock} 5000")).await;
    }
    let reply = v.run(RENEW, &["lk", "l2", "l3"], &[&LEASE, &"A", &"A", &"A"]).await.unwrap();
    assert_eq!(reply, Value::Array(vec![int(1), int(0), int(0)]));
    v.check_pttl("lk", 30_000).await;
    v.check_pttl("l2", 5_000).await;
    // A longer lease of its own stays.
    v.get::<i64>("PEXPIRE lk 100000").await;
    assert_eq!(v.run(RENEW, &["lk"], &[&LEASE, &"A"]).await.unwrap(), Value::Array(vec![int(1)]));
    v.check_pttl("lk", 100_000).await;
}

#[tokio::test]
async fn fenced() {
    let Some(mut v) = Vectors::start().await else { return };
    let keys = ["f", "redisson_lock_token:{f}"];
    assert_eq!(v.run(FENCED_ACQUIRE, &keys, &[&LEASE, &"A"]).await.unwrap(), pair(-1, 1));
    assert_eq!(v.run(FENCED_ACQUIRE, &keys, &[&LEASE, &"A"]).await.unwrap(), pair(-1, 2));
    assert_eq!(v.hash("f").await, [("A".into(), 2)]);
    assert_eq!(v.get::<i64>("GET redisson_lock_token:{f}").await, 2);
    let Value::Array(busy) = v.run(FENCED_ACQUIRE, &keys, &[&LEASE, &"B"]).await.unwrap() else { panic!() };
    assert!(matches!(busy[..], [Value::Int(29_000..=30_000), Value::Int(-1)]), "{busy:?}");
    v.get::<i64>("PERSIST f").await;
    assert_eq!(v.run(FENCED_ACQUIRE, &keys, &[&LEASE, &"B"]).await.unwrap(), pair(-1, -1));
}

#[tokio::test]
async fn fair() {
    let Some(mut v) = Vectors::start().await else { return };
    let wait = 300_000;
    assert_eq!(v.fair_acquire("H", wait, NOW).await, NIL);
    // A lease of 1,000 s does not end during the test; the deadlines are compared with its measured
    // rest.
    v.get::<i64>("PEXPIRE fl 1000000").await;
    v.get::<i64>("HSET fl H 1").await;
    let Value::Int(left) = v.fair_acquire("W1", wait, NOW).await else { panic!() };
    assert!((999_000..=1_000_000).contains(&left));
    assert_eq!(v.queue().await, waiting(&[("W1", left + 300_000)]));
    assert_eq!(v.fair_acquire("W2", wait, NOW).await, int(left + 300_000));
    let queue = waiting(&[("W1", left + 300_000), ("W2", left + 600_000)]);
    assert_eq!(v.queue().await, queue);
    assert!(matches!(v.fair_acquire("W1", wait, NOW).await, Value::Int(999_000..=1_000_000)));
    assert_eq!(v.queue().await, queue, "a poll changes nothing");
    assert_eq!(v.run(FAIR_TRY_ACQUIRE, &WAITING, &[&LEASE, &"W3", &NOW, &wait]).await.unwrap(), int(1));
    assert_eq!(v.queue().await, queue, "the immediate form does not queue");

    assert_eq!(v.fair_release("H", NOW + 100).await, int(1));
    assert_eq!(v.fair_acquire("W2", wait, NOW + 101).await, int(0), "free, but not its turn");
    assert_eq!(v.run(FAIR_TRY_ACQUIRE, &WAITING, &[&LEASE, &"W3", &NOW, &wait]).await.unwrap(), int(1));
    assert_eq!(v.fair_acquire("W4", wait, NOW + 102).await, int(left + 600_000 - 102));
    assert_eq!(v.fair_acquire("W1", wait, NOW + 103).await, NIL);
    assert_eq!(v.queue().await, waiting(&[("W2", left + 300_000), ("W4", left + 600_000)]));
    let reply = v.run(FAIR_FORCE_RELEASE, &FORCED, &[&0, &NOW, &"PUBLISH"]).await.unwrap();
    assert_eq!(reply, int(1));
    assert_eq!(v.queue().await.len(), 2, "the queue survives");
}

#[tokio::test]
async fn fair_dead_head_is_swept_after_its_deadline() {
    let Some(mut v) = Vectors::start().await else { return };
    v.get::<i64>(&format!("RPUSH {} W1 W2", FAIR[1])).await;
    v.get::<i64>(&format!("ZADD {} {} W1 {} W2", FAIR[2], NOW + 330_000, NOW + 630_000)).await;
    assert_eq!(v.fair_acquire("W2", 300_000, NOW).await, int(0));
    assert_eq!(v.fair_acquire("W2", 300_000, NOW + 329_999).await, int(0));
    assert_eq!(v.fair_acquire("W2", 300_000, NOW + 330_000).await, NIL);
    assert_eq!(v.queue().await, []);
    // Removed together with its deadline: a waiter with a deadline is in the queue already, and
    // would not be queued again.
    assert_eq!(v.get::<i64>(&format!("ZCARD {}", FAIR[2])).await, 0);
    v.fair_acquire("W1", 300_000, NOW + 330_002).await;
    assert_eq!(v.queue().await.len(), 1);
    // The immediate form removes dead waiters as well.
    let keys = [FAIR[1], FAIR[2], FAIR[0], FAIR[3], ALIVE];
    v.get::<i64>(&format!("DEL {}", FAIR[0])).await;
    let args: [&dyn ToString; 4] = [&LEASE, &"W3", &(NOW + 10_000_000), &300_000];
    assert_eq!(v.run(FAIR_TRY_ACQUIRE, &WAITING, &args).await.unwrap(), NIL);
    assert_eq!(v.queue().await, []);
    // Behind a waiter that leaves, one without a deadline stays unchanged.
    v.get::<i64>(&format!("RPUSH {} W1 W2", FAIR[1])).await;
    v.get::<i64>(&format!("ZADD {} {} W1", FAIR[2], NOW + 330_000)).await;
    assert_eq!(v.run(FAIR_ABANDON, &keys, &[&NOW, &0, &"PUBLISH", &"W1", &300_000]).await.unwrap(), int(1));
    assert_eq!(v.queue().await, [("W2".to_owned(), None)]);
    // A dead head is not notified that the lock is free either, and then nothing is left to free.
    for reply in [1, 0] {
        let freed = v.run(FAIR_FORCE_RELEASE, &FORCED, &[&0, &NOW, &"PUBLISH"]).await.unwrap();
        assert_eq!((freed, v.queue().await), (int(reply), vec![]));
    }
}

/// Redisson waits forever for a head without a deadline.
#[tokio::test]
async fn fair_head_without_deadline_counts_as_dead() {
    let Some(mut v) = Vectors::start().await else { return };
    v.get::<i64>(&format!("RPUSH {} W1 W2", FAIR[1])).await;
    v.get::<i64>(&format!("ZADD {} {} W2", FAIR[2], NOW + 630_000)).await;
    assert_eq!(v.fair_acquire("W2", 300_000, NOW).await, NIL);
    assert_eq!(v.queue().await, []);
}

/// A head that asks within its last 300 s gets them again, after the rest of the holder's lease,
/// and the waiters behind it keep their distances. Redisson's scripts do not change the deadlines,
/// and remove a live head. A request of a waiter further back changes nothing.
#[tokio::test]
async fn fair_head_that_asks_keeps_its_place() {
    let Some(mut v) = Vectors::start().await else { return };
    let wait = 300_000;
    v.get::<i64>("HSET fl H 1").await;
    v.get::<i64>(&format!("RPUSH {} W1 W2 W3", FAIR[1])).await;
    v.get::<i64>(&format!("ZADD {} {} W1 {} W2 {} W3", FAIR[2], NOW + 330_000, NOW + 630_000, NOW + 640_000))
        .await;
    for (asks, at, queue) in [
        ("W1", 30_000, [330_000, 630_000, 640_000]),
        ("W2", 329_000, [330_000, 630_000, 640_000]),
        ("W1", 30_001, [330_001, 630_001, 640_001]),
        ("W1", 329_000, [629_000, 929_000, 939_000]),
        ("W1", 628_999, [928_999, 1_228_999, 1_238_999]),
    ] {
        assert_eq!(v.fair_acquire(asks, wait, NOW + at).await, int(0));
        let [first, second, third] = queue;
        assert_eq!(v.queue().await, waiting(&[("W1", first), ("W2", second), ("W3", third)]), "{asks} {at}");
    }
    // A waiter that is not the head gets no new deadline, even with less time left than its wait.
    v.get::<i64>(&format!("ZADD {} {} W2", FAIR[2], NOW + 929_000)).await;
    assert_eq!(v.fair_acquire("W2", wait, NOW + 700_000).await, int(0));
    let queue = waiting(&[("W1", 928_999), ("W2", 929_000), ("W3", 1_238_999)]);
    assert_eq!(v.queue().await, queue, "W2 700000");
    v.get::<i64>(&format!("ZADD {} {} W2", FAIR[2], NOW + 1_228_999)).await;
    // The rest of the holder's lease is added, as for a new waiter.
    v.get::<i64>("PEXPIRE fl 1000000").await;
    let Value::Int(left) = v.fair_acquire("W1", wait, NOW + 928_000).await else { panic!() };
    let first = 928_000 + left + 300_000;
    assert_eq!(v.queue().await, waiting(&[("W1", first), ("W2", first + 300_000), ("W3", first + 310_000)]));
}

/// The head has 100 s of its 300 s left when it is granted the lock: the waiters behind it come 100
/// s nearer. With 300 s, as in Redisson's scripts, a next waiter with a wait of 10 s would
/// immediately count as dead.
#[tokio::test]
async fn fair_grant_leaves_the_next_its_own_wait() {
    let Some(mut v) = Vectors::start().await else { return };
    for immediate in [false, true] {
        v.get::<i64>(&format!("DEL {} {} {}", FAIR[0], FAIR[1], FAIR[2])).await;
        v.get::<i64>(&format!("RPUSH {} W1 W2", FAIR[1])).await;
        v.get::<i64>(&format!("ZADD {} {} W1 {} W2", FAIR[2], NOW + 330_000, NOW + 340_000)).await;
        let granted = if immediate {
            let args: [&dyn ToString; 4] = [&LEASE, &"W1", &(NOW + 230_000), &300_000];
            v.run(FAIR_TRY_ACQUIRE, &WAITING, &args).await.unwrap()
        } else {
            v.fair_acquire("W1", 300_000, NOW + 230_000).await
        };
        assert_eq!(granted, NIL);
        assert_eq!(v.queue().await, waiting(&[("W2", 240_000)]), "immediate: {immediate}");
        assert_eq!(v.get::<i64>(&format!("ZCARD {}", FAIR[2])).await, 1);
    }
}

/// Waiters with waits of 2, 20, 20, 5 and 20 s, of which some leave. Redisson's asynchronous form
/// gives back 300 s and not the requested wait, which moves the deadlines of live waiters into the
/// past. However often the request is repeated, a waiter leaves once.
#[tokio::test]
async fn fair_abandon_gives_back_the_waits_that_were_asked_for() {
    let Some(mut v) = Vectors::start().await else { return };
    let keys = [FAIR[1], FAIR[2], FAIR[0], FAIR[3], ALIVE];
    let waits = [("A", 2_000), ("B", 20_000), ("C", 20_000), ("D", 5_000), ("E", 20_000)];
    for (leaving, at, left_over) in [
        ("A", 0, [("B", 20_000), ("C", 40_000), ("D", 45_000), ("E", 65_000)].as_slice()),
        // The head leaves 1.5 s later, 500 ms before its deadline: the others come nearer by 500
        // ms, and not by a whole wait.
        ("A", 31_500, &[("B", 21_500), ("C", 41_500), ("D", 46_500), ("E", 66_500)]),
        ("BD", 0, &[("A", 2_000), ("C", 22_000), ("E", 42_000)]),
        ("ABCE", 0, &[("D", 5_000)]),
        ("E", 0, &[("A", 2_000), ("B", 22_000), ("C", 42_000), ("D", 47_000)]),
        ("XY", 0, &[("A", 2_000), ("B", 22_000), ("C", 42_000), ("D", 47_000), ("E", 67_000)]),
        ("ABCDE", 0, &[]),
    ] {
        v.get::<i64>(&format!("DEL {} {} {}", FAIR[0], FAIR[1], FAIR[2])).await;
        v.get::<i64>("HSET fl H 1").await;
        // A holder's lease of 30 s, followed by the waits one after another.
        let mut deadline = 30_000;
        for (owner, wait) in waits {
            deadline += wait;
            v.get::<i64>(&format!("RPUSH {} {owner}", FAIR[1])).await;
            v.get::<i64>(&format!("ZADD {} {} {owner}", FAIR[2], NOW + deadline)).await;
        }
        let expected: Vec<_> =
            left_over.iter().map(|(owner, deadline)| (*owner, 30_000 + deadline)).collect();
        let now = NOW + at;
        let mut args: Vec<&dyn ToString> = vec![&now, &0, &"PUBLISH"];
        let owners: Vec<String> = leaving.chars().map(String::from).collect();
        let asked: Vec<u64> = owners
            .iter()
            .map(|owner| waits.iter().find(|(known, _)| known == owner).map_or(1_000, |(_, wait)| *wait))
            .collect();
        for (owner, wait) in owners.iter().zip(&asked) {
            args.extend([owner as &dyn ToString, wait as &dyn ToString]);
        }
        let left = i64::try_from(waits.len() - expected.len()).unwrap();
        assert_eq!(v.run(FAIR_ABANDON, &keys, &args).await.unwrap(), int(left), "{leaving} leave");
        assert_eq!(v.queue().await, waiting(&expected), "{leaving} leave");
        assert_eq!(v.run(FAIR_ABANDON, &keys, &args).await.unwrap(), int(0), "{leaving} leave again");
        assert_eq!(v.queue().await, waiting(&expected), "{leaving} leave again");
        let deadlines: usize = v.get(&format!("ZCARD {}", FAIR[2])).await;
        assert_eq!(deadlines, expected.len());
    }
}

/// Two waiters that leave had waits longer than the time to their deadlines: the waiter behind them
/// comes nearer by the time that both had left.
#[tokio::test]
async fn fair_abandon_takes_no_more_than_was_left() {
    let Some(mut v) = Vectors::start().await else { return };
    v.get::<i64>(&format!("RPUSH {} A B C", FAIR[1])).await;
    v.get::<i64>(&format!("ZADD {} {} A {} B {} C", FAIR[2], NOW + 1_000, NOW + 2_000, NOW + 22_000)).await;
    let keys = [FAIR[1], FAIR[2], FAIR[0], FAIR[3], ALIVE];
    let args: [&dyn ToString; 7] = [&NOW, &0, &"PUBLISH", &"A", &20_000, &"B", &20_000];
    assert_eq!(v.run(FAIR_ABANDON, &keys, &args).await.unwrap(), int(2));
    assert_eq!(v.queue().await, waiting(&[("C", 20_000)]));
}

/// The release was announced to the head, which leaves without a look: the next waiter is notified.
#[tokio::test]
async fn fair_head_that_leaves_tells_the_next() {
    let Some(mut v) = Vectors::start().await else { return };
    let keys = [FAIR[1], FAIR[2], FAIR[0], FAIR[3], ALIVE];
    let mut listener = redis::Client::open(v.server.url()).unwrap().get_async_pubsub().await.unwrap();
    listener.psubscribe("redisson_lock__channel:{fl}:*").await.unwrap();
    let mut told = listener.on_message();
    for (message, lock, leaving, next) in [
        ("0", None, "W2", None),
        ("1", Some("HSET fl H 1"), "W1", None),
        // Only this departure publishes a message, so the first message received is its own.
        ("2", None, "W1", Some("redisson_lock__channel:{fl}:W2")),
    ] {
        v.get::<i64>(&format!("DEL {} {} {}", FAIR[0], FAIR[1], FAIR[2])).await;
        v.get::<i64>(&format!("RPUSH {} W1 W2 W3", FAIR[1])).await;
        v.get::<i64>(&format!("ZADD {} {} W1 {} W2 {} W3", FAIR[2], NOW + 1, NOW + 2, NOW + 3)).await;
        if let Some(lock) = lock {
            v.get::<i64>(lock).await;
        }
        let reply = v.run(FAIR_ABANDON, &keys, &[&NOW, &message, &"PUBLISH", &leaving, &1]).await.unwrap();
        assert_eq!(reply, int(1));
        if let Some(next) = next {
            let told = soon("the next is told", futures_util::StreamExt::next(&mut told)).await.unwrap();
            assert_eq!(
                (told.get_channel_name(), told.get_payload::<String>().unwrap()),
                (next, message.to_owned())
            );
        }
    }
}

/// Redisson reports success to any owner that unlocks a free fair lock; here it is not held, but
/// the head of the queue is still notified.
#[tokio::test]
async fn fair_release_of_a_free_lock_is_not_held_but_tells_the_head() {
    let Some(mut v) = Vectors::start().await else { return };
    assert_eq!(v.fair_release("Z", NOW).await, NIL);
    // The first in the queue is dead, and is not notified.
    v.get::<i64>(&format!("RPUSH {} W0 W1", FAIR[1])).await;
    v.get::<i64>(&format!("ZADD {} {} W0 {} W1", FAIR[2], NOW, NOW + 330_000)).await;
    let mut listener = redis::Client::open(v.server.url()).unwrap().get_async_pubsub().await.unwrap();
    listener.subscribe("redisson_lock__channel:{fl}:W1").await.unwrap();
    assert_eq!(v.fair_release("H", NOW).await, NIL);
    let mut messages = listener.on_message();
    let told = soon("the head is told", futures_util::StreamExt::next(&mut messages)).await.unwrap();
    assert_eq!(told.get_payload::<String>().unwrap(), "0");
}
