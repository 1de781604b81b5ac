//! Tests the calls that every kind of lock has in common.

use std::time::Duration;

use lockstorm_client::{Client, ErrorKind, Guard, Handle, Lock, LockGuard, Object, OwnerId, Redlock};

use crate::support::{RedisServer, eventually, soon};

const WATCHDOG: Duration = Duration::from_millis(1500);
const LEASE: Duration = Duration::from_secs(10);

/// Three servers; every kind but a Redlock uses only the first.
struct Servers(Vec<RedisServer>);

impl Servers {
    fn start() -> Option<Self> {
        (0..3).map(|_| RedisServer::start()).collect::<Option<_>>().map(Self)
    }

    /// One client for each server.
    fn clients(&self) -> Vec<Client> {
        let client = |server: &RedisServer| {
            Client::builder().endpoint(server.url()).watchdog_timeout(WATCHDOG).build().expect("a good URL")
        };
        self.0.iter().map(client).collect()
    }
}

fn majority(clients: &[Client]) -> Redlock {
    // Generous, because a first use also connects, on a busy machine.
    Redlock::builder(clients.iter().cloned())
        .node_timeout(Duration::from_secs(2))
        .build("stock")
        .expect("clients")
}

/// Tests the common properties of every kind; `token` reads the token of kinds that have one.
async fn answers_as_every_kind<O: Object>(
    handle: impl Fn(&[Client]) -> Handle<O>,
    token: impl Fn(&Guard<O::Got>) -> Option<u64>,
) {
    let Some(servers) = Servers::start() else { return };
    let (mine, others) = (servers.clients(), servers.clients());
    let (lock, other) = (handle(&mine), handle(&others));
    let (owner, stranger) = (OwnerId::new(7), OwnerId::new(8));

    assert!(!lock.is_locked().await.unwrap());
    assert_eq!(lock.remaining().await.unwrap(), None);
    assert_eq!(lock.hold_count(owner).await.unwrap(), 0);
    assert!(!lock.force_release().await.unwrap(), "there is nothing to free");

    // An explicit lease, and nested in it the watchdog's: two levels of one owner, and none of
    // another.
    let outer = lock.acquire().owner(owner).lease(LEASE).await.unwrap();
    let inner = lock.try_acquire_for(LEASE).owner(owner).await.unwrap().expect("it nests");
    assert_eq!(lock.hold_count(owner).await.unwrap(), 2);
    assert_eq!(lock.hold_count(stranger).await.unwrap(), 0);
    assert!(outer.validity() > LEASE / 2 && outer.validity() < LEASE, "{outer:?}");
    assert!(inner.is_valid(), "{inner:?}");
    assert!(other.is_locked().await.unwrap());
    assert!(other.remaining().await.unwrap().is_some_and(|left| left <= LEASE));
    assert!(lock.try_acquire().owner(stranger).await.unwrap().is_none());
    assert!(other.try_acquire().owner(owner).await.unwrap().is_none(), "an owner of another client");
    assert!(other.try_acquire_for(Duration::from_millis(50)).await.unwrap().is_none());
    outer.release().await.unwrap();
    assert_eq!(lock.hold_count(owner).await.unwrap(), 1);
    inner.release().await.unwrap();
    eventually("it is free", async || !other.is_locked().await.unwrap()).await;

    excludes_and_ends(&lock, &other, token).await;
}

/// Tests the common properties of every kind, reentrant or not.
async fn excludes_and_ends<O: Object>(
    lock: &Handle<O>,
    other: &Handle<O>,
    token: impl Fn(&Guard<O::Got>) -> Option<u64>,
) {
    let owner = OwnerId::new(7);
    // Without a lease the watchdog renews it; dropping the guard releases it.
    let guard = lock.try_acquire().await.unwrap().expect("free");
    assert!(other.try_acquire_for(2 * WATCHDOG).await.unwrap().is_none());
    assert!(guard.is_valid() && guard.validity() < WATCHDOG, "{guard:?}");
    let first = token(&guard);
    drop(guard);
    let guard = soon("the drop frees it", other.acquire().into_future()).await.unwrap();
    assert!(token(&guard) > first || first.is_none(), "{first:?} {guard:?}");

    // Another client releases it by force, and its holder is notified.
    assert!(lock.force_release().await.unwrap());
    soon("the holder learns of it", guard.lost()).await;
    assert_eq!(guard.validity(), Duration::ZERO);
    let error = guard.release().await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::NotHeld { .. }), "{error}");

    // Its own client releases it by force: the holder there is notified immediately, renewed or
    // not.
    for lease in [Some(LEASE), None] {
        let wanted = lock.acquire().owner(owner);
        let wanted = if let Some(lease) = lease { wanted.lease(lease) } else { wanted };
        let guard = soon("it is free", wanted.into_future()).await.unwrap();
        assert!(lock.force_release().await.unwrap());
        assert_eq!(guard.validity(), Duration::ZERO, "{guard:?}");
        let error = guard.release().await.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::NotHeld { .. }), "{error}");
        assert!(!other.is_locked().await.unwrap());
    }

    // A lease without renewals ends by the holder's own clock.
    let short = lock.acquire().lease(Duration::from_millis(300));
    let guard = soon("it is free again", short.into_future()).await.unwrap();
    soon("the lease ends", guard.lost()).await;
    assert!(!guard.is_valid());
}

/// Tests a kind that does not nest: its owner is refused immediately by every call, and its hold
/// stays unchanged.
async fn refuses_its_owner(handle: impl Fn(&[Client]) -> Lock) {
    let Some(servers) = Servers::start() else { return };
    let (mine, others) = (servers.clients(), servers.clients());
    let (lock, other) = (handle(&mine), handle(&others));
    let owner = OwnerId::new(7);

    let guard = lock.acquire().owner(owner).lease(LEASE).await.unwrap();
    let unbounded = async || lock.acquire().owner(owner).await.map(Some);
    let now = async || lock.try_acquire().owner(owner).await;
    let bounded = async || lock.try_acquire_for(LEASE).owner(owner).lease(2 * LEASE).await;
    for refused in [
        soon("it does not wait for itself", unbounded()).await,
        now().await,
        soon("it does not wait for itself", bounded()).await,
    ] {
        let error = refused.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::AlreadyHeld), "{error}");
        assert!(error.is_definite() && !error.is_transient(), "{error}");
    }
    assert_eq!(lock.hold_count(owner).await.unwrap(), 1);
    assert!(lock.remaining().await.unwrap().is_some_and(|left| left <= LEASE), "not extended");
    // Any other owner is refused, as by every kind.
    assert!(lock.try_acquire().owner(OwnerId::new(8)).await.unwrap().is_none());
    assert!(other.try_acquire_for(Duration::from_millis(50)).owner(owner).await.unwrap().is_none());
    guard.release().await.unwrap();
    let again = lock.try_acquire().owner(owner).await.unwrap().expect("released");
    again.release().await.unwrap();
    excludes_and_ends(&lock, &other, no_token).await;
}

fn no_token(_guard: &LockGuard) -> Option<u64> {
    None
}

#[tokio::test]
async fn plain() {
    answers_as_every_kind(|clients| clients[0].lock("stock"), no_token).await;
}

#[tokio::test]
async fn fair() {
    answers_as_every_kind(|clients| clients[0].fair_lock("stock"), no_token).await;
}

#[tokio::test]
async fn fenced() {
    answers_as_every_kind(|clients| clients[0].fenced_lock("stock"), |guard| Some(guard.token())).await;
}

#[tokio::test]
async fn spin() {
    answers_as_every_kind(|clients| clients[0].spin_lock("stock"), no_token).await;
}

#[tokio::test]
async fn faster_multi() {
    answers_as_every_kind(|clients| clients[0].faster_multi_lock("stock", ["a", "b"]), no_token).await;
}

/// The writing half. `tests/read_write.rs` tests the reading half, which does not exclude its own
/// kind.
#[tokio::test]
async fn write() {
    answers_as_every_kind(|clients| clients[0].rw_lock("stock").write(), no_token).await;
}

#[tokio::test]
async fn non_reentrant() {
    refuses_its_owner(|clients| clients[0].non_reentrant_lock("stock")).await;
}

#[tokio::test]
async fn non_reentrant_fair() {
    refuses_its_owner(|clients| clients[0].non_reentrant_fair_lock("stock")).await;
}

#[tokio::test]
async fn string() {
    refuses_its_owner(|clients| clients[0].string_lock("stock")).await;
}

#[tokio::test]
async fn redlock() {
    answers_as_every_kind(majority, no_token).await;
}
