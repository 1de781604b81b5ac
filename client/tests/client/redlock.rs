//! Redlock over real servers.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use lockstorm_client::{Client, ErrorKind, Event, EventKind, Observer, OwnerId, Redlock};
use lockstorm_sim::TestServer;

use crate::support::{Attempts, RedisServer, eventually, task};

const LEASE: Duration = Duration::from_secs(10);

fn servers(count: usize) -> Option<Vec<RedisServer>> {
    (0..count).map(|_| RedisServer::start()).collect()
}

fn redlock(servers: &[RedisServer]) -> Redlock {
    let clients = servers.iter().map(|server| Client::builder().endpoint(server.url()).build().unwrap());
    // Generous, because a first use also connects, on a busy machine.
    Redlock::builder(clients).node_timeout(Duration::from_secs(2)).build("stock").unwrap()
}

async fn set_on(servers: &[RedisServer]) -> usize {
    let mut count = 0;
    for server in servers {
        count += usize::from(server.command(&["EXISTS", "stock"]).await == redis::Value::Int(1));
    }
    count
}

async fn eventually_free(servers: &[RedisServer]) {
    eventually("all servers are free", async || set_on(servers).await == 0).await;
}

/// Waits for all servers. A majority is enough for an acquisition: the request to the slowest
/// server may still be on its way, and undo a change of the test.
async fn has_reached_all(servers: &[RedisServer]) {
    eventually("all servers have it", async || set_on(servers).await == servers.len()).await;
}

#[tokio::test]
async fn holds_a_majority_and_frees_all() {
    let Some(servers) = servers(3) else { return };
    let (lock, other) = (redlock(&servers), redlock(&servers));
    assert_eq!(lock.quorum(), 2);
    let guard = lock.acquire().lease(LEASE).await.unwrap();
    // 10 s less 1 % and 2 ms: 9,898 ms.
    assert!(guard.validity() <= Duration::from_millis(9_898));
    assert!(guard.is_valid());
    assert_eq!(guard.lease(), LEASE);
    assert!(other.try_acquire().lease(LEASE).await.unwrap().is_none());
    assert!(other.is_locked().await.unwrap());
    assert!(other.remaining().await.unwrap().unwrap() <= LEASE);
    guard.release().await.unwrap();
    eventually_free(&servers).await;
    other.try_acquire().lease(LEASE).await.unwrap().expect("free").release().await.unwrap();
}

/// Each level has a guard of its own, whatever handle it came from; the nodes are free after the
/// last.
#[tokio::test]
async fn nests_for_its_owner() {
    let Some(servers) = servers(3) else { return };
    let clients: Vec<Client> =
        servers.iter().map(|server| Client::builder().endpoint(server.url()).build().unwrap()).collect();
    let handle = || {
        Redlock::builder(clients.iter().cloned()).node_timeout(Duration::from_secs(2)).build("stock").unwrap()
    };
    let (lock, owner) = (handle(), OwnerId::new(7));
    assert_eq!(lock.hold_count(owner).await.unwrap(), 0);
    let outer = lock.acquire().owner(owner).lease(LEASE).await.unwrap();
    has_reached_all(&servers).await;
    let inner = handle().try_acquire().owner(owner).lease(3 * LEASE).await.unwrap().expect("it nests");
    assert_eq!(lock.hold_count(owner).await.unwrap(), 2);
    assert!(outer.validity() <= LEASE && inner.validity() > 2 * LEASE, "{outer:?} {inner:?}");
    assert!(lock.remaining().await.unwrap().unwrap() > 2 * LEASE);
    assert!(lock.try_acquire().lease(LEASE).await.unwrap().is_none(), "a new owner must not get it");
    let other = lock.try_acquire().owner(OwnerId::new(8)).lease(LEASE).await.unwrap();
    assert!(other.is_none(), "nor another one");
    // In any order: only the last release frees the nodes.
    outer.release().await.unwrap();
    assert_eq!((lock.hold_count(owner).await.unwrap(), set_on(&servers).await), (1, 3));
    assert!(inner.is_valid());
    inner.release().await.unwrap();
    assert_eq!(lock.hold_count(owner).await.unwrap(), 0);
    eventually_free(&servers).await;
}

/// Two of three servers have lost the lock: a nested level in it would hold nothing.
#[tokio::test]
async fn does_not_nest_in_what_is_lost() {
    let Some(servers) = servers(3) else { return };
    let (lock, owner) = (redlock(&servers), OwnerId::new(7));
    let outer = lock.acquire().owner(owner).lease(LEASE).await.unwrap();
    has_reached_all(&servers).await;
    for server in &servers[..2] {
        server.command(&["DEL", "stock"]).await;
    }
    assert_eq!(lock.hold_count(owner).await.unwrap(), 0);
    let anew = lock.acquire().owner(owner).lease(LEASE).await.unwrap();
    assert!(!outer.is_valid());
    assert_ne!(outer.owner(), anew.owner(), "a value of its own");
    assert_eq!(lock.hold_count(owner).await.unwrap(), 1);
    let error = outer.release().await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::NotHeld { .. }), "{error}");
    assert!(anew.is_valid());
    assert!(lock.is_locked().await.unwrap());
    anew.release().await.unwrap();
    eventually_free(&servers).await;
}

/// Two of three servers do not answer and may still have the lock: the hold stays, and the client
/// does not ask the nodes as if it had none.
#[tokio::test]
async fn does_not_begin_anew_when_it_cannot_nest() {
    let Some(mut servers) = servers(3) else { return };
    let notes = Arc::new(Notes::default());
    let client =
        |server: &RedisServer| Client::builder().endpoint(server.url()).observer(notes.clone()).build();
    let clients: Vec<_> = servers.iter().map(client).collect::<Result<_, _>>().unwrap();
    let lock = Redlock::builder(clients).node_timeout(Duration::from_secs(2)).build("stock").unwrap();
    let owner = OwnerId::new(7);
    let outer = lock.acquire().owner(owner).lease(LEASE).await.unwrap();
    servers[1..].iter_mut().for_each(RedisServer::crash);
    let before = notes.all().len();
    let error = lock.try_acquire().owner(owner).lease(LEASE).await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::NoQuorum { .. }), "{error}");
    assert_eq!(notes.all()[before..], ["attempt"]);
    assert!(outer.is_valid());
}

#[tokio::test]
async fn one_of_three_may_be_down_but_not_two() {
    let Some(mut servers) = servers(3) else { return };
    let lock = redlock(&servers);
    servers[2].crash();
    let guard = lock.acquire().lease(LEASE).await.unwrap();
    assert_eq!(set_on(&servers[..2]).await, 2);
    assert!(lock.is_locked().await.unwrap());
    guard.release().await.unwrap();
    servers[1].crash();
    let asked = lock.is_locked().await;
    for error in [lock.try_acquire().lease(LEASE).await.unwrap_err(), asked.unwrap_err()] {
        assert!(matches!(error.kind(), ErrorKind::NoQuorum { answered: 0..=1, quorum: 2, .. }), "{error}");
    }
    eventually_free(&servers[..1]).await;
}

/// A waiting caller repeats its request as often as configured when too few servers answer; a
/// caller that does not wait asks once.
#[tokio::test]
async fn a_lost_quorum_is_asked_again_as_often_as_configured() {
    let attempts = Arc::new(Attempts::default());
    let urls = [crate::support::free_port(), crate::support::free_port(), crate::support::free_port()];
    let clients = urls.map(|port| {
        let builder = Client::builder().endpoint(format!("redis://127.0.0.1:{port}"));
        builder.retry_attempts(2).observer(attempts.clone()).build().unwrap()
    });
    let lock = Redlock::builder(clients).retry_delay(Duration::from_millis(10)).build("stock").unwrap();
    let quorum_is_lost = |error: &lockstorm_client::Error| matches!(error.kind(), ErrorKind::NoQuorum { .. });
    let error = lock.try_acquire().lease(LEASE).await.unwrap_err();
    assert!(quorum_is_lost(&error), "{error}");
    assert_eq!(attempts.count(), 1);
    let error = lock.acquire().lease(LEASE).await.unwrap_err();
    assert!(quorum_is_lost(&error), "{error}");
    assert_eq!(attempts.count() - 1, 1 + 2, "the first and its repeats");
}

/// Another holder has two of three servers: the third is set, does not suffice and is freed again.
#[tokio::test]
async fn a_minority_is_freed() {
    let Some(servers) = servers(3) else { return };
    for server in &servers[..2] {
        server.command(&["SET", "stock", "another", "PX", "60000"]).await;
    }
    assert!(redlock(&servers).try_acquire().lease(LEASE).await.unwrap().is_none());
    eventually_free(&servers[2..]).await;
    assert_eq!(set_on(&servers[..2]).await, 2, "the other holder keeps its own");
}

/// Redisson's RedLock is a hash on each server. Regression: reading a hash as a string is an error,
/// which counted as no answer. A taken lock looked like servers that are down, and a lost one like
/// an error.
#[tokio::test]
async fn a_server_that_another_kind_of_lock_has_is_taken() {
    let Some(servers) = servers(3) else { return };
    let lock = redlock(&servers);
    let guard = lock.acquire().lease(LEASE).await.unwrap();
    has_reached_all(&servers).await;
    for server in &servers[..2] {
        server.command(&["DEL", "stock"]).await;
        server.command(&["HSET", "stock", "redisson:1", "1"]).await;
    }
    assert!(lock.is_locked().await.unwrap());
    assert!(lock.try_acquire().lease(LEASE).await.unwrap().is_none());
    let error = guard.extend(Duration::from_secs(60)).await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::NotHeld { .. }), "{error}");
    let error = guard.release().await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::NotHeld { .. }), "{error}");
    assert_eq!(set_on(&servers[..2]).await, 2, "the other holder keeps its own");
}

/// A server that has lost the lock, for example by a restart without its data, has it again after
/// an extension that a majority confirms, with the rest of the lease. A server where another owner
/// has the lock is not changed.
#[tokio::test]
async fn a_server_that_has_lost_it_is_set_again() {
    let Some(servers) = servers(3) else { return };
    let lock = redlock(&servers);
    let guard = lock.acquire().lease(LEASE).await.unwrap();
    has_reached_all(&servers).await;
    servers[0].command(&["DEL", "stock"]).await;
    servers[2].command(&["SET", "stock", "another"]).await;
    // Two servers refuse.
    guard.extend(LEASE).await.unwrap_err();
    guard.lost().await;
    drop(guard);
    eventually("only the other owner is left", async || set_on(&servers).await == 1).await;

    servers[2].command(&["DEL", "stock"]).await;
    let guard = lock.acquire().lease(LEASE).await.unwrap();
    has_reached_all(&servers).await;
    servers[0].command(&["DEL", "stock"]).await;
    guard.extend(3 * LEASE).await.unwrap();
    has_reached_all(&servers).await;
    let values = servers.iter().map(|server| server.command(&["GET", "stock"]));
    let values = futures_util::future::join_all(values).await;
    assert!(values.iter().all(|value| *value == values[0]), "{values:?}");
    let left: i64 = redis::from_redis_value(servers[0].command(&["PTTL", "stock"]).await).unwrap();
    assert!((20_000..=30_000).contains(&left), "{left}");
    servers[2].command(&["SET", "stock", "another"]).await;
    guard.extend(3 * LEASE).await.unwrap();
    guard.release().await.unwrap();
    let other = redis::Value::BulkString(b"another".to_vec());
    eventually("it is free where it was", async || set_on(&servers).await == 1).await;
    assert_eq!(servers[2].command(&["GET", "stock"]).await, other);
}

/// Extensions that set the lock again are under way during its release: in the end no server has
/// it.
#[tokio::test]
async fn nothing_is_set_again_after_the_release() {
    let Some(servers) = servers(3) else { return };
    let lock = redlock(&servers);
    for _ in 0..50 {
        let guard = lock.acquire().lease(LEASE).await.unwrap();
        has_reached_all(&servers).await;
        servers[1].command(&["DEL", "stock"]).await;
        guard.extend(LEASE).await.unwrap();
        guard.release().await.unwrap();
        eventually_free(&servers).await;
    }
    assert!(lock.try_acquire().lease(LEASE).await.unwrap().is_some());
}

#[tokio::test]
async fn extension_needs_a_majority() {
    let Some(servers) = servers(3) else { return };
    let lock = redlock(&servers);
    let guard = lock.acquire().lease(LEASE).await.unwrap();
    has_reached_all(&servers).await;
    servers[0].command(&["DEL", "stock"]).await;
    guard.extend(Duration::from_secs(60)).await.unwrap();
    assert!(guard.validity() > Duration::from_secs(30));
    has_reached_all(&servers).await;
    for server in &servers[..2] {
        server.command(&["DEL", "stock"]).await;
    }
    guard.extend(Duration::from_secs(120)).await.unwrap_err();
    assert_eq!(set_on(&servers).await, 1, "without a majority it is not set again");
    // Two of three servers reply that they do not have it.
    guard.lost().await;
    assert!(!guard.is_valid());
}

/// The lease of 1 s is extended without a call of the application.
#[tokio::test]
async fn without_a_lease_it_is_extended() {
    let Some(servers) = servers(3) else { return };
    let clients = servers.iter().map(|server| {
        Client::builder().endpoint(server.url()).watchdog_timeout(Duration::from_secs(1)).build().unwrap()
    });
    let lock = Redlock::builder(clients).node_timeout(Duration::from_millis(300)).build("stock").unwrap();
    let guard = lock.acquire().await.unwrap();
    let other = redlock(&servers);
    assert!(other.try_acquire_for(Duration::from_secs(4)).lease(LEASE).await.unwrap().is_none());
    assert!(guard.is_valid());
    guard.release().await.unwrap();
    eventually_free(&servers).await;
}

/// One owner has a plain lock on one server, and a Redlock of the same name that the other two
/// servers have granted: each is renewed by itself. Regression: the renewals of the plain lock
/// counted for both, and the Redlock ended while its guard was valid.
#[tokio::test]
async fn a_plain_lock_of_the_same_name_and_owner_is_renewed_apart() {
    let Some(servers) = servers(3) else { return };
    let watchdog = Duration::from_millis(1500);
    let clients: Vec<Client> = servers
        .iter()
        .map(|server| Client::builder().endpoint(server.url()).watchdog_timeout(watchdog).build().unwrap())
        .collect();
    let owner = OwnerId::new(7);
    let plain = clients[0].lock("stock").acquire().owner(owner).await.unwrap();
    let redlock = Redlock::builder(clients.iter().cloned())
        .node_timeout(Duration::from_secs(2))
        .build("stock")
        .unwrap();
    let majority = redlock.acquire().owner(owner).await.unwrap();
    for _ in 0..2 {
        #[expect(clippy::disallowed_methods, reason = "renewals, in real time")]
        tokio::time::sleep(watchdog).await;
        assert!(plain.is_valid() && majority.is_valid());
        assert_eq!(set_on(&servers).await, 3);
    }
    majority.release().await.unwrap();
    assert!(plain.is_valid());
    plain.release().await.unwrap();
    eventually_free(&servers).await;
}

#[tokio::test]
async fn dropping_the_guard_frees_all() {
    let Some(servers) = servers(3) else { return };
    drop(redlock(&servers).acquire().lease(LEASE).await.unwrap());
    eventually_free(&servers).await;
}

/// Records the attempts and the releases of a client's owners.
#[derive(Default)]
struct Notes(Mutex<Vec<&'static str>>);

impl Observer for Notes {
    fn observe(&self, event: &Event<'_>) {
        let note = match event.kind {
            EventKind::Attempt => "attempt",
            EventKind::Acquired { .. } => "acquired",
            EventKind::Released { .. } => "released",
            _ => return,
        };
        self.0.lock().unwrap().push(note);
    }
}

impl Notes {
    fn all(&self) -> Vec<&'static str> {
        self.0.lock().unwrap().clone()
    }
}

/// Two callers with one owner, while the servers are silent: the first has sent its requests, the
/// second waits for its turn, and both are dropped. Regression: the second sent its requests all
/// the same, and the first one's guard was released some time after its turn.
#[tokio::test]
async fn callers_that_are_gone_were_served_to_the_end() {
    let mut simulated = Vec::new();
    for _ in 0..3 {
        simulated.push(TestServer::start().await.unwrap());
    }
    let urls: Vec<_> = simulated.iter().map(TestServer::url).collect();
    gone_callers(&urls, false).await;
    gone_callers(&urls, true).await;
    let Some(servers) = servers(3) else { return };
    let urls: Vec<_> = servers.iter().map(RedisServer::url).collect();
    gone_callers(&urls, false).await;
    gone_callers(&urls, true).await;
}

/// With an owner that has no hold, or that holds a level already: a nested level for a dropped
/// caller must not be counted either.
async fn gone_callers(urls: &[String], is_nested: bool) {
    let notes = Arc::new(Notes::default());
    let clients = urls.iter().map(|url| Client::builder().endpoint(url).observer(notes.clone()).build());
    let clients: Vec<_> = clients.collect::<Result<_, _>>().unwrap();
    // No reply is late: every sent request is granted.
    let lock = Redlock::builder(clients).node_timeout(Duration::from_secs(15)).build("stock").unwrap();
    let owner = OwnerId::new(7);
    // This first acquisition opens all connections; its release frees all servers.
    lock.acquire().owner(owner).lease(LEASE).await.unwrap().release().await.unwrap();
    let all_servers = async |command: &[&str]| {
        for url in urls {
            let control = redis::Client::open(url.as_str()).unwrap();
            let mut connection = control.get_multiplexed_async_connection().await.unwrap();
            redis::cmd("CLIENT").arg(command).exec_async(&mut connection).await.unwrap();
        }
    };
    let outer =
        if is_nested { Some(lock.acquire().owner(owner).lease(2 * LEASE).await.unwrap()) } else { None };
    let before = notes.all().len();
    all_servers(&["PAUSE", "60000", "WRITE"]).await;
    let ask = || {
        let lock = lock.clone();
        task(async move { lock.acquire().owner(owner).lease(3 * LEASE).await })
    };
    let first = ask();
    eventually("the first asks", async || notes.all().len() == before + 1).await;
    assert_eq!(notes.all().last(), Some(&"attempt"));
    let second = ask();
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    first.abort();
    second.abort();
    let third = lock.acquire().owner(owner).lease(3 * LEASE);
    all_servers(&["UNPAUSE"]).await;
    // The turns of one owner come in order: both callers have had theirs before this one.
    let third = third.await.unwrap();
    assert_eq!(notes.all()[before..], ["attempt", "attempt", "acquired"], "nested: {is_nested}");
    third.release().await.unwrap();
    if let Some(outer) = outer {
        outer.release().await.unwrap();
    }
}
