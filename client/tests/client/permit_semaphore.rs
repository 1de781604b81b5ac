//! Expirable semaphores: IDs, leases, the server's clock, and lost replies. On the simulator and on
//! a real server.

use std::time::Duration;

use lockstorm_client::{Client, ErrorKind, PermitId, PermitSemaphore};
use redis::Value;

use crate::support::{Flow, Proxy, RedisServer, eventually, on_each_server, soon, task};

const LEASE: Duration = Duration::from_secs(10);
const SHORT: Duration = Duration::from_millis(300);
const WATCHDOG: Duration = Duration::from_millis(900);

async fn semaphore(url: &str) -> PermitSemaphore {
    let client = Client::builder().endpoint(url).watchdog_timeout(WATCHDOG).connect().await.unwrap();
    client.permit_semaphore("seats")
}

/// Runs one command and returns its reply.
async fn command(url: &str, words: &[&[u8]]) -> Value {
    let client = redis::Client::open(url).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let mut command = redis::cmd(std::str::from_utf8(words[0]).unwrap());
    command.arg(&words[1..]).query_async(&mut connection).await.unwrap()
}

/// The numbers of available and of acquired permits.
async fn counts(of: &PermitSemaphore) -> (i64, u64) {
    (of.available().await.unwrap(), of.acquired().await.unwrap())
}

#[tokio::test]
async fn permits_are_counted_and_named() {
    on_each_server(async |url| {
        let (mine, other) = (semaphore(url).await, semaphore(url).await);
        assert_eq!(counts(&mine).await, (0, 0), "there is no semaphore");
        assert!(mine.try_acquire(1).await.unwrap().is_none());
        assert!(mine.set_permits(3).await.unwrap());
        assert!(!mine.set_permits(7).await.unwrap(), "there is one already");

        let two = mine.acquire(2).lease(LEASE).await.unwrap();
        let ids = two.ids().to_vec();
        assert!(ids.len() == 2 && ids[0] != ids[1], "{ids:?}");
        assert!(two.validity() > LEASE / 2 && two.validity() < LEASE);
        // In Redisson's form: the bytes of the IDs, by their deadlines.
        let members: Vec<Vec<u8>> =
            redis::from_redis_value(command(url, &[b"ZRANGE", b"{seats}:timeout", b"0", b"-1"]).await)
                .unwrap();
        assert!(ids.iter().all(|id| members.contains(&id.as_bytes().to_vec())), "{members:?}");
        assert_eq!(counts(&other).await, (1, 2));
        assert!(other.try_acquire(2).await.unwrap().is_none(), "all or none");
        assert_eq!(counts(&other).await, (1, 2));
        two.release().await.unwrap();
        assert_eq!(counts(&other).await, (3, 0));

        let guard = other.acquire(3).await.unwrap();
        assert!(mine.try_acquire_for(1, Duration::from_millis(50)).await.unwrap().is_none());
        drop(guard);
        eventually("the drop gives them back", async || counts(&mine).await == (3, 0)).await;

        // Fewer permits than are acquired: the available number is negative until they are
        // released.
        let ids = mine.acquire(3).lease(LEASE).await.unwrap().forget();
        mine.add_permits(-2).await.unwrap();
        assert_eq!(counts(&mine).await, (-2, 3));
        assert!(mine.release(&ids).await.unwrap());
        assert_eq!(counts(&mine).await, (1, 0));
    })
    .await;
}

#[tokio::test]
async fn what_cannot_be_asked_is_refused_before_anything_is_sent() {
    let client = Client::builder().endpoint("redis://127.0.0.1:1").build().unwrap();
    let (seats, nameless) = (client.permit_semaphore("seats"), client.permit_semaphore(""));
    let id: PermitId = "00112233445566778899aabbccddeeff".parse().unwrap();
    for error in [
        seats.acquire(0).await.unwrap_err(),
        seats.acquire(10_001).await.unwrap_err(),
        seats.acquire(1).lease(Duration::ZERO).await.unwrap_err(),
        seats.update_lease(id, Duration::ZERO).await.unwrap_err(),
        nameless.acquire(1).await.unwrap_err(),
        nameless.release(&[id]).await.unwrap_err(),
        nameless.available().await.unwrap_err(),
    ] {
        assert!(matches!(error.kind(), ErrorKind::Config(_)) && error.is_definite(), "{error}");
    }
}

/// Permits are released by their IDs, from another client: all or none.
#[tokio::test]
async fn permits_are_given_back_by_their_ids() {
    on_each_server(async |url| {
        let (mine, other) = (semaphore(url).await, semaphore(url).await);
        mine.set_permits(3).await.unwrap();
        let ids = mine.acquire(3).lease(LEASE).await.unwrap().forget();
        let unknown: PermitId = "00112233445566778899aabbccddeeff".parse().unwrap();
        assert!(!other.release(&[unknown]).await.unwrap());
        assert!(!other.release(&[ids[0], unknown]).await.unwrap());
        assert_eq!(counts(&mine).await, (0, 3), "none was given back");
        assert!(other.release(&ids[..2]).await.unwrap());
        assert!(!other.release(&ids[..1]).await.unwrap(), "it is back already");
        assert_eq!(counts(&mine).await, (2, 1));
        assert!(other.release(&[]).await.unwrap());

        // One of a guard's permits is released: the guard releases the rest.
        let guard = mine.acquire(2).lease(LEASE).await.unwrap();
        assert!(other.release(&guard.ids()[..1]).await.unwrap());
        guard.release().await.unwrap();
        assert_eq!(counts(&mine).await, (2, 1));
        let guard = mine.acquire(1).lease(LEASE).await.unwrap();
        assert!(other.release(guard.ids()).await.unwrap());
        let error = guard.release().await.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::NotHeld { .. }), "{error}");
        assert_eq!(counts(&mine).await, (2, 1));
    })
    .await;
}

/// A holder neither renews nor releases: its permit comes back with the end of its lease, and wakes
/// a waiter without a message.
#[tokio::test]
async fn an_expired_permit_comes_back() {
    on_each_server(async |url| {
        let (mine, other) = (semaphore(url).await, semaphore(url).await);
        mine.set_permits(1).await.unwrap();
        let ids = mine.acquire(1).lease(SHORT).await.unwrap().forget();
        assert_eq!(counts(&other).await, (0, 1));
        let next = soon("it expires", async { other.acquire(1).await }).await.unwrap();
        assert!(!mine.release(&ids).await.unwrap(), "it has expired");
        assert_eq!(counts(&mine).await, (0, 1));
        next.release().await.unwrap();

        // The holder's own clock shows the end first.
        let guard = mine.acquire(1).lease(SHORT).await.unwrap();
        soon("the holder is notified", guard.lost()).await;
        // It counts as available before any script takes it back.
        eventually("it expires", async || counts(&other).await == (1, 0)).await;
        let error = guard.release().await.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::NotHeld { .. }), "{error}");
        assert_eq!(counts(&other).await, (1, 0));
    })
    .await;
}

/// Without a lease the watchdog renews; a handed-over permit is no longer renewed.
#[tokio::test]
async fn permits_without_a_lease_are_renewed() {
    on_each_server(async |url| {
        let (mine, other) = (semaphore(url).await, semaphore(url).await);
        mine.set_permits(2).await.unwrap();
        let guard = mine.acquire(2).await.unwrap();
        assert!(other.try_acquire_for(1, 2 * WATCHDOG).await.unwrap().is_none());
        assert!(guard.is_valid());
        let ids = guard.forget();
        soon("they expire", async { other.acquire(2).await }).await.unwrap().release().await.unwrap();
        assert!(!mine.release(&ids).await.unwrap());

        // The server reports that one of them is gone: the guard is lost, and the other permit is
        // given back with it.
        let guard = mine.acquire(2).await.unwrap();
        assert!(other.release(&guard.ids()[1..]).await.unwrap());
        soon("the next renewal tells", guard.lost()).await;
        guard.release().await.unwrap();
        assert_eq!(counts(&mine).await, (2, 0));
    })
    .await;
}

#[tokio::test]
async fn a_lease_is_set_anew() {
    on_each_server(async |url| {
        let seats = semaphore(url).await;
        seats.set_permits(1).await.unwrap();
        let ids = seats.acquire(1).lease(SHORT).await.unwrap().forget();
        assert!(seats.update_lease(ids[0], LEASE).await.unwrap());
        assert!(seats.try_acquire_for(1, 2 * SHORT).await.unwrap().is_none(), "longer");
        assert!(seats.update_lease(ids[0], SHORT).await.unwrap());
        let next = soon("shorter", async { seats.acquire(1).await }).await.unwrap();
        assert!(!seats.update_lease(ids[0], LEASE).await.unwrap(), "it has expired");
        assert_eq!(counts(&seats).await, (0, 1));
        // The guard's own extension never shortens the lease.
        next.extend(LEASE).await.unwrap();
        assert!(next.validity() > LEASE / 2);
        next.extend(SHORT).await.unwrap();
        assert!(next.validity() > LEASE / 2);
        next.release().await.unwrap();
    })
    .await;
}

/// The form of Redisson's permit without a lease: it never expires, and a waiter has no time to
/// wait for.
#[tokio::test]
async fn a_permit_of_redissons_without_a_lease_never_ends() {
    on_each_server(async |url| {
        let seats = semaphore(url).await;
        seats.set_permits(1).await.unwrap();
        command(url, &[b"SET", b"seats", b"0"]).await;
        let id: PermitId = "00112233445566778899aabbccddeeff".parse().unwrap();
        command(url, &[b"ZADD", b"{seats}:timeout", b"922337203685477", id.as_bytes()]).await;
        assert_eq!(counts(&seats).await, (0, 1));
        assert!(seats.try_acquire_for(1, SHORT).await.unwrap().is_none());
        assert!(seats.release(&[id]).await.unwrap());
        assert_eq!(counts(&seats).await, (1, 0));
    })
    .await;
}

/// The server executes each change, and its reply never comes: the repeat finds it, and does not
/// change anything again.
#[tokio::test]
async fn a_change_whose_reply_is_lost_happens_once() {
    let Some(server) = RedisServer::start() else { return };
    let proxy = Proxy::to(&server).await;
    // The caller gets an error after twice the timeout; even on a busy machine the test sees the
    // server's state before that.
    let client = Client::builder()
        .endpoint(proxy.url())
        .response_timeout(Duration::from_millis(1500))
        .connect_timeout(Duration::from_millis(1000))
        .retry_delay(Duration::from_millis(50), Duration::from_millis(100))
        .connect()
        .await
        .unwrap();
    let (seats, direct) = (client.permit_semaphore("seats"), semaphore(&server.url()).await);
    // The server knows the scripts from here on, so that each change is one request.
    direct.set_permits(9).await.unwrap();
    direct.acquire(1).await.unwrap().release().await.unwrap();
    seats.available().await.unwrap();

    proxy.replies(Flow::Swallow);
    let asking = task({
        let seats = seats.clone();
        async move { seats.acquire(2).await.unwrap() }
    });
    eventually("the server obeys", async || counts(&direct).await == (7, 2)).await;
    proxy.replies(Flow::Pass);
    let guard = soon("it finds them", asking).await.unwrap();
    assert!(guard.is_valid());
    assert_eq!(counts(&direct).await, (7, 2));

    proxy.replies(Flow::Swallow);
    let releasing = task(guard.release());
    eventually("the server obeys", async || counts(&direct).await == (9, 0)).await;
    proxy.replies(Flow::Pass);
    soon("it finds out", releasing).await.unwrap().unwrap();
    assert_eq!(counts(&direct).await, (9, 0));

    let ids = direct.acquire(1).lease(LEASE).await.unwrap().forget();
    proxy.replies(Flow::Swallow);
    let releasing = task(async move { seats.release(&ids).await.unwrap() });
    eventually("the server obeys", async || counts(&direct).await == (9, 0)).await;
    proxy.replies(Flow::Pass);
    assert!(soon("it finds out", releasing).await.unwrap(), "its own request gave them back");
}

/// The caller drops the future while the request is under way: the permits that it brings are given
/// back.
#[tokio::test]
async fn a_dropped_acquire_keeps_no_permits() {
    let Some(server) = RedisServer::start() else { return };
    let proxy = Proxy::to(&server).await;
    let (seats, direct) = (semaphore(&proxy.url()).await, semaphore(&server.url()).await);
    direct.set_permits(1).await.unwrap();
    // The server knows the scripts from here on, so that the next acquire is one request.
    seats.acquire(1).await.unwrap().release().await.unwrap();
    proxy.replies(Flow::Hold);
    let asking = task(async move { seats.acquire(1).lease(LEASE).await });
    eventually("it is granted", async || counts(&direct).await == (0, 1)).await;
    asking.abort();
    proxy.replies(Flow::Pass);
    eventually("it is given back", async || counts(&direct).await == (1, 0)).await;
}
