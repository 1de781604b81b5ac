//! The watchdog with many locks, on a real server.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lockstorm_client::{Client, Event, EventKind, LossCause, Observer, OwnerId};

use crate::support::{RedisServer, eventually, soon};

/// Counts the renewals of each lock.
#[derive(Default)]
struct Renewals(Mutex<BTreeMap<String, usize>>);

impl Renewals {
    /// A client that renews once a second, and its count of renewals.
    async fn counted(server: &RedisServer) -> (Client, Arc<Self>) {
        let renewals = Arc::new(Self::default());
        let client = Client::builder()
            .endpoint(server.url())
            .watchdog_timeout(Duration::from_secs(3))
            .observer(renewals.clone());
        (client.connect().await.unwrap(), renewals)
    }

    fn total(&self) -> usize {
        self.0.lock().unwrap().values().sum()
    }

    fn of(&self, lock: &str) -> usize {
        self.0.lock().unwrap().get(lock).copied().unwrap_or_default()
    }
}

impl Observer for Renewals {
    fn observe(&self, event: &Event<'_>) {
        if matches!(event.kind, EventKind::Renewed { .. }) {
            *self.0.lock().unwrap().entry(event.lock.to_owned()).or_default() += 1;
        }
    }
}

async fn calls(server: &RedisServer, command: &str) -> usize {
    let info: String = redis::from_redis_value(server.command(&["INFO", "commandstats"]).await).unwrap();
    let line = info
        .lines()
        .find_map(|line| line.strip_prefix(&format!("cmdstat_{command}:calls=")).map(str::to_owned));
    line.map_or(0, |line| line.split(',').next().unwrap().parse().unwrap())
}

/// 150 locks taken together need two scripts per round, because a script renews at most 100. Each
/// is renewed, and none more often than the others.
#[tokio::test]
async fn many_locks_share_few_scripts() {
    const LOCKS: usize = 150;
    let Some(server) = RedisServer::start() else { return };
    let (client, renewals) = Renewals::counted(&server).await;
    let asked = (0..LOCKS).map(|i| client.lock(&format!("lock-{i:03}")).acquire().into_future());
    let guards = futures_util::future::try_join_all(asked).await.unwrap();
    let before = calls(&server, "evalsha").await;
    eventually("two rounds", async || renewals.total() >= 2 * LOCKS).await;
    let scripts = calls(&server, "evalsha").await - before;
    let renewed = renewals.total();
    assert!(scripts * 20 < renewed, "{scripts} scripts for {renewed} renewals");
    assert!(guards.iter().all(|guard| guard.is_valid()));
    assert_eq!(renewals.0.lock().unwrap().len(), LOCKS);
}

/// A lock that is gone, and a key overwritten with another type, do not keep the same script from
/// renewing the third lock.
#[tokio::test]
async fn a_bad_lock_does_not_stop_the_others() {
    let Some(server) = RedisServer::start() else { return };
    let client = Client::builder()
        .endpoint(server.url())
        .watchdog_timeout(Duration::from_secs(1))
        .retry_delay(Duration::from_millis(50), Duration::from_millis(100))
        .connect()
        .await
        .unwrap();
    let good = client.lock("good").acquire().await.unwrap();
    let gone = client.lock("gone").acquire().await.unwrap();
    let spoilt = client.lock("spoilt").acquire().await.unwrap();
    server.command(&["DEL", "gone"]).await;
    server.command(&["SET", "spoilt", "text"]).await;
    soon("the server says so", gone.lost()).await;
    soon("it is no lock any more", spoilt.lost()).await;
    // Long after the end of the first lease.
    let other = Client::connect(&server.url()).await.unwrap();
    assert!(other.lock("good").try_acquire_for(Duration::from_secs(3)).await.unwrap().is_none());
    assert!(good.is_valid());
}

/// A nested hold with its own lease ends with that, and the outer hold continues to be renewed.
#[tokio::test]
async fn a_nested_lease_ends_alone() {
    let Some(server) = RedisServer::start() else { return };
    let client = Client::builder()
        .endpoint(server.url())
        .watchdog_timeout(Duration::from_secs(2))
        .connect()
        .await
        .unwrap();
    let (lock, owner) = (client.lock("stock"), OwnerId::new(1));
    let outer = lock.acquire().owner(owner).await.unwrap();
    let inner = lock.acquire().owner(owner).lease(Duration::from_millis(200)).await.unwrap();
    assert_eq!(soon("its lease ends", inner.lost()).await, LossCause::Expired);
    assert!(outer.is_valid());
    inner.release().await.unwrap();
    assert_eq!(lock.hold_count(owner).await.unwrap(), 1);
    outer.release().await.unwrap();
    assert!(!lock.is_locked().await.unwrap());
}

/// A client without guards keeps neither tasks nor connections.
#[tokio::test]
async fn a_dropped_client_leaves_no_connection() {
    let Some(server) = RedisServer::start() else { return };
    let connected = async || {
        let list: String = redis::from_redis_value(server.command(&["CLIENT", "LIST"]).await).unwrap();
        list.lines().count()
    };
    let client = Client::connect(&server.url()).await.unwrap();
    let guard = client.lock("stock").acquire().await.unwrap();
    assert!(client.lock("stock").try_acquire_for(Duration::from_millis(100)).await.unwrap().is_none());
    // The command connection, the subscriber and the connection of this test.
    assert!(connected().await >= 3);
    guard.release().await.unwrap();
    drop(client);
    eventually("only the one that asks is left", async || connected().await == 1).await;
}

/// A server that is back without its data may have given the lock away. The next renewal is ten
/// seconds away; the holder checks as soon as it has a connection again.
#[tokio::test]
async fn a_holder_looks_at_once_after_a_reconnect() {
    let Some(mut server) = RedisServer::start() else { return };
    let client = Client::connect(&server.url()).await.unwrap();
    let guard = client.lock("stock").acquire().await.unwrap();
    #[expect(clippy::disallowed_methods, reason = "a limit in real time")]
    let begun = std::time::Instant::now();
    server.crash();
    server.restart();
    assert_eq!(soon("the server says so", guard.lost()).await, LossCause::NotHeld);
    // The server is away for a moment, and the delay before a repeat is at most one second.
    assert!(begun.elapsed() < Duration::from_secs(6), "{:?}", begun.elapsed());
}

/// Times that the test and its observer share.
#[derive(Default)]
struct Told {
    failed: Mutex<Option<std::time::Instant>>,
    renewed: Mutex<Option<std::time::Instant>>,
}

impl Observer for Told {
    fn observe(&self, event: &Event<'_>) {
        #[expect(clippy::disallowed_methods, reason = "a limit in real time")]
        let now = std::time::Instant::now();
        match event.kind {
            EventKind::RenewFailed { .. } => *self.failed.lock().unwrap() = Some(now),
            EventKind::Renewed { .. } => *self.renewed.lock().unwrap() = Some(now),
            _ => {}
        }
    }
}

/// A renewal is refused, as by a master that is about to change. The next try comes after the delay
/// of a repeat, not a third of the lease later.
#[tokio::test]
async fn a_failed_renewal_is_repeated_soon() {
    let Some(server) = RedisServer::start() else { return };
    let told = Arc::new(Told::default());
    let client = Client::builder()
        .endpoint(server.url())
        .watchdog_timeout(Duration::from_secs(9))
        .retry_delay(Duration::from_millis(50), Duration::from_millis(100))
        .observer(told.clone())
        .connect()
        .await
        .unwrap();
    let guard = client.lock("stock").acquire().await.unwrap();
    // No server listens at this master, so the data stays.
    server.command(&["REPLICAOF", "127.0.0.1", "1"]).await;
    eventually("a renewal is refused", async || told.failed.lock().unwrap().is_some()).await;
    server.command(&["REPLICAOF", "NO", "ONE"]).await;
    eventually("it is repeated", async || told.renewed.lock().unwrap().is_some()).await;
    let (failed, renewed) = (told.failed.lock().unwrap().unwrap(), told.renewed.lock().unwrap().unwrap());
    assert!(renewed - failed < Duration::from_millis(1500), "{:?}", renewed - failed);
    guard.release().await.unwrap();
}

/// A lock that is released by force is lost and no longer renewed; other locks are.
#[tokio::test]
async fn a_forced_release_ends_the_renewal_of_that_lock_alone() {
    let Some(server) = RedisServer::start() else { return };
    let (client, renewals) = Renewals::counted(&server).await;
    let forced = client.lock("forced").acquire().await.unwrap();
    let kept = client.lock("kept").acquire().await.unwrap();
    assert!(client.lock("forced").force_release().await.unwrap());
    let (of_forced, of_kept) = (renewals.of("forced"), renewals.of("kept"));
    eventually("the other lock is renewed", async || renewals.of("kept") > of_kept + 1).await;
    assert_eq!(renewals.of("forced"), of_forced);
    kept.release().await.unwrap();
    drop(forced);
}
