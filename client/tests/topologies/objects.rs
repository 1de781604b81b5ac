//! Every object on every topology: acquired, contended for with a wake-up, renewed, released.
//!
//! The installed server runs on all topologies. Each generation of servers, simulated, and real if
//! `LOCKSTORM_SERVERS` names a folder, runs on one, and with `LOCKSTORM_EVERY_TOPOLOGY=1` on all.

use std::time::Duration;

use lockstorm_client::{Client, Handle, LockGuard, MultiLock, Object, RateMode, Redlock};
use lockstorm_sim::generation::Generation;

use crate::deployment::{Deployment, Topology};
use crate::support::program::{Program, is_whole};
use crate::support::{RedisServer, eventually, soon, task};

/// Longer than `soon` waits: a waiter that gets the lock sooner was woken.
const LONG: Duration = Duration::from_secs(60);
const WATCHDOG: Duration = Duration::from_millis(1500);

/// Two clients of one deployment, its program and its topology.
struct Stage {
    mine: Client,
    other: Client,
    /// Servers outside the deployment, for a Redlock.
    beside: [RedisServer; 2],
    place: String,
}

impl Stage {
    fn redlock(&self, client: &Client) -> Redlock {
        let others =
            self.beside.each_ref().map(|server| Client::builder().endpoint(server.url()).build().unwrap());
        let clients = std::iter::once(client.clone()).chain(others);
        Redlock::builder(clients).node_timeout(Duration::from_secs(2)).build("redlock").unwrap()
    }

    /// Tests the common properties of all locks.
    async fn lock<O: Object>(&self, name: &str, handle: impl Fn(&Client) -> Handle<O>) {
        let (lock, other) = (handle(&self.mine), handle(&self.other));
        let at = format!("{name} on {}", self.place);
        // Held for longer than the watchdog's lease: it is renewed.
        let guard =
            soon(&at, lock.acquire().into_future()).await.unwrap_or_else(|error| panic!("{at}: {error}"));
        assert!(other.is_locked().await.unwrap(), "{at}");
        assert!(other.try_acquire_for(2 * WATCHDOG).await.unwrap().is_none(), "{at}");
        assert!(guard.is_valid(), "{at}: {guard:?}");
        guard.release().await.unwrap_or_else(|error| panic!("{at}: {error}"));

        // Contended for and released: the waiter is woken.
        let guard = soon(&at, lock.acquire().lease(LONG).into_future()).await.unwrap();
        let waiter = task(other.acquire().lease(LONG).into_future());
        eventually("it is held", async || lock.is_locked().await.unwrap()).await;
        guard.release().await.unwrap();
        let next = soon(&format!("{at} wakes"), waiter).await.unwrap().unwrap();
        assert!(lock.try_acquire().await.unwrap().is_none(), "{at}");
        assert!(lock.force_release().await.unwrap(), "{at}");
        drop(next);
        eventually("it is free", async || !other.is_locked().await.unwrap()).await;
    }

    async fn multi(&self) {
        let all = |client: &Client| {
            let members = [client.lock("multi a"), client.lock("multi b"), client.lock("multi c")];
            members.iter().fold(MultiLock::builder(), |all, lock| all.member(lock)).build().unwrap()
        };
        let (mine, other) = (all(&self.mine), all(&self.other));
        let guard = mine.acquire().await.unwrap();
        assert!(other.try_acquire_for(2 * WATCHDOG).await.unwrap().is_none());
        assert!(guard.is_valid());
        let waiter = task(async move { other.acquire().await });
        guard.release().await.unwrap();
        soon("a multi-lock wakes", waiter).await.unwrap().unwrap().release().await.unwrap();
    }

    async fn semaphore(&self) {
        let (mine, other) = (self.mine.semaphore("seats"), self.other.semaphore("seats"));
        assert!(mine.set_permits(2).await.unwrap());
        let permits = mine.acquire(2).await.unwrap();
        assert!(other.try_acquire(1).await.unwrap().is_none());
        let waiter = task(async move { other.acquire(2).await });
        permits.release().await.unwrap();
        soon("a semaphore wakes", waiter).await.unwrap().unwrap().release().await.unwrap();
        assert_eq!(mine.available().await.unwrap(), 2);
    }

    async fn permit_semaphore(&self) {
        let (mine, other) = (self.mine.permit_semaphore("rooms"), self.other.permit_semaphore("rooms"));
        assert!(mine.set_permits(1).await.unwrap());
        let permit = mine.acquire(1).await.unwrap();
        assert!(other.try_acquire_for(1, 2 * WATCHDOG).await.unwrap().is_none(), "it is renewed");
        permit.release().await.unwrap();
        let permit = mine.acquire(1).lease(LONG).await.unwrap();
        let waiter = task(other.acquire(1).lease(LONG).into_future());
        permit.release().await.unwrap();
        soon("an expirable semaphore wakes", waiter).await.unwrap().unwrap().release().await.unwrap();
    }

    /// The channel of the second name has another slot than the key.
    async fn latch(&self) {
        for name in ["start", "the {start}"] {
            let (mine, other) = (self.mine.latch(name), self.other.latch(name));
            assert!(mine.try_set(1).await.unwrap());
            let waiter = task(async move { other.wait().await });
            assert!(!mine.wait_for(Duration::from_millis(200)).await.unwrap());
            assert_eq!(mine.count_down().await.unwrap(), Some(0));
            soon("a latch wakes", waiter).await.unwrap().unwrap();
        }
    }

    async fn rate_limiter(&self) {
        let (mine, other) = (self.mine.rate_limiter("calls"), self.other.rate_limiter("calls"));
        assert!(mine.try_set_rate(RateMode::Overall, 1, Duration::from_secs(2)).await.unwrap());
        mine.acquire(1).await.unwrap();
        assert!(!other.try_acquire(1).await.unwrap());
        soon("a permit comes back", other.acquire(1)).await.unwrap();
    }
}

async fn every_object_on(program: &Program, topology: Topology) {
    let Some(deployment) = Deployment::start(program, topology).await else { return };
    let beside = || RedisServer::start_on(program, |_| Vec::new());
    let (Some(one), Some(two)) = (beside(), beside()) else { return };
    let place = format!("{topology:?} of {program}");
    let client = async || deployment.client().watchdog_timeout(WATCHDOG).connect().await.unwrap();
    let stage = Stage { mine: client().await, other: client().await, beside: [one, two], place };
    // The cases run at the same time, because each waits for its own leases and renewals.
    tokio::join!(
        stage.lock("plain", |client| client.lock("plain")),
        stage.lock("fair", |client| client.fair_lock("fair")),
        stage.lock("fenced", |client| client.fenced_lock("fenced")),
        stage.lock("spin", |client| client.spin_lock("spin")),
        stage.lock("string", |client| client.string_lock("string")),
        stage.lock("non-reentrant", |client| client.non_reentrant_lock("non-reentrant")),
        stage.lock("non-reentrant fair", |client| client.non_reentrant_fair_lock("non-reentrant fair")),
        stage.lock("faster multi", |client| client.faster_multi_lock("group", ["a", "b"])),
        stage.lock("write", |client| client.rw_lock("document").write()),
        stage.lock("tagged", |client| client.fair_lock("{shop}:stock")),
        stage.lock("redlock", |client| stage.redlock(client)),
        readers(&stage),
        stage.multi(),
        stage.semaphore(),
        stage.permit_semaphore(),
        stage.latch(),
        stage.rate_limiter(),
    );
    let Stage { mine, other, .. } = stage;
    mine.close().await.unwrap();
    other.close().await.unwrap();
}

/// Readers share the lock and exclude a writer, and the last of them wakes the writer.
async fn readers(stage: &Stage) {
    let (mine, other) = (stage.mine.rw_lock("readers"), stage.other.rw_lock("readers"));
    let first: LockGuard = mine.read().acquire().await.unwrap();
    let second = other.read().acquire().lease(LONG).await.unwrap();
    assert!(other.write().try_acquire_for(2 * WATCHDOG).await.unwrap().is_none());
    assert!(first.is_valid());
    let writer = task(other.write().acquire().lease(LONG).into_future());
    second.release().await.unwrap();
    first.release().await.unwrap();
    soon("the last reader wakes the writer", writer).await.unwrap().unwrap().release().await.unwrap();
}

#[tokio::test]
async fn every_object_on_a_single_server() {
    every_object_on(&Program::Installed, Topology::Single).await;
}

#[tokio::test]
async fn every_object_on_a_replica_set() {
    every_object_on(&Program::Installed, Topology::ReplicaSet).await;
}

#[tokio::test]
async fn every_object_behind_sentinels() {
    every_object_on(&Program::Installed, Topology::Sentinel).await;
}

#[tokio::test]
async fn every_object_on_a_cluster() {
    every_object_on(&Program::Installed, Topology::Cluster).await;
}

/// Runs the servers of a generation on this topology, or on all.
async fn every_object_of(generation: Generation, usual: Topology) {
    for program in Program::of(generation) {
        for topology in Topology::ALL {
            if is_whole() || topology == usual {
                every_object_on(&program, topology).await;
            }
        }
    }
}

#[tokio::test]
async fn every_object_of_redis_6_2() {
    every_object_of(Generation::Redis62, Topology::Cluster).await;
}

#[tokio::test]
async fn every_object_of_redis_7_0() {
    every_object_of(Generation::Redis70, Topology::Sentinel).await;
}

#[tokio::test]
async fn every_object_of_redis_8_2() {
    every_object_of(Generation::Redis82, Topology::ReplicaSet).await;
}

#[tokio::test]
async fn every_object_of_valkey_8_1() {
    every_object_of(Generation::Valkey81, Topology::Sentinel).await;
}

#[tokio::test]
async fn every_object_of_valkey_9_1() {
    every_object_of(Generation::Valkey91, Topology::Cluster).await;
}
