//! A master is lost during a hold: the hold continues at the new master, its waiters are woken
//! there, and lost holds are noticed.
//!
//! The installed server has all failovers. Each generation of servers, simulated, and real if
//! `LOCKSTORM_SERVERS` names a folder, has one, and with `LOCKSTORM_EVERY_TOPOLOGY=1` all.

use std::collections::BTreeMap;
use std::time::Duration;

use lockstorm_client::{Client, ErrorKind, LockGuard, LossCause, ReplicaWait};
use lockstorm_sim::generation::Generation;
use redis::Value;

use crate::deployment::{Cluster, MASTER, Watched};
use crate::support::program::{Program, is_whole};
use crate::support::{RedisServer, eventually, soon, task};

/// Longer than `soon` waits: a waiter that gets the lock sooner was woken.
const LONG: Duration = Duration::from_secs(60);

/// The cause of a failover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// SENTINEL FAILOVER, CLUSTER FAILOVER: the old master lives, and grants for some time.
    Order,
    /// The master is killed.
    Crash,
    /// The master stops, and keeps its connections.
    Freeze,
}

/// Acquires a lock. A request on its way to a dying master may or may not have been executed: it is
/// repeated.
async fn until_granted(client: Client, name: &str) -> lockstorm_client::Result<LockGuard> {
    loop {
        match client.lock(name).acquire().lease(LONG).await {
            Err(error) if !error.is_definite() => {}
            done => return done,
        }
    }
}

/// Returns true if another client holds a lock; repeats the request in the same way.
async fn is_held(client: &Client, name: &str) -> bool {
    loop {
        match client.lock(name).try_acquire().await {
            Err(error) if !error.is_definite() => {}
            done => return done.unwrap().is_none(),
        }
    }
}

async fn sentinel_failover(program: &Program, cause: Cause) {
    let Some(mut watched) = Watched::start_on(program, &[]).await else { return };
    let old = watched.nodes[0].port();
    // Every change is on all replicas, so that nothing is lost.
    let client = async || {
        watched
            .client()
            .replica_wait(ReplicaWait::Synced)
            .watchdog_timeout(Duration::from_secs(12))
            .connect()
            .await
            .unwrap()
    };
    let (mine, other) = (client().await, client().await);
    let all = async || watched.nodes[0].command(&["WAIT", "2", "1000"]).await == Value::Int(2);
    let guard = mine.lock("stock").acquire().await.unwrap();
    let long = mine.lock("long").acquire().lease(LONG).await.unwrap();
    let waiter = task(until_granted(other.clone(), "long"));
    eventually("it waits", async || {
        subscribers(&watched.nodes[0].command(&["PUBSUB", "CHANNELS"]).await) > 0
    })
    .await;
    // The grant's own WAIT covers one replica; the other must have it as well.
    eventually("it is on both", all).await;

    match cause {
        Cause::Order => {
            watched.sentinels[0].command(&["SENTINEL", "FAILOVER", MASTER]).await;
        }
        Cause::Crash => watched.nodes[0].crash(),
        Cause::Freeze => watched.nodes[0].signal("STOP"),
    }
    eventually("another is master", async || watched.master_by(1).await != old).await;
    let new = watched.master_by(1).await;
    if cause == Cause::Order {
        // Until a client learns of the failover, the old master takes its releases, and the new one
        // keeps the locks.
        watched.is_followed(&mine, "other", 1).await;
        watched.is_followed(&other, "other", 1).await;
    }
    assert!(is_held(&other, "stock").await, "{cause:?}: it is held there");
    // The client releases its new hold at the new master; the waiter has subscribed there.
    soon("the release", long.release()).await.unwrap();
    let next = soon("the waiter is woken", waiter).await.unwrap().unwrap();
    assert_eq!(watched.node(new).command(&["EXISTS", "long"]).await, Value::Int(1), "{cause:?}");
    assert!(guard.is_valid(), "{cause:?}: {guard:?}");
    soon("the release of what was renewed", guard.release()).await.unwrap();
    assert_eq!(watched.node(new).command(&["EXISTS", "stock"]).await, Value::Int(0), "{cause:?}");
    next.release().await.unwrap();
    if cause == Cause::Freeze {
        watched.nodes[0].signal("CONT");
    }
}

/// The number of lock channels with subscribers.
fn subscribers(channels: &Value) -> usize {
    let names: Vec<String> = redis::from_redis_value(channels.clone()).expect("names");
    names.iter().filter(|name| name.starts_with("redisson")).count()
}

#[tokio::test]
async fn a_hold_survives_an_ordered_failover_of_sentinels() {
    sentinel_failover(&Program::Installed, Cause::Order).await;
}

#[tokio::test]
async fn a_hold_survives_a_crash_of_the_master_that_sentinels_watch() {
    sentinel_failover(&Program::Installed, Cause::Crash).await;
}

#[tokio::test]
async fn a_hold_survives_a_freeze_of_the_master_that_sentinels_watch() {
    sentinel_failover(&Program::Installed, Cause::Freeze).await;
}

/// For ten seconds after the failover, nothing closes a client's connection to the old master: the
/// client itself must leave.
#[tokio::test]
async fn a_client_leaves_the_old_master_at_once() {
    let Some(watched) = Watched::start(&[]).await else { return };
    let old = watched.nodes[0].port();
    let client = watched.client().connect().await.unwrap();
    client.lock("before").acquire().await.unwrap().release().await.unwrap();
    watched.sentinels[0].command(&["SENTINEL", "FAILOVER", MASTER]).await;
    eventually("another is master", async || watched.master_by(1).await != old).await;
    watched.is_followed(&client, "after", 1).await;
    // Without the command to become a replica, the old one is still a master.
    let role = format!("{:?}", watched.node(old).command(&["ROLE"]).await);
    assert!(role.contains("master"), "{role}");
}

/// A grant that no replica had is lost with the master. Its holder learns of it by the renewal that
/// follows the failover.
#[tokio::test]
async fn a_hold_that_was_lost_with_the_master_is_noticed_at_once() {
    let Some(mut watched) = Watched::start(&[]).await else { return };
    let old = watched.nodes[0].port();
    let client = watched.client().watchdog_timeout(LONG).connect().await.unwrap();
    // Without their connections they receive nothing from now on.
    for replica in &watched.nodes[1..] {
        replica.signal("STOP");
    }
    watched.nodes[0].command(&["CLIENT", "KILL", "TYPE", "replica"]).await;
    let guard = client.lock("stock").acquire().await.unwrap();
    watched.nodes[0].crash();
    for replica in &watched.nodes[1..] {
        replica.signal("CONT");
    }
    eventually("another is master", async || watched.master_by(1).await != old).await;
    assert_eq!(soon("it is noticed", guard.lost()).await, LossCause::NotHeld);
}

async fn cluster_failover(program: &Program, cause: Cause) {
    let Some(mut cluster) = Cluster::start_on(program, &[]).await else { return };
    // Before version 7 the messages of a cluster go to all of its nodes.
    let channels = if program.has_shard_channels() { "SHARDCHANNELS" } else { "CHANNELS" };
    let (master, replica) = cluster.home("stock");
    // While the old master is down, nothing is confirmed by all replicas.
    let wait = if cause == Cause::Order { ReplicaWait::All } else { ReplicaWait::Synced };
    let client = async || {
        cluster.client().replica_wait(wait).watchdog_timeout(Duration::from_secs(12)).connect().await.unwrap()
    };
    let (mine, other) = (client().await, client().await);
    let guard = mine.lock("stock").acquire().await.unwrap();
    // The tag puts it on the same node.
    let long = mine.lock("{stock}:long").acquire().lease(LONG).await.unwrap();
    let waiter = task(until_granted(other, "{stock}:long"));
    eventually("it waits", async || {
        subscribers(&cluster.nodes[master].command(&["PUBSUB", channels]).await) > 0
    })
    .await;
    match cause {
        Cause::Order => {
            cluster.nodes[replica].command(&["CLUSTER", "FAILOVER"]).await;
        }
        Cause::Crash => cluster.nodes[master].crash(),
        Cause::Freeze => cluster.nodes[master].signal("STOP"),
    }
    eventually("the replica is master", async || {
        let role = format!("{:?}", cluster.nodes[replica].command(&["ROLE"]).await);
        role.contains("master")
    })
    .await;
    let mine = cluster.client().connect().await.unwrap();
    assert!(is_held(&mine, "stock").await, "{cause:?}: it is held there");
    soon("the release", async {
        // No replica can confirm it immediately.
        if let Err(error) = long.release().await {
            assert!(!error.is_definite(), "{error}");
        }
    })
    .await;
    let next = soon("the waiter is woken", waiter).await.unwrap().unwrap();
    assert_eq!(cluster.nodes[replica].command(&["EXISTS", "{stock}:long"]).await, Value::Int(1), "{cause:?}");
    assert!(guard.is_valid(), "{cause:?}: {guard:?}");
    drop((next, guard));
    eventually("all is given back", async || {
        cluster.nodes[replica].command(&["EXISTS", "stock", "{stock}:long"]).await == Value::Int(0)
    })
    .await;
    if cause == Cause::Freeze {
        cluster.nodes[master].signal("CONT");
    }
}

#[tokio::test]
async fn a_hold_survives_an_ordered_failover_of_a_cluster() {
    cluster_failover(&Program::Installed, Cause::Order).await;
}

#[tokio::test]
async fn a_hold_survives_a_crash_of_its_master_in_a_cluster() {
    cluster_failover(&Program::Installed, Cause::Crash).await;
}

#[tokio::test]
async fn a_hold_survives_a_freeze_of_its_master_in_a_cluster() {
    cluster_failover(&Program::Installed, Cause::Freeze).await;
}

/// The promoted replica has no replica itself until the old master is back, which must then have
/// every grant again.
#[tokio::test]
async fn a_master_that_is_down_counts_as_a_replica() {
    let Some(mut cluster) = Cluster::start().await else { return };
    let (master, replica) = cluster.home("stock");
    let settings =
        cluster.client().replica_wait(ReplicaWait::All).replica_timeout(Duration::from_millis(200));
    let client = settings.scan_interval(Duration::from_millis(200)).connect().await.unwrap();
    let other = cluster.client().connect().await.unwrap();
    client.lock("stock").acquire().await.unwrap().release().await.unwrap();
    cluster.nodes[master].crash();
    eventually("the replica grants", async || {
        let got = other.lock("{stock}:other").try_acquire().await;
        got.is_ok() && cluster.nodes[replica].command(&["EXISTS", "{stock}:other"]).await == Value::Int(1)
    })
    .await;
    let (lock, limit) = (client.lock("stock"), Duration::from_secs(2));
    let error = lock.try_acquire_for(limit).await.err();
    let refused = error.as_ref().is_none_or(|error| matches!(error.kind(), ErrorKind::NotReplicated { .. }));
    assert!(refused, "{error:?}");
    // The last attempt may still be under way.
    eventually("it is taken back", async || {
        cluster.nodes[replica].command(&["EXISTS", "stock"]).await == Value::Int(0)
    })
    .await;
    cluster.nodes[master].restart();
    soon("it is confirmed", async { lock.acquire().await }).await.unwrap().release().await.unwrap();
}

/// One of two replicas is promoted while the other stands still: the new master has no replica at
/// first, one when the other continues, and two when the old master is back as a replica.
#[tokio::test]
async fn a_new_master_without_replicas_confirms_nothing() {
    let Some(mut watched) = Watched::start(&[]).await else { return };
    let old = watched.nodes[0].port();
    let waits = [ReplicaWait::Synced, ReplicaWait::Majority, ReplicaWait::All];
    let mut clients = Vec::new();
    for wait in waits {
        let settings = watched.client().replica_wait(wait).replica_timeout(Duration::from_millis(200));
        let client = settings.connect().await.unwrap();
        client.lock("before").acquire().await.unwrap().release().await.unwrap();
        clients.push((wait, client));
    }
    watched.nodes[2].signal("STOP");
    // Until then the failover may choose it.
    eventually("it is down for all Sentinels", async || {
        for sentinel in &watched.sentinels {
            let replicas = sentinel.command(&["SENTINEL", "REPLICAS", MASTER]).await;
            let replicas: Vec<BTreeMap<String, String>> = redis::from_redis_value(replicas).unwrap();
            let port = watched.nodes[2].port().to_string();
            if !replicas.iter().any(|replica| replica["port"] == port && replica["flags"].contains("s_down"))
            {
                return false;
            }
        }
        true
    })
    .await;
    watched.nodes[0].crash();
    let new = watched.replaced(old).await;
    assert_eq!(new, watched.nodes[1].port());

    let refuses = async |client: &Client, wait: ReplicaWait| {
        eventually("it is refused", async || {
            match client.lock("stock").try_acquire_for(Duration::from_secs(1)).await {
                Ok(Some(guard)) => panic!("{wait:?}: {guard:?}"),
                Ok(None) => true,
                // A busy machine may need longer to connect.
                Err(error) => matches!(error.kind(), ErrorKind::NotReplicated { .. }),
            }
        })
        .await;
        // The last attempt may still be under way.
        eventually("it is taken back", async || {
            watched.node(new).command(&["EXISTS", "stock"]).await == Value::Int(0)
        })
        .await;
    };
    let grants = async |client: &Client, wait: ReplicaWait, has_it: &[&RedisServer]| {
        let guard = soon("it is granted", async { client.lock("stock").acquire().await }).await;
        let guard = guard.unwrap_or_else(|error| panic!("{wait:?}: {error}"));
        for node in has_it {
            assert_eq!(node.command(&["EXISTS", "stock"]).await, Value::Int(1), "{wait:?}");
        }
        // A request on its way may or may not have been executed.
        soon("it is released", guard.release()).await.unwrap();
    };
    for (wait, client) in &clients {
        match wait {
            ReplicaWait::Synced => grants(client, *wait, &[watched.node(new)]).await,
            _ => refuses(client, *wait).await,
        }
    }

    // By command: the Sentinels would take their time.
    let follow = async |node: &RedisServer| {
        node.command(&["REPLICAOF", "127.0.0.1", &new.to_string()]).await;
    };
    watched.nodes[2].signal("CONT");
    follow(&watched.nodes[2]).await;
    for (wait, client) in &clients {
        match wait {
            ReplicaWait::Majority => grants(client, *wait, &[watched.node(new), &watched.nodes[2]]).await,
            ReplicaWait::All => refuses(client, *wait).await,
            _ => {}
        }
    }
    watched.nodes[0].restart();
    follow(&watched.nodes[0]).await;
    let all: Vec<_> = watched.nodes.iter().collect();
    grants(&clients[2].1, ReplicaWait::All, &all).await;
}

/// Runs a crash of the master that Sentinels watch, or all failovers.
async fn failovers_of(generation: Generation) {
    for program in Program::of(generation) {
        sentinel_failover(&program, Cause::Crash).await;
        if !is_whole() {
            continue;
        }
        for cause in [Cause::Order, Cause::Freeze] {
            sentinel_failover(&program, cause).await;
        }
        for cause in [Cause::Order, Cause::Crash, Cause::Freeze] {
            cluster_failover(&program, cause).await;
        }
    }
}

#[tokio::test]
async fn failovers_of_redis_6_2() {
    failovers_of(Generation::Redis62).await;
}

#[tokio::test]
async fn failovers_of_redis_7_0() {
    failovers_of(Generation::Redis70).await;
}

#[tokio::test]
async fn failovers_of_redis_8_2() {
    failovers_of(Generation::Redis82).await;
}

#[tokio::test]
async fn failovers_of_valkey_8_1() {
    failovers_of(Generation::Valkey81).await;
}

#[tokio::test]
async fn failovers_of_valkey_9_1() {
    failovers_of(Generation::Valkey91).await;
}
