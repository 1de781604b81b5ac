//! Releases: repeats, remaining levels, and refusals of the server.

use std::time::Duration;

use lockstorm_client::{Client, Error, ErrorKind, Handle, Object, OwnerId};
use lockstorm_sim::TestServer;
use redis::Value;

use crate::support::{Flow, Proxy, RedisServer, command, eventually, impatient, task};

fn same() -> OwnerId {
    OwnerId::new(1)
}

/// The simulator, and a real server if available.
struct Both {
    simulated: TestServer,
    real: Option<RedisServer>,
}

impl Both {
    async fn start() -> Self {
        Self { simulated: TestServer::start().await.unwrap(), real: RedisServer::start() }
    }

    fn urls(&self) -> Vec<String> {
        [Some(self.simulated.url()), self.real.as_ref().map(RedisServer::url)].into_iter().flatten().collect()
    }
}

/// A URL of the same server, for a user with these rights.
async fn user(url: &str, rights: &str) -> String {
    command(url, &format!("ACL SETUSER clerk on >secret ~* {rights}")).await;
    url.replace("redis://", "redis://clerk:secret@")
}

/// Regression: the network delays the release until it has been repeated and the owner has the lock
/// again. The latch that would have distinguished the first copy from a new release was deleted by
/// then, and the copy freed the next hold.
#[tokio::test]
async fn a_late_duplicate_release_freed_the_next_hold_of_its_owner() {
    let Some(server) = RedisServer::start() else { return };
    // With and without the right to end the old connection. Without it the latch stays, for a copy
    // that may yet come; with it the next release deletes the latch, and leaves its own.
    for (rights, latches) in [("&* +@all", 1), ("&* +@all -client|kill", 2)] {
        server.command(&["FLUSHALL"]).await;
        let proxy = Proxy::to(&server).await;
        user(&server.url(), rights).await;
        let client = impatient(&proxy.url().replace("redis://", "redis://clerk:secret@")).await;
        let lock = client.lock("stock");
        // The server knows the scripts from here on, so that the next release is one request.
        lock.acquire().owner(same()).await.unwrap().release().await.unwrap();
        let first = lock.acquire().owner(same()).await.unwrap();

        let connections = async || {
            let list: String = redis::from_redis_value(server.command(&["CLIENT", "LIST"]).await).unwrap();
            let ours = list.lines().filter(|line| line.contains("user=clerk"));
            ours.map(|line| line.split(' ').next().unwrap().to_owned()).collect::<Vec<_>>()
        };
        let old = connections().await[0].clone();
        proxy.requests_on_open_connections(Flow::Hold);
        first.release().await.unwrap();
        let second = lock.acquire().owner(same()).await.unwrap();
        // Once passed on, the first copy reaches no open connection, or is executed before the
        // server sees the end of the connection.
        proxy.requests(Flow::Pass);
        eventually("the old connection ends", async || !connections().await.contains(&old)).await;
        assert_eq!(lock.hold_count(same()).await.unwrap(), 1, "{rights}");
        second.release().await.unwrap();
        assert!(!lock.is_locked().await.unwrap());
        let latch = server.command(&["KEYS", "redisson_unlock_latch*"]).await;
        let Value::Array(left) = latch else { panic!("a list of keys") };
        assert_eq!(left.len(), latches, "{rights}");
    }
}

/// Regression: the release set the watchdog's 30 s on the remaining levels.
#[tokio::test]
async fn giving_back_one_level_turned_a_lease_into_30_s() {
    let both = Both::start().await;
    for url in both.urls() {
        let client = Client::connect(&url).await.unwrap();
        keeps_its_lease(&url, client.lock("plain")).await;
        keeps_its_lease(&url, client.fair_lock("fair")).await;
        keeps_its_lease(&url, client.fenced_lock("fenced")).await;
    }
}

async fn keeps_its_lease<O: Object>(url: &str, lock: Handle<O>) {
    let lease = Duration::from_secs(5);
    let outer = lock.acquire().owner(same()).lease(lease).await.unwrap();
    lock.acquire().owner(same()).lease(lease).await.unwrap().release().await.unwrap();
    assert!(lock.remaining().await.unwrap().unwrap() <= lease, "{lock:?} on {url}");
    outer.release().await.unwrap();
    assert!(!lock.is_locked().await.unwrap(), "{lock:?} on {url}");
}

/// Regression: the first write of the release script was one that may need memory.
#[tokio::test]
async fn a_full_server_refused_the_release() {
    let both = Both::start().await;
    for url in both.urls() {
        // With repeats, the client would ask again, because memory may be freed.
        let client = Client::builder().endpoint(&*url).retry_attempts(0).connect().await.unwrap();
        can_be_released_on_a_full_server(&url, client.lock("plain")).await;
        can_be_released_on_a_full_server(&url, client.fair_lock("fair")).await;
        can_be_released_on_a_full_server(&url, client.fenced_lock("fenced")).await;
        can_be_released_on_a_full_server(&url, client.spin_lock("spin")).await;
        can_be_released_on_a_full_server(&url, client.rw_lock("read").read()).await;
        can_be_released_on_a_full_server(&url, client.rw_lock("written").write()).await;
        let seats = client.semaphore("seats");
        let expiring = client.permit_semaphore("expiring seats");
        seats.set_permits(2).await.unwrap();
        expiring.set_permits(2).await.unwrap();
        let (one, other) = (seats.acquire(1).await.unwrap(), expiring.acquire(1).await.unwrap());
        command(&url, "CONFIG SET maxmemory 1").await;
        one.release().await.unwrap();
        expiring.release(other.ids()).await.unwrap();
        assert_eq!(
            (seats.available().await.unwrap(), expiring.available().await.unwrap()),
            (2, 2),
            "on {url}"
        );
        command(&url, "CONFIG SET maxmemory 0").await;
        let _ = other.forget();
    }
}

async fn can_be_released_on_a_full_server<O: Object>(url: &str, lock: Handle<O>) {
    let outer = lock.acquire().owner(same()).await.unwrap();
    let inner = lock.acquire().owner(same()).await.unwrap();
    command(url, "CONFIG SET maxmemory 1").await;
    let error = lock.acquire().owner(same()).await.unwrap_err();
    assert!(error.is_definite(), "{error}");
    assert!(matches!(error.kind(), ErrorKind::Server { code, .. } if code == "OOM"), "{error}");
    inner.release().await.unwrap();
    assert_eq!(lock.hold_count(same()).await.unwrap(), 1, "{lock:?} on {url}");
    outer.release().await.unwrap();
    assert!(!lock.is_locked().await.unwrap(), "{lock:?} on {url}");
    command(url, "CONFIG SET maxmemory 0").await;
}

/// Regression: the user has the right to the key but not to the channel: the script deleted the
/// lock and failed at PUBLISH, and the error claimed that nothing had changed.
#[tokio::test]
async fn a_release_that_may_not_publish_was_told_to_have_changed_nothing() {
    let both = Both::start().await;
    for url in both.urls() {
        let client = Client::connect(&user(&url, "resetchannels +@all").await).await.unwrap();
        is_released_without_a_message(&url, client.lock("plain")).await;
        is_released_without_a_message(&url, client.fenced_lock("fenced")).await;
        is_released_without_a_message(&url, client.rw_lock("read").read()).await;
        is_released_without_a_message(&url, client.rw_lock("written").write()).await;
        is_released_without_a_message(&url, client.faster_multi_lock("group", ["a", "b"])).await;
        is_released_without_a_message_to_the_head(&url, &client).await;
        let latch = client.latch("start");
        // Closing the latch is published, too.
        is_not_published(&latch.try_set(1).await.unwrap_err());
        assert_eq!(latch.count().await.unwrap(), 1, "on {url}");
        is_not_published(&latch.count_down().await.unwrap_err());
        assert_eq!(latch.count().await.unwrap(), 0, "on {url}");
        let seats = client.semaphore("seats");
        // No message announces the first permits.
        let _ = seats.set_permits(1).await;
        is_not_published(&seats.acquire(1).await.unwrap().release().await.unwrap_err());
        assert_eq!(seats.available().await.unwrap(), 1, "on {url}");
        let seats = client.permit_semaphore("expiring seats");
        let _ = seats.set_permits(1).await;
        let permits = seats.acquire(1).await.unwrap();
        is_not_published(&seats.release(permits.ids()).await.unwrap_err());
        assert_eq!(seats.available().await.unwrap(), 1, "on {url}");
        let _ = permits.forget();
    }
}

/// The call made its change, but no message announced it.
fn is_not_published(error: &Error) {
    assert!(matches!(error.kind(), ErrorKind::NotPublished { .. }) && !error.is_definite(), "{error}");
}

async fn is_released_without_a_message<O: Object>(url: &str, lock: Handle<O>) {
    let guard = lock.acquire().await.unwrap();
    is_not_published(&guard.release().await.unwrap_err());
    assert!(!lock.is_locked().await.unwrap(), "on {url}");
    let guard = lock.acquire().await.unwrap();
    is_not_published(&lock.force_release().await.unwrap_err());
    assert!(!lock.is_locked().await.unwrap(), "on {url}");
    drop(guard);
}

/// A fair lock publishes to the next waiter, and nothing without one. The waiter may find out by
/// itself, and immediately if it has just come.
async fn is_released_without_a_message_to_the_head(url: &str, client: &Client) {
    let lock = client.fair_lock("fair");
    let in_queue = async || command(url, "LLEN redisson_lock_queue:{fair}").await;
    for is_forced in [false, true] {
        let guard = lock.acquire().owner(same()).await.unwrap();
        let patient = Client::connect(url).await.unwrap();
        let waiting = task(async move { patient.fair_lock("fair").acquire().await });
        eventually("it queues", async || in_queue().await == Value::Int(1)).await;
        let released = if is_forced { lock.force_release().await.map(drop) } else { guard.release().await };
        is_not_published(&released.unwrap_err());
        assert_eq!(lock.hold_count(same()).await.unwrap(), 0, "on {url}");
        waiting.abort();
        // Dropping the task also drops a guard that it may have received.
        drop(waiting);
        eventually("it is free", async || {
            !lock.is_locked().await.unwrap() && in_queue().await == Value::Int(0)
        })
        .await;
    }
}

/// Regression: the script takes the lock and fails at its next command, which this user may not
/// use. The error claimed that nothing had changed, and a key without a TTL remained.
#[tokio::test]
async fn an_acquire_that_failed_half_way_is_undone() {
    let both = Both::start().await;
    for url in both.urls() {
        let client = Client::connect(&user(&url, "&* +@all -pexpire").await).await.unwrap();
        let lock = client.lock("plain");
        let error = lock.try_acquire().await.unwrap_or_else(|error| panic!("{error} on {url}"));
        assert!(error.is_none());
        assert!(!lock.is_locked().await.unwrap(), "on {url}");
    }
}

/// Regression: a release deletes the latches of earlier ones, which belong to other locks. The user
/// loses the right to one of them while connected, and the release of a lock to which it has every
/// right was refused.
#[tokio::test]
async fn a_release_failed_for_the_latch_of_another_lock() {
    let both = Both::start().await;
    for url in both.urls() {
        let as_clerk = user(&url, "&* +@all").await;
        let client = Client::connect(&as_clerk).await.unwrap();
        loses_the_right_to_another(&url, &client.lock("other"), &client.lock("stock")).await;
        loses_the_right_to_another(&url, &client.fair_lock("other"), &client.fair_lock("stock")).await;
        loses_the_right_to_another(&url, &client.spin_lock("other"), &client.spin_lock("stock")).await;
        let (other, stock) = (client.semaphore("other seats"), client.semaphore("stock seats"));
        other.set_permits(1).await.unwrap();
        command(&url, "ACL SETUSER clerk resetkeys ~*stock*").await;
        assert!(stock.set_permits(3).await.unwrap());
        assert_eq!(stock.available().await.unwrap(), 3, "on {url}");
    }
}

async fn loses_the_right_to_another<O: Object>(url: &str, other: &Handle<O>, lock: &Handle<O>) {
    command(url, "ACL SETUSER clerk allkeys").await;
    other.acquire().await.unwrap().release().await.unwrap();
    let guard = lock.acquire().await.unwrap();
    command(url, "ACL SETUSER clerk resetkeys ~*stock*").await;
    guard.release().await.unwrap_or_else(|error| panic!("{error}, {lock:?} on {url}"));
    assert!(!lock.is_locked().await.unwrap(), "{lock:?} on {url}");
    command(url, "ACL SETUSER clerk allkeys").await;
}
