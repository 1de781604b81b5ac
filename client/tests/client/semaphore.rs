//! Semaphores: the number of permits, wake-ups, and lost replies. On the simulator and on a real
//! server.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::{join_all, select_all};
use lockstorm_client::{Client, ErrorKind, Event, EventKind, Observer, Semaphore};
use redis::Value;

use crate::support::{
    Attempts, Flow, Proxy, RedisServer, command, eventually, impatient, listeners, on_each_server, soon, task,
};

const LONG: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(50);
const CHANNEL: &str = "redisson_sc:{seats}";

async fn semaphore(url: &str) -> Semaphore {
    Client::connect(url).await.unwrap().semaphore("seats")
}

/// Records the owners of acquired permits.
#[derive(Default)]
struct Owners(Mutex<Vec<String>>);

impl Observer for Owners {
    fn observe(&self, event: &Event<'_>) {
        if let EventKind::Acquired { .. } = event.kind {
            self.0.lock().unwrap().push(event.owner.to_owned());
        }
    }
}

#[tokio::test]
async fn permits_have_the_name_under_which_an_observer_is_notified_of_them() {
    on_each_server(async |url| {
        let owners = Arc::new(Owners::default());
        let client = Client::builder().endpoint(url).observer(owners.clone()).connect().await.unwrap();
        let seats = client.semaphore("seats");
        assert!(seats.set_permits(2).await.unwrap());
        let (one, other) = (seats.acquire(1).await.unwrap(), seats.acquire(1).await.unwrap());
        assert_eq!(*owners.0.lock().unwrap(), [one.owner(), other.owner()]);
        assert_ne!(one.owner(), other.owner());
    })
    .await;
}

#[tokio::test]
async fn permits_are_counted() {
    on_each_server(async |url| {
        let (mine, other) = (semaphore(url).await, semaphore(url).await);
        assert_eq!(mine.available().await.unwrap(), 0, "there is no semaphore");
        assert!(mine.try_acquire(1).await.unwrap().is_none());
        assert!(mine.set_permits(3).await.unwrap());
        assert!(!mine.set_permits(7).await.unwrap(), "there is one already");

        let two = mine.try_acquire(2).await.unwrap().expect("three are there");
        assert_eq!((two.count(), other.available().await.unwrap()), (2, 1));
        assert!(other.try_acquire(2).await.unwrap().is_none(), "all or none");
        assert_eq!(other.available().await.unwrap(), 1);
        let one = other.acquire(1).await.unwrap();
        assert!(other.try_acquire_for(1, SHORT).await.unwrap().is_none());
        assert!(!other.set_permits(3).await.unwrap(), "none left is not no semaphore");
        two.release().await.unwrap();
        assert_eq!(mine.available().await.unwrap(), 2);
        drop(one);
        eventually("the drop gives it back", async || mine.available().await.unwrap() == 3).await;

        // Handed over: the guard is gone, and the permits stay acquired.
        let taken = mine.acquire(2).await.unwrap().forget();
        assert_eq!((taken, mine.available().await.unwrap()), (2, 1));
        other.release(taken).await.unwrap();
        assert_eq!(mine.available().await.unwrap(), 3);

        mine.add_permits(2).await.unwrap();
        assert_eq!(mine.drain().await.unwrap(), 5);
        assert_eq!(mine.drain().await.unwrap(), 0);
        mine.add_permits(-5).await.unwrap();
        assert_eq!(mine.available().await.unwrap(), -5);
        mine.add_permits(10).await.unwrap();
        assert_eq!(mine.available().await.unwrap(), 5);
        mine.release(0).await.unwrap();
        assert_eq!(mine.available().await.unwrap(), 5);
    })
    .await;
}

#[tokio::test]
async fn what_cannot_be_asked_is_refused_before_anything_is_sent() {
    let client = Client::builder().endpoint("redis://127.0.0.1:1").build().unwrap();
    for error in [
        client.semaphore("seats").acquire(0).await.unwrap_err(),
        client.semaphore("").acquire(1).await.unwrap_err(),
        client.semaphore("").release(1).await.unwrap_err(),
        client.semaphore("").available().await.unwrap_err(),
    ] {
        assert!(matches!(error.kind(), ErrorKind::Config(_)) && error.is_definite(), "{error}");
    }
}

/// A key of another type is an error for every caller, not a semaphore without permits.
#[tokio::test]
async fn a_key_of_another_type_is_an_error() {
    on_each_server(async |url| {
        command(url, "HSET seats field value").await;
        let seats = semaphore(url).await;
        for error in [
            seats.acquire(1).await.unwrap_err(),
            seats.release(1).await.unwrap_err(),
            seats.available().await.unwrap_err(),
            seats.drain().await.unwrap_err(),
        ] {
            assert!(error.to_string().contains("WRONGTYPE") && error.is_definite(), "{error}");
        }
        command(url, "DEL seats").await;
        command(url, "SET seats many").await;
        seats.acquire(1).await.unwrap_err();
        seats.available().await.unwrap_err();
    })
    .await;
}

/// Three waiters of one client, and permits for two: two are served, and the third with the next
/// permit.
#[tokio::test]
async fn a_total_wakes_as_many_waiters_as_it_serves() {
    on_each_server(async |url| {
        let (waiter, giver) = (semaphore(url).await, semaphore(url).await);
        let waiting: Vec<_> = (0..3)
            .map(|_| {
                let waiter = waiter.clone();
                task(async move { waiter.acquire(1).await.unwrap().forget() })
            })
            .collect();
        listeners(url, CHANNEL, 1).await;
        giver.add_permits(2).await.unwrap();
        let (_, _, waiting) = soon("one is served", select_all(waiting)).await;
        let (_, _, waiting) = soon("another is served", select_all(waiting)).await;
        assert_eq!(giver.available().await.unwrap(), 0);
        assert!(!waiting[0].is_finished());
        giver.release(1).await.unwrap();
        soon("the third is served", join_all(waiting)).await;
        assert_eq!(giver.available().await.unwrap(), 0);
    })
    .await;
}

/// If each waiter wants one permit, the return of one does not wake all of them.
#[tokio::test]
async fn a_permit_is_not_announced_to_all_of_those_who_want_one() {
    on_each_server(async |url| {
        let looks = Arc::new(Attempts::default());
        let client = Client::builder().endpoint(url).observer(looks.clone()).connect().await.unwrap();
        let (waiter, giver) = (client.semaphore("seats"), semaphore(url).await);
        let waiting: Vec<_> = (0..3)
            .map(|_| {
                let waiter = waiter.clone();
                task(async move { waiter.acquire(1).await.unwrap().forget() })
            })
            .collect();
        // Each looks immediately, and again when the server has begun to listen for it.
        eventually("each has looked twice", async || looks.count() == 6).await;
        // Replies on one connection come in order: by now each has been refused.
        assert_eq!(waiter.available().await.unwrap(), 0);
        giver.release(1).await.unwrap();
        let (_, _, waiting) = soon("one is served", select_all(waiting)).await;
        // It passes the message on to another waiter, in case more permits are free.
        assert!((7..=8).contains(&looks.count()), "{} looks", looks.count());
        giver.release(2).await.unwrap();
        soon("the others are served", join_all(waiting)).await;
    })
    .await;
}

/// The first waiter wants two permits, and one comes: it is for the second waiter, which would
/// otherwise sleep until the next message.
#[tokio::test]
async fn a_permit_too_few_for_one_waiter_goes_to_another() {
    on_each_server(async |url| {
        let (waiter, giver) = (semaphore(url).await, semaphore(url).await);
        let two = task({
            let waiter = waiter.clone();
            async move { waiter.acquire(2).await.unwrap().forget() }
        });
        listeners(url, CHANNEL, 1).await;
        let one = task(async move { waiter.acquire(1).await.unwrap().forget() });
        // Both look in vain before a permit comes.
        assert!(giver.try_acquire_for(1, SHORT).await.unwrap().is_none());
        giver.release(1).await.unwrap();
        assert_eq!(soon("one is enough for one", one).await.unwrap(), 1);
        giver.release(1).await.unwrap();
        giver.release(1).await.unwrap();
        assert_eq!(soon("two are enough for two", two).await.unwrap(), 2);
    })
    .await;
}

/// Redisson's listener fails at a negative total, and its waiter sleeps on.
#[tokio::test]
async fn a_message_that_is_no_number_of_permits_wakes_by_a_look() {
    on_each_server(async |url| {
        for message in ["-3", "many", "99999999999999999999"] {
            command(url, "DEL seats").await;
            let waiter = semaphore(url).await;
            let waiting = task(async move { waiter.acquire(1).await.unwrap().forget() });
            listeners(url, CHANNEL, 1).await;
            // Set without a message, so that nothing else can wake the waiter.
            command(url, "SET seats 1").await;
            command(url, &format!("PUBLISH redisson_sc:{{seats}} {message}")).await;
            soon(message, waiting).await.unwrap();
            listeners(url, CHANNEL, 0).await;
        }
    })
    .await;
}

/// A waiter that is cancelled while it waits, or while it is served, keeps no permits.
#[tokio::test]
async fn a_dropped_waiter_keeps_no_permits() {
    on_each_server(async |url| {
        let (waiter, giver) = (semaphore(url).await, semaphore(url).await);
        let waiting = task(async move { waiter.acquire(1).await });
        listeners(url, CHANNEL, 1).await;
        waiting.abort();
        giver.set_permits(1).await.unwrap();
        listeners(url, CHANNEL, 0).await;
        eventually("it is not kept", async || giver.available().await.unwrap() == 1).await;
    })
    .await;
}

/// The server executes each change of the number, and its reply never comes: the change is not
/// repeated, and none is undone. Redisson's cluster and sentinel clients send it again, which leaks
/// a permit or invents one.
#[tokio::test]
async fn a_change_whose_reply_is_lost_happens_once() {
    let Some(server) = RedisServer::start() else { return };
    let proxy = Proxy::to(&server).await;
    let seats = impatient(&proxy.url()).await.semaphore("seats");
    let direct = semaphore(&server.url()).await;
    // The server knows the scripts from here on, so that each change is one request.
    direct.set_permits(10).await.unwrap();
    direct.acquire(1).await.unwrap().release().await.unwrap();
    direct.drain().await.unwrap();
    direct.add_permits(10).await.unwrap();
    seats.available().await.unwrap();

    // The number left once the server has executed the change, and at the end.
    let lost = async |left: i64, change: tokio::task::JoinHandle<()>| {
        eventually("the server obeys", async || direct.available().await.unwrap() == left).await;
        proxy.replies(Flow::Pass);
        soon("the client finds out", change).await.unwrap();
        assert_eq!(direct.available().await.unwrap(), left);
    };
    proxy.replies(Flow::Swallow);
    let asked = seats.clone();
    lost(8, task(async move { assert_eq!(asked.acquire(2).await.unwrap().forget(), 2) })).await;
    let guard = seats.acquire(3).await.unwrap();
    proxy.replies(Flow::Swallow);
    lost(8, task(async move { guard.release().await.unwrap() })).await;
    proxy.replies(Flow::Swallow);
    let asked = seats.clone();
    lost(9, task(async move { asked.release(1).await.unwrap() })).await;
    proxy.replies(Flow::Swallow);
    let asked = seats.clone();
    lost(6, task(async move { asked.add_permits(-3).await.unwrap() })).await;
    proxy.replies(Flow::Swallow);
    lost(0, task(async move { assert_eq!(seats.drain().await.unwrap(), 6) })).await;
}

/// The request is held up until the caller gets an error, and then executed or never: at the end no
/// permit is missing.
#[tokio::test]
async fn a_grant_after_giving_up_is_taken_back() {
    let Some(server) = RedisServer::start() else { return };
    let proxy = Proxy::to(&server).await;
    let seats = impatient(&proxy.url()).await.semaphore("seats");
    let direct = semaphore(&server.url()).await;
    direct.set_permits(2).await.unwrap();
    proxy.requests(Flow::Hold);
    let error = seats.try_acquire(2).await.unwrap_err();
    assert!(
        !error.is_definite()
            && matches!(error.kind(), ErrorKind::ResponseTimeout(_) | ErrorKind::Connect { .. }),
        "{error}"
    );
    proxy.requests(Flow::Pass);
    let all = direct.try_acquire_for(2, LONG).await.unwrap().expect("free again");
    all.release().await.unwrap();
    assert_eq!(direct.available().await.unwrap(), 2);
}

/// A server is unreachable for longer than all repeats of a release: the permit is still given
/// back.
#[tokio::test]
async fn a_release_goes_on_through_an_outage() {
    let Some(server) = RedisServer::start() else { return };
    let proxy = Proxy::to(&server).await;
    let client = Client::builder()
        .endpoint(proxy.url())
        .response_timeout(Duration::from_millis(300))
        .call_timeout(Duration::from_millis(1500))
        .retry_attempts(0)
        .retry_delay(Duration::from_millis(10), Duration::from_millis(20))
        .connect()
        .await
        .unwrap();
    let direct = semaphore(&server.url()).await;
    direct.set_permits(1).await.unwrap();
    let guard = soon("it is there", client.semaphore("seats").acquire(1)).await.unwrap();
    proxy.requests(Flow::Hold);
    // The call may last five times as long as one request, and has no repeats.
    let error = guard.release().await.unwrap_err();
    assert!(!error.is_definite(), "{error}");
    assert_eq!(direct.available().await.unwrap(), 0);
    proxy.requests(Flow::Pass);
    eventually("it is back", async || direct.available().await.unwrap() == 1).await;
}

/// Closing a client gives its permits back and deletes its memories.
#[tokio::test]
async fn closing_gives_permits_back() {
    on_each_server(async |url| {
        let client = Client::connect(url).await.unwrap();
        let seats = client.semaphore("seats");
        seats.set_permits(2).await.unwrap();
        let guard = seats.acquire(2).await.unwrap();
        client.close().await.unwrap();
        assert_eq!(semaphore(url).await.available().await.unwrap(), 2);
        assert_eq!(command(url, "KEYS *").await, Value::Array(vec![Value::BulkString(b"seats".into())]));
        drop(guard);
        let error = seats.release(1).await.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Closed), "{error}");
    })
    .await;
}
