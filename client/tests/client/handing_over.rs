//! Holds without a guard: forgotten holds, holds adopted by another client, and holds of `with`.

use std::time::Duration;

use lockstorm_client::{Client, ErrorKind, Handle, Object, OwnerId, Redlock};
use lockstorm_sim::TestServer;

use crate::support::{RedisServer, eventually, soon, task};

const LEASE: Duration = Duration::from_secs(60);

/// The simulator, and a real server if available.
struct Servers {
    simulated: Vec<TestServer>,
    real: Vec<RedisServer>,
}

impl Servers {
    async fn start(count: usize) -> Self {
        let mut simulated = Vec::new();
        for _ in 0..count {
            simulated.push(TestServer::start().await.unwrap());
        }
        Self { simulated, real: (0..count).map_while(|_| RedisServer::start()).collect() }
    }

    /// The URLs of each kind that has servers.
    fn urls(&self) -> Vec<Vec<String>> {
        let mut all = vec![self.simulated.iter().map(TestServer::url).collect::<Vec<_>>()];
        all.push(self.real.iter().map(RedisServer::url).collect());
        all.retain(|urls| !urls.is_empty());
        all
    }
}

async fn client(url: &str) -> Client {
    Client::builder().endpoint(url).watchdog_timeout(Duration::from_millis(1500)).connect().await.unwrap()
}

#[tokio::test]
async fn a_forgotten_lock_ends_with_its_lease() {
    let servers = Servers::start(3).await;
    for urls in servers.urls() {
        let mut clients = Vec::new();
        for url in &urls {
            clients.push(client(url).await);
        }
        let redlock = Redlock::builder(clients.iter().cloned()).node_timeout(Duration::from_secs(5));
        let (one, redlock) = (&clients[0], redlock.build("majority").unwrap());
        stays_until_its_lease_ends(&one.lock("plain")).await;
        stays_until_its_lease_ends(&one.fair_lock("fair")).await;
        stays_until_its_lease_ends(&one.fenced_lock("fenced")).await;
        stays_until_its_lease_ends(&redlock).await;
        // Closing releases holds with a guard; this one has none.
        one.lock("left").acquire().lease(LEASE).await.unwrap().forget();
        redlock.acquire().lease(LEASE).await.unwrap().forget();
        one.close().await.unwrap();
        let other = client(&urls[0]).await;
        assert!(other.lock("left").is_locked().await.unwrap());
        assert!(other.lock("majority").is_locked().await.unwrap(), "each of its nodes is left as it is");
    }
}

async fn stays_until_its_lease_ends<O: Object>(lock: &Handle<O>) {
    lock.acquire().await.unwrap().forget();
    assert!(lock.is_locked().await.unwrap(), "{lock:?}");
    assert!(lock.try_acquire().await.unwrap().is_none(), "{lock:?}");
    // With renewals it would last as long as the client.
    let next = soon("its lease ends", lock.acquire().into_future()).await.unwrap();
    next.release().await.unwrap();
}

#[tokio::test]
async fn a_hold_is_handed_over() {
    let servers = Servers::start(1).await;
    for urls in servers.urls() {
        let (mine, theirs) = (client(&urls[0]).await, client(&urls[0]).await);
        let (lock, other) = (mine.lock("stock"), theirs.lock("stock"));
        let guard = lock.acquire().lease(LEASE).await.unwrap();
        let owner = guard.owner().to_owned();
        guard.forget();
        let error = other.adopt("nobody:1").await.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::NotHeld { .. }), "{error}");
        let adopted = other.adopt(&owner).await.unwrap();
        assert_eq!(adopted.owner(), owner);
        assert!(adopted.is_valid() && other.remaining().await.unwrap().unwrap() > LEASE / 2);
        let error = other.adopt(&owner).await.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::NotHeld { .. }), "one level, one guard: {error}");
        adopted.release().await.unwrap();
        assert!(!lock.is_locked().await.unwrap());
        let error = other.adopt(&owner).await.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::NotHeld { .. }), "{error}");
    }
}

/// The handed-over lease is the watchdog's of 1.5 s. The adopted guard is renewed beyond it, and
/// has the granted token.
#[tokio::test]
async fn an_adopted_hold_is_renewed() {
    let servers = Servers::start(1).await;
    for urls in servers.urls() {
        let (mine, theirs) = (client(&urls[0]).await, client(&urls[0]).await);
        let guard = mine.fenced_lock("stock").acquire().await.unwrap();
        let (owner, token) = (guard.owner().to_owned(), guard.token());
        guard.forget();
        let lock = theirs.fenced_lock("stock");
        let adopted = lock.adopt(&owner).await.unwrap();
        assert_eq!(adopted.token(), token);
        assert!(mine.fenced_lock("stock").try_acquire_for(Duration::from_secs(4)).await.unwrap().is_none());
        assert!(adopted.is_valid());
        adopted.release().await.unwrap();
        assert!(!lock.is_locked().await.unwrap());
    }
}

#[tokio::test]
async fn each_level_is_adopted_by_itself() {
    let servers = Servers::start(1).await;
    for urls in servers.urls() {
        let (mine, theirs) = (client(&urls[0]).await, client(&urls[0]).await);
        let mut owner = String::new();
        for _ in 0..2 {
            let guard = mine.lock("stock").acquire().owner(OwnerId::new(1)).await.unwrap();
            guard.owner().clone_into(&mut owner);
            guard.forget();
        }
        let lock = theirs.lock("stock");
        let levels = [lock.adopt(&owner).await.unwrap(), lock.adopt(&owner).await.unwrap()];
        assert!(lock.adopt(&owner).await.is_err());
        for level in levels {
            assert!(lock.is_locked().await.unwrap());
            level.release().await.unwrap();
        }
        assert!(!lock.is_locked().await.unwrap());
    }
}

#[tokio::test]
async fn work_under_a_lock_ends_with_its_release() {
    let servers = Servers::start(1).await;
    for urls in servers.urls() {
        let client = client(&urls[0]).await;
        let lock = client.lock("stock");
        let done = lock.acquire().with(async |guard| guard.key().to_owned()).await.unwrap();
        assert_eq!(done.value, "stock");
        done.released.unwrap();
        assert!(!lock.is_locked().await.unwrap());

        // The lock is taken: the work does not run.
        let guard = lock.acquire().await.unwrap();
        let done = lock.with(Duration::from_millis(50), async |_| unreachable!("not without the lock")).await;
        assert!(done.unwrap().is_none());
        guard.release().await.unwrap();

        // The lock is lost during the work: the value is returned all the same.
        let done = lock.try_acquire().with(async |_| lock.force_release().await.unwrap()).await.unwrap();
        let done = done.expect("free");
        let error = done.released.unwrap_err();
        assert!(done.value && matches!(error.kind(), ErrorKind::NotHeld { .. }), "{error}");

        // The work panics, and the caller drops the future.
        for panics in [true, false] {
            let lock = lock.clone();
            let work = task({
                let lock = lock.clone();
                async move {
                    let done = lock.acquire().with(async |_| {
                        assert!(!panics, "on purpose");
                        std::future::pending::<()>().await;
                    });
                    done.await.unwrap().released
                }
            });
            if !panics {
                eventually("it is taken", async || lock.is_locked().await.unwrap()).await;
                work.abort();
            }
            assert!(work.await.is_err());
            eventually("it is released", async || !lock.is_locked().await.unwrap()).await;
        }
    }
}
