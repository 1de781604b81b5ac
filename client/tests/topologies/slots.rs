//! Slots of a cluster that move during a hold, and names whose keys do not share a slot.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use lockstorm_client::wire::lock_channel;
use lockstorm_client::{Client, ErrorKind, Event, EventKind, Observer};
use redis::Value;

use crate::deployment::Cluster;
use crate::support::{Attempts, RedisServer, eventually, soon, task};

const LONG: Duration = Duration::from_secs(60);

/// The slot moves with the key of a held lock: at each step rivals are refused and the hold is
/// renewed. In the middle of the move it cannot be released, because a release needs keys that are
/// on both nodes; at the end it can.
#[tokio::test]
async fn a_lock_is_kept_while_its_slot_moves() {
    let Some(cluster) = Cluster::start().await else { return };
    let (from, _) = cluster.home("stock");
    let to = (from + 1) % 3;
    let watchdog = Duration::from_millis(1500);
    let client = cluster.client().watchdog_timeout(watchdog).connect().await.unwrap();
    let rival = cluster.client().connect().await.unwrap();
    let guard = client.lock("stock").acquire().await.unwrap();
    let refused = async |step: &str| {
        // Longer than the lease: the hold is renewed at its present node.
        let got = rival.lock("stock").try_acquire_for(2 * watchdog).await.unwrap();
        assert!(got.is_none(), "{step}");
        assert!(guard.is_valid(), "{step}: {guard:?}");
    };
    cluster.begin_move("stock", from, to).await;
    refused("before the key moves").await;
    assert!(cluster.move_keys("stock", from, to).await >= 1);
    assert_eq!(
        cluster.nodes[from].command(&["CLUSTER", "COUNTKEYSINSLOT", &slot("stock")]).await,
        Value::Int(0)
    );
    refused("when the key has moved").await;
    let released = task(guard.release());
    let waiter = task(rival.lock("stock").acquire().lease(LONG).into_future());
    // An open slot permits neither the release nor the acquisition; the tool that moves it decides
    // how long it stays open.
    eventually("the release is tried", async || cluster.nodes[to].refusals("TRYAGAIN").await > 0).await;
    assert!(!released.is_finished());
    cluster.finish_move("stock", from, to).await;
    soon("the release", released).await.unwrap().unwrap();
    let next = soon("the waiter", waiter).await.unwrap().unwrap();
    assert!(next.is_valid());
    next.release().await.unwrap();
}

fn slot(key: &str) -> String {
    lockstorm_client::wire::Slot::of(key).0.to_string()
}

/// The lock's channel belongs to the shard that gives the slot away: the waiter subscribes at the
/// shard that gets it.
#[tokio::test]
async fn a_waiter_follows_its_slot() {
    let Some(cluster) = Cluster::start().await else { return };
    let (from, _) = cluster.home("stock");
    let to = (from + 1) % 3;
    let (holder, waiting) =
        (cluster.client().connect().await.unwrap(), cluster.client().connect().await.unwrap());
    let guard = holder.lock("stock").acquire().lease(LONG).await.unwrap();
    let waiter = task(waiting.lock("stock").acquire().lease(LONG).into_future());
    let listens = async |at: usize| {
        let channels = cluster.nodes[at].command(&["PUBSUB", "SHARDCHANNELS"]).await;
        channels != Value::Array(Vec::new())
    };
    eventually("it listens at the old node", async || listens(from).await).await;
    cluster.begin_move("stock", from, to).await;
    cluster.move_keys("stock", from, to).await;
    cluster.finish_move("stock", from, to).await;
    eventually("it listens at the new node", async || listens(to).await && !listens(from).await).await;
    guard.release().await.unwrap();
    soon("it is woken", waiter).await.unwrap().unwrap().release().await.unwrap();
}

/// Nodes below Redis 7 have no shard channels. The client detects that by PUBSUB SHARDNUMSUB, as
/// Redisson does; a user's rule forbids it on these nodes. Its waiter then subscribes to a channel
/// of the whole cluster, and a release is published to all nodes.
#[tokio::test]
async fn a_waiter_is_woken_without_channels_of_shards() {
    let Some(cluster) = Cluster::start().await else { return };
    for node in &cluster.nodes {
        node.command(&["ACL", "SETUSER", "default", "-pubsub|shardnumsub"]).await;
    }
    let (home, _) = cluster.home("stock");
    let (holder, waiting) =
        (cluster.client().connect().await.unwrap(), cluster.client().connect().await.unwrap());
    let guard = holder.lock("stock").acquire().lease(LONG).await.unwrap();
    let waiter = task(waiting.lock("stock").acquire().lease(LONG).into_future());
    let channel = lock_channel("stock");
    let listed = async |node: usize, kind: &str| -> Vec<String> {
        redis::from_redis_value(cluster.nodes[node].command(&["PUBSUB", kind]).await).expect("names")
    };
    eventually("it listens", async || listed(home, "CHANNELS").await == [channel.as_str()]).await;
    for node in 0..cluster.nodes.len() {
        assert!(listed(node, "SHARDCHANNELS").await.is_empty(), "node {node}");
    }
    let elsewhere = redis::Client::open(cluster.nodes[(home + 1) % 3].url()).unwrap();
    let mut elsewhere = elsewhere.get_async_pubsub().await.unwrap();
    elsewhere.subscribe(&channel).await.unwrap();
    guard.release().await.unwrap();
    soon("another node has the message", elsewhere.on_message().next()).await.expect("a message");
    soon("the waiter is woken", waiter).await.unwrap().unwrap().release().await.unwrap();
}

#[derive(Default)]
struct Renewals(AtomicUsize);

impl Observer for Renewals {
    fn observe(&self, event: &Event<'_>) {
        if matches!(event.kind, EventKind::Renewed { .. }) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// A script may only use keys of one slot: the client renews its holds of one slot together.
#[tokio::test]
async fn holds_of_one_slot_share_a_script() {
    const HOLDS: usize = 10;
    let Some(cluster) = Cluster::start().await else { return };
    let (home, _) = cluster.home("{stock}:0");
    let scripts = async || {
        let stats = cluster.nodes[home].command(&["INFO", "commandstats"]).await;
        let stats: String = redis::from_redis_value(stats).unwrap();
        let calls = stats.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:calls="));
        calls.map_or(0, |calls| calls.split(',').next().unwrap().parse::<usize>().unwrap())
    };
    let renewals = Arc::new(Renewals::default());
    let settings = cluster.client().watchdog_timeout(Duration::from_secs(3)).observer(renewals.clone());
    let client = settings.connect().await.unwrap();
    let asked = (0..HOLDS).map(|n| client.lock(&format!("{{stock}}:{n}")).acquire().into_future());
    let guards = futures_util::future::try_join_all(asked).await.unwrap();
    assert_eq!(renewals.0.load(Ordering::SeqCst), 0);
    let before = scripts().await;
    eventually("two rounds", async || renewals.0.load(Ordering::SeqCst) >= 2 * HOLDS).await;
    let scripts = scripts().await - before;
    // One script a round, and the first is sent twice, because the node does not know it yet.
    assert!((2..=4).contains(&scripts), "{scripts} scripts for two rounds of {HOLDS} holds");
    assert!(guards.iter().all(|guard| guard.is_valid()));
}

/// A client with an old slot map is redirected once, and then sends to the new node directly.
#[tokio::test]
async fn a_move_costs_one_redirection() {
    let Some(cluster) = Cluster::start().await else { return };
    let (from, _) = cluster.home("stock");
    let to = (from + 1) % 3;
    // The client reads the slot map only for a reason.
    let client = cluster.client().scan_interval(Duration::from_secs(3600)).connect().await.unwrap();
    client.lock("stock").acquire().await.unwrap().release().await.unwrap();
    client.lock("stock").acquire().await.unwrap().release().await.unwrap();
    cluster.begin_move("stock", from, to).await;
    cluster.move_keys("stock", from, to).await;
    cluster.finish_move("stock", from, to).await;
    for _ in 0..3 {
        client.lock("stock").acquire().await.unwrap().release().await.unwrap();
    }
    assert_eq!(cluster.nodes[from].refusals("MOVED").await, 1);
}

/// Two nodes redirect requests for a slot to each other: the client sends few requests, and fails
/// in time.
#[tokio::test]
async fn nodes_that_send_requests_in_a_circle_are_not_stormed() {
    let Some(cluster) = Cluster::start().await else { return };
    let (from, _) = cluster.home("stock");
    let to = (from + 1) % 3;
    let attempts = Arc::new(Attempts::default());
    let client = cluster.client().retry_attempts(0).observer(attempts.clone()).connect().await.unwrap();
    client.lock("stock").acquire().await.unwrap().release().await.unwrap();
    // The node migrates the slot to the other one, which does not import it.
    cluster.nodes[from].command(&["CLUSTER", "SETSLOT", &slot("stock"), "MIGRATING", cluster.id(to)]).await;
    let before = attempts.count();
    // Neither node has the key: one replies ASK, and the other, which does not import the slot,
    // MOVED.
    let error = client.lock("stock").try_acquire().await.unwrap_err();
    assert!(error.is_definite() && error.is_transient(), "{error}");
    assert_eq!(attempts.count(), before + 1);
    let sent = cluster.nodes[from].refusals("ASK").await + cluster.nodes[to].refusals("MOVED").await;
    assert!((3..=20).contains(&sent), "{sent} requests");
}

/// For one second each of two nodes replies MOVED to the other, as nodes may that know different
/// halves of a change. The call succeeds when it is over, after few requests.
#[tokio::test]
async fn a_second_of_two_nodes_that_each_name_the_other_is_got_over() {
    let Some(cluster) = Cluster::start().await else { return };
    let (one, _) = cluster.home("stock");
    let other = (one + 1) % 3;
    let client = cluster.client().connect().await.unwrap();
    let names = async |node: usize, master: usize| {
        let words = ["CLUSTER", "SETSLOT", &slot("stock"), "NODE", cluster.id(master)];
        assert_eq!(cluster.nodes[node].command(&words).await, Value::Okay);
    };
    // The other node assigns the slot to the first one from the beginning.
    names(one, other).await;
    let call = task(client.lock("stock").acquire().into_future());
    #[expect(clippy::disallowed_methods, reason = "how long the nodes disagree, in real time")]
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!call.is_finished());
    names(one, one).await;
    soon("the call", call).await.unwrap().unwrap().release().await.unwrap();
    let sent = cluster.nodes[one].refusals("MOVED").await + cluster.nodes[other].refusals("MOVED").await;
    assert!((4..=20).contains(&sent), "{sent} requests");
}

/// The companion keys of such a name are in another slot, in Redisson as well; no request is sent.
#[tokio::test]
async fn a_name_that_divides_its_keys_is_refused_before_anything_is_sent() {
    let Some(cluster) = Cluster::start().await else { return };
    let client = cluster.client().connect().await.unwrap();
    for name in ["a{b", "a{}b"] {
        for error in [
            client.fair_lock(name).try_acquire().await.unwrap_err(),
            client.fenced_lock(name).acquire().await.unwrap_err(),
        ] {
            assert!(matches!(error.kind(), ErrorKind::Config(_)) && error.is_definite(), "{error}");
            assert!(error.to_string().contains("different slots"), "{error}");
        }
    }
}

#[tokio::test]
async fn what_is_no_cluster_is_said() {
    let Some(server) = RedisServer::start() else { return };
    let error = Client::connect(format!("redis+cluster://127.0.0.1:{}", server.port())).await.unwrap_err();
    assert!(error.is_definite() && error.to_string().contains("is no node of a cluster"), "{error}");
    let Some(cluster) = Cluster::start().await else { return };
    // A client that does not know of the cluster cannot use it through one address.
    let single = Client::connect(cluster.nodes[0].url()).await.unwrap();
    let key = (0..).map(|n| format!("stock{n}")).find(|key| cluster.home(key).0 != 0).unwrap();
    let error = single.lock(&key).try_acquire().await.unwrap_err();
    assert!(error.is_definite() && error.to_string().contains("MOVED"), "{error}");
}
