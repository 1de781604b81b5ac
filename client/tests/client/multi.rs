//! Several locks, all or none: of any kinds, of different clients and servers, on real servers.

mod faster;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lockstorm_client::{
    Client, Env, Error, ErrorKind, Event, EventKind, Handle, MultiLock, MultiLockBuilder, Object, Observer,
    OwnerId, Redlock, TokioEnv,
};
use redis::Value;

use crate::support::{Flow, Proxy, RedisServer, eventually, soon, task};

const WATCHDOG: Duration = Duration::from_millis(1500);
const LEASE: Duration = Duration::from_secs(10);
const LONG: Duration = Duration::from_secs(20);

async fn client(url: &str) -> Client {
    let builder = Client::builder().endpoint(url).watchdog_timeout(WATCHDOG);
    builder
        .response_timeout(Duration::from_millis(500))
        .call_timeout(Duration::from_secs(3))
        .connect()
        .await
        .unwrap()
}

async fn is_free(server: &RedisServer, key: &str) -> bool {
    server.command(&["EXISTS", key]).await == Value::Int(0)
}

fn of<O: Object>(locks: &[Handle<O>]) -> MultiLock {
    let all = locks.iter().fold(MultiLock::builder(), MultiLockBuilder::member);
    all.build().expect("different locks")
}

/// The errors of the members, by key.
fn members_of(error: &Error) -> Vec<(&str, &ErrorKind)> {
    let ErrorKind::Members { failed, .. } = error.kind() else { panic!("{error}") };
    failed.iter().map(|(key, error)| (key.as_str(), error.kind())).collect()
}

/// One lock of each kind on two servers: with any of them taken, the others are not acquired
/// either, and the attempt leaves nothing behind.
#[tokio::test]
async fn all_or_none_of_every_kind() {
    let servers: Option<Vec<_>> = (0..3).map(|_| RedisServer::start()).collect();
    let Some(servers) = servers else { return };
    let mut clients = Vec::new();
    for server in &servers {
        clients.push(client(&server.url()).await);
    }
    let (here, there) = (&clients[0], &clients[1]);
    let red = Redlock::builder(clients.clone()).node_timeout(Duration::from_secs(2)).build("red").unwrap();
    let all = MultiLock::builder()
        .member(&here.lock("plain"))
        .member(&there.fair_lock("fair"))
        .member(&here.fenced_lock("fenced"))
        .member(&there.spin_lock("spin"))
        .member(&here.non_reentrant_lock("once"))
        .member(&red)
        .build()
        .unwrap();
    let keys = ["plain", "fair", "fenced", "spin", "once", "red"];
    assert_eq!(all.keys().collect::<Vec<_>>(), keys);
    let held = async || {
        let mut held = Vec::new();
        for key in keys {
            let mut taken = false;
            for server in &servers {
                taken |= !is_free(server, key).await;
            }
            if taken {
                held.push(key);
            }
        }
        held
    };
    let other = client(&servers[1].url()).await;
    for (key, at) in [("plain", 0), ("fair", 1), ("fenced", 0), ("spin", 1), ("once", 0)] {
        let taken = servers[at].command(&["HSET", key, "another:1", "1"]).await;
        assert_eq!(taken, Value::Int(1));
        assert!(all.try_acquire().await.unwrap().is_none(), "{key} is taken");
        // A Redlock counts as released once a majority has confirmed it.
        eventually("nothing else is held", async || held().await == [key]).await;
        assert!(all.try_acquire_for(Duration::from_millis(100)).lease(LEASE).await.unwrap().is_none());
        eventually("nothing else is held", async || held().await == [key]).await;
        servers[at].command(&["DEL", key]).await;
    }
    let guard = soon("all are free", all.acquire().into_future()).await.unwrap();
    assert_eq!(held().await, keys);
    assert_eq!(guard.members().map(|member| member.key()).collect::<Vec<_>>(), keys);
    let with_token: Vec<_> = guard.members().filter_map(|member| member.token()).collect();
    assert_eq!(with_token.len(), 1, "of the fenced lock alone");
    assert!(other.fair_lock("fair").try_acquire().await.unwrap().is_none());
    guard.release().await.unwrap();
    eventually("all are free", async || held().await.is_empty()).await;
    // The remains of a waiter are gone, too.
    assert!(is_free(&servers[1], "redisson_lock_queue:{fair}").await);
}

/// Without a lease the watchdog of its client renews each lock; the loss of one makes the guard
/// lost.
#[tokio::test]
async fn every_member_is_renewed_and_each_loss_is_noticed() {
    let (Some(one), Some(two)) = (RedisServer::start(), RedisServer::start()) else { return };
    let (here, there) = (client(&one.url()).await, client(&two.url()).await);
    let all = of(&[here.lock("a"), there.lock("b"), here.lock("c")]);
    let guard = all.acquire().await.unwrap();
    let other = client(&two.url()).await;
    assert!(other.lock("b").try_acquire_for(2 * WATCHDOG).await.unwrap().is_none());
    assert!(guard.is_valid() && guard.validity() < WATCHDOG, "{guard:?}");

    let lost = task(guard.lost());
    assert!(other.lock("b").force_release().await.unwrap());
    soon("its loss is that of the guard", lost).await.unwrap();
    assert!(!guard.is_valid());
    assert_eq!(guard.validity(), Duration::ZERO);
    let left: Vec<_> =
        guard.members().filter(|member| !member.validity().is_zero()).map(|m| m.key()).collect();
    assert_eq!(left, ["a", "c"], "the others are held until the release");
    let error = guard.release().await.unwrap_err();
    let failed = members_of(&error);
    assert!(matches!(failed[..], [("b", ErrorKind::NotHeld { .. })]), "{error}");
    assert!(error.to_string().starts_with("1 of 3 locks failed: b: "), "{error}");
    assert!(error.is_definite());
    for (server, key) in [(&one, "a"), (&two, "b"), (&one, "c")] {
        assert!(is_free(server, key).await, "{key}");
    }
}

/// Redisson's release stops at the first lock whose server is gone, and holds the others for as
/// long as it lives (R22).
#[tokio::test]
async fn a_release_frees_all_that_can_be_freed() {
    let (Some(mut one), Some(two)) = (RedisServer::start(), RedisServer::start()) else { return };
    let (here, there) = (client(&one.url()).await, client(&two.url()).await);
    let guard = of(&[here.lock("a"), there.lock("b")]).acquire().await.unwrap();
    one.crash();
    let error = soon("the call ends", guard.release()).await.unwrap_err();
    assert!(matches!(members_of(&error)[..], [("a", _)]), "{error}");
    assert!(is_free(&two, "b").await, "the first one failed, the second is free");
}

/// The server of the second lock is down: an error, and the first one is free again. The same holds
/// if the reply of the second is lost, once that is known, whatever the caller did.
#[tokio::test]
async fn errors_and_callers_that_are_gone_leave_nothing() {
    let (Some(one), Some(mut two)) = (RedisServer::start(), RedisServer::start()) else { return };
    let proxy = Proxy::to(&two).await;
    let (here, there) = (client(&one.url()).await, client(&proxy.url()).await);
    let all = of(&[here.lock("a"), there.lock("b")]);
    all.acquire().await.unwrap().release().await.unwrap();

    // The reply of the second is lost; then the caller drops the future.
    proxy.replies(Flow::Swallow);
    let asking = task(all.acquire().into_future());
    eventually("both are granted", async || !is_free(&two, "b").await).await;
    asking.abort();
    proxy.replies(Flow::Pass);
    for (server, key) in [(&one, "a"), (&two, "b")] {
        eventually("it is given back", async || is_free(server, key).await).await;
    }

    // The caller drops the future while the second is taken.
    let taken = there.lock("b").acquire().await.unwrap();
    let waiting = task(all.acquire().into_future());
    eventually("the first is granted", async || !is_free(&one, "a").await).await;
    waiting.abort();
    eventually("it is given back", async || is_free(&one, "a").await).await;
    taken.release().await.unwrap();

    two.crash();
    // Nothing was sent to the second. At the end of the last call's limit no time is left to wait
    // for the first one's release.
    for (call, is_definite) in [
        (all.try_acquire(), Some(true)),
        (all.try_acquire_for(LONG), Some(true)),
        (all.try_acquire_for(Duration::from_millis(700)), None),
    ] {
        let error = soon("the call ends", call.into_future()).await.unwrap_err();
        assert!(is_definite.is_none_or(|definite| error.is_definite() == definite), "{error:?}");
        eventually("the first is free", async || is_free(&one, "a").await).await;
    }
}

/// One limit covers all: a waiter for two locks, each of which is free half of the time, ends at
/// the limit.
#[tokio::test]
async fn a_wait_ends_at_its_limit() {
    let Some(server) = RedisServer::start() else { return };
    let (ours, others) = (client(&server.url()).await, client(&server.url()).await);
    let all = of(&[ours.fair_lock("a"), ours.fair_lock("b")]);
    let b = others.fair_lock("b").acquire().await.unwrap();
    let env = TokioEnv::current().unwrap();
    let begun = env.now();
    assert!(all.try_acquire_for(Duration::from_millis(2500)).await.unwrap().is_none());
    let took = (env.now() - begun).as_millis();
    // The multi lock gives way once and asks again: both rounds together end well before twice the
    // limit.
    assert!((2500..4000).contains(&took), "{took} ms");
    b.release().await.unwrap();
    for key in ["a", "b", "redisson_lock_queue:{a}", "redisson_lock_queue:{b}"] {
        eventually("nothing is left", async || is_free(&server, key).await).await;
    }
}

/// A lease begins when all locks are acquired, not with the first.
#[tokio::test]
async fn a_lease_begins_when_all_are_had() {
    let Some(server) = RedisServer::start() else { return };
    let (ours, others) = (client(&server.url()).await, client(&server.url()).await);
    let all = of(&[ours.lock("a"), ours.lock("b")]);
    let b = others.lock("b").acquire().await.unwrap();
    let lease = Duration::from_secs(3);
    let waiting = task(all.acquire().lease(lease).into_future());
    eventually("the first is granted", async || !is_free(&server, "a").await).await;
    // The pause is longer than a tenth of the lease, so that the lease is extended, and shorter
    // than the time for which the multi lock holds the first lock and waits for the second.
    #[expect(clippy::disallowed_methods, reason = "the lease of the first must run for a while")]
    tokio::time::sleep(Duration::from_millis(350)).await;
    b.release().await.unwrap();
    let guard = soon("both are free", waiting).await.unwrap().unwrap();
    let left: Vec<Duration> = guard.members().map(|member| member.validity()).collect();
    let [first, second] = left[..] else { panic!("{guard:?}") };
    // Both were extended together, however slow this machine is.
    assert!(first.abs_diff(second) < Duration::from_millis(200), "{first:?} and {second:?} are left");
    soon("the lease ends", guard.lost()).await;
    assert!(!guard.is_valid());
}

/// Counts releases.
#[derive(Default)]
struct Releases(AtomicUsize);

impl Observer for Releases {
    fn observe(&self, event: &Event<'_>) {
        if matches!(event.kind, EventKind::Released { .. }) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// ML1: two callers that name the locks in opposite orders acquire them in one order, and neither
/// gives way to the other.
#[tokio::test]
async fn opposite_orders_do_not_collide() {
    let Some(server) = RedisServer::start() else { return };
    let releases = Arc::new(Releases::default());
    const ROUNDS: usize = 20;
    let mut all = tokio::task::JoinSet::new();
    for names in [["a", "b"], ["b", "a"]] {
        let builder = Client::builder().endpoint(server.url()).observer(releases.clone());
        let client = builder.connect().await.unwrap();
        let both = of(&names.map(|name| client.lock(name)));
        all.spawn(async move {
            for _ in 0..ROUNDS {
                both.acquire().await.unwrap().release().await.unwrap();
            }
        });
    }
    soon("all rounds are done", all.join_all()).await;
    assert_eq!(releases.0.load(Ordering::SeqCst), 2 * 2 * ROUNDS, "none was given back for nothing");
}

/// The other program takes one lock after the other in its own order, and waits for the second
/// without a limit while it holds the first: the multi lock gives way, and both proceed.
#[tokio::test]
async fn it_gives_way_to_another_order() {
    let Some(server) = RedisServer::start() else { return };
    let (ours, others) = (client(&server.url()).await, client(&server.url()).await);
    let all = of(&[ours.lock("a"), ours.lock("b")]);
    let b = others.lock("b").acquire().await.unwrap();
    let waiting = task(all.acquire().into_future());
    eventually("the multi lock has a, and waits for b", async || !is_free(&server, "a").await).await;
    let a = soon("the multi lock gives a back", others.lock("a").acquire().into_future()).await.unwrap();
    a.release().await.unwrap();
    b.release().await.unwrap();
    let guard = soon("the multi lock has both", waiting).await.unwrap().unwrap();
    guard.release().await.unwrap();
}

/// One owner holds several levels, of all locks or of some; each release gives one back.
#[tokio::test]
async fn it_nests_with_its_members() {
    let Some(server) = RedisServer::start() else { return };
    let client = client(&server.url()).await;
    let owner = OwnerId::new(7);
    let (a, b) = (client.lock("a"), client.lock("b"));
    let all = of(&[a.clone(), b.clone()]);
    let outer = a.acquire().owner(owner).await.unwrap();
    let both = all.acquire().owner(owner).await.unwrap();
    assert_eq!((a.hold_count(owner).await.unwrap(), b.hold_count(owner).await.unwrap()), (2, 1));
    for member in both.members() {
        assert_eq!(member.owner(), outer.owner(), "{both:?}");
    }
    assert!(all.try_acquire().await.unwrap().is_none(), "another owner");
    both.extend(LEASE).await.unwrap();
    assert!(both.validity() > LEASE / 2, "{both:?}");
    both.release().await.unwrap();
    assert_eq!((a.hold_count(owner).await.unwrap(), b.hold_count(owner).await.unwrap()), (1, 0));
    outer.release().await.unwrap();
    // A call that names no owner uses a new owner, the same for all locks.
    let both = all.acquire().await.unwrap();
    let owners: Vec<&str> = both.members().map(|member| member.owner()).collect();
    assert_eq!(owners[0], owners[1]);
    both.release().await.unwrap();
    // A lock that cannot nest is refused, and the others are released.
    let once = MultiLock::builder().member(&a).member(&client.non_reentrant_lock("once")).build().unwrap();
    let held = client.non_reentrant_lock("once").acquire().owner(owner).await.unwrap();
    let error = once.acquire().owner(owner).await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::AlreadyHeld), "{error}");
    assert_eq!(a.hold_count(owner).await.unwrap(), 0);
    held.release().await.unwrap();
}

#[tokio::test]
async fn what_cannot_work_is_refused() {
    let Some(server) = RedisServer::start() else { return };
    let (one, again) = (client(&server.url()).await, client(&server.url()).await);
    let build = |builder: MultiLockBuilder| builder.build().map(|_| ()).unwrap_err().to_string();
    assert_eq!(build(MultiLock::builder()), "bad configuration: a multi lock needs members");
    let twice = MultiLock::builder().member(&one.lock("a")).member(&again.fair_lock("a"));
    assert_eq!(build(twice), "bad configuration: two members of a multi lock are a");
    // The same name in another database is another lock.
    let elsewhere = Client::connect(&format!("{}/1", server.url())).await.unwrap();
    let both = MultiLock::builder().member(&one.lock("a")).member(&elsewhere.lock("a")).build().unwrap();
    both.acquire().await.unwrap().release().await.unwrap();
    let lease = both.acquire().lease(Duration::from_millis(1)).await.unwrap_err();
    assert!(matches!(lease.kind(), ErrorKind::Config(_)), "{lease}");
    let nameless = MultiLock::builder().member(&one.lock("a")).member(&one.lock("")).build().unwrap();
    assert!(matches!(nameless.acquire().await.unwrap_err().kind(), ErrorKind::Config(_)));
    assert!(is_free(&server, "a").await);
}
