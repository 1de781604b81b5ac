//! The particular behaviour of the string lock: its requests, its key, and what it shares with
//! locks that others write in this form.

use std::sync::Arc;
use std::time::Duration;

use lockstorm_client::{Client, ErrorKind, OwnerId, Redlock};
use lockstorm_sim::TestServer;
use lockstorm_sim::config::Config;
use lockstorm_sim::generation::Generation;
use redis::Value;

use crate::commands::commands;
use crate::support::program::Program;
use crate::support::{Attempts, Flow, Proxy, RedisServer, command, eventually, on_each_server, soon, task};

const LEASE: Duration = Duration::from_secs(30);

/// A cycle is one SET and one release: a command that compares where the server has it, else a
/// script. Nothing is published.
async fn costs_two_requests(name: &str, url: &str, release: &str) {
    let client = Client::connect(url).await.unwrap();
    let lock = client.string_lock("stock");
    // The server learns the script, or the client that the server has no such command.
    lock.acquire().await.unwrap().release().await.unwrap();
    let sent = commands(url, async || {
        for _ in 0..2 {
            let guard = lock.acquire().lease(LEASE).await.unwrap();
            let key = command(url, "GET stock").await;
            assert_eq!(key, Value::BulkString(guard.owner().as_bytes().to_vec()), "{name}");
            let Value::Int(left) = command(url, "PTTL stock").await else { panic!("{name}: no TTL") };
            assert!((1..=30_000).contains(&left), "{name}: {left} ms");
            guard.release().await.unwrap();
        }
    });
    let cycle = ["set", "get", "pttl", release];
    assert_eq!(sent.await, [cycle, cycle].concat(), "{name}");
    assert_eq!(command(url, "EXISTS stock").await, Value::Int(0), "{name}");
    // A key that has become another kind of object is left alone.
    let guard = lock.acquire().await.unwrap();
    command(url, "DEL stock").await;
    command(url, "HSET stock field 1").await;
    let error = guard.release().await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::NotHeld { .. }), "{name}: {error}");
    assert_eq!(command(url, "HLEN stock").await, Value::Int(1), "{name}");
}

#[tokio::test]
async fn a_cycle_is_a_set_and_a_comparison() {
    for generation in Generation::ALL {
        let release = if generation == Generation::Valkey91 { "delifeq" } else { "evalsha" };
        let simulated = TestServer::builder().config(Config::of(generation)).start().await.unwrap();
        costs_two_requests(&format!("{generation}, simulated"), &simulated.url(), release).await;
        let Some(program) = Program::real(generation) else { continue };
        let real = RedisServer::start_on(&program, |_| Vec::new()).expect("it is present");
        costs_two_requests(&program.to_string(), &real.url(), release).await;
    }
}

/// On Valkey 9 a user without the right to DELIFEQ releases by the script.
#[tokio::test]
async fn a_user_without_the_comparing_command_releases_by_the_script() {
    let config = Config::of(Generation::Valkey91);
    let server = TestServer::builder().config(config).start().await.unwrap();
    let url = server.url();
    command(&url, "ACL SETUSER clerk reset on >secret ~* +@all -delifeq").await;
    let client = Client::connect(url.replace("redis://", "redis://clerk:secret@")).await.unwrap();
    let lock = client.string_lock("stock");
    lock.acquire().await.unwrap().release().await.unwrap();
    let sent = commands(&url, async || lock.acquire().await.unwrap().release().await.unwrap());
    assert_eq!(sent.await, ["set", "evalsha"], "the refused command is not tried again");
}

/// A Redlock on one server, and a lock that any library sets with NX, exclude this lock and are
/// excluded by it.
#[tokio::test]
async fn it_excludes_other_locks_of_its_form() {
    on_each_server(async |url| {
        let client = Client::connect(url).await.unwrap();
        let majority = Redlock::builder([client.clone()]).node_timeout(Duration::from_secs(2));
        let (lock, majority) = (client.string_lock("stock"), majority.build("stock").unwrap());
        let guard = lock.acquire().await.unwrap();
        assert!(majority.try_acquire().await.unwrap().is_none(), "on {url}");
        assert_eq!(command(url, "SET stock token NX PX 30000").await, Value::Nil, "on {url}");
        let error = client.lock("stock").try_acquire().await.unwrap_err();
        assert!(error.to_string().contains("WRONGTYPE"), "{error} on {url}");
        guard.release().await.unwrap();
        let guard = majority.acquire().await.unwrap();
        assert!(lock.try_acquire().await.unwrap().is_none(), "on {url}");
        guard.release().await.unwrap();
        assert_eq!(command(url, "SET stock token NX PX 30000").await, Value::Okay, "on {url}");
        assert!(lock.try_acquire().await.unwrap().is_none(), "on {url}");
        command(url, "DEL stock").await;
        let guard = client.lock("stock").acquire().await.unwrap();
        assert!(lock.try_acquire().await.unwrap().is_none(), "on {url}");
        guard.release().await.unwrap();
    })
    .await;
}

/// A named owner is refused while it holds the lock, but not once it has lost it.
#[tokio::test]
async fn an_owner_is_refused_while_it_holds_the_lock() {
    on_each_server(async |url| {
        let client = Client::connect(url).await.unwrap();
        let (lock, owner) = (client.string_lock("stock"), OwnerId::new(7));
        let guard = lock.acquire().owner(owner).await.unwrap();
        let error = lock.acquire().owner(owner).await.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::AlreadyHeld) && error.is_definite(), "{error} on {url}");
        assert!(lock.force_release().await.unwrap());
        let again = lock.acquire().owner(owner).await.unwrap();
        // The lost hold has the same name, and must not release the new one.
        let error = guard.release().await.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::NotHeld { .. }), "{error} on {url}");
        assert!(again.is_valid() && lock.hold_count(owner).await.unwrap() == 1, "on {url}");
        again.release().await.unwrap();
        assert!(!lock.is_locked().await.unwrap(), "on {url}");
    })
    .await;
}

/// The replies to the acquisition and to the release are lost, with the connection.
#[tokio::test]
async fn lost_replies_are_made_up_for() {
    let Some(server) = RedisServer::start() else { return };
    let proxy = Proxy::to(&server).await;
    let attempts = Arc::new(Attempts::default());
    let client = Client::builder()
        .endpoint(proxy.url())
        .observer(attempts.clone())
        .response_timeout(Duration::from_millis(500))
        .connect()
        .await
        .unwrap();
    let lock = client.string_lock("stock");
    lock.acquire().await.unwrap().release().await.unwrap();
    let before = attempts.count();
    proxy.replies(Flow::Swallow);
    let asking = task({
        let lock = lock.clone();
        async move { lock.try_acquire_for(LEASE).await }
    });
    let exists = async || server.command(&["EXISTS", "stock"]).await;
    eventually("it is granted", async || exists().await == Value::Int(1)).await;
    proxy.replies(Flow::Pass);
    let guard = soon("its own grant is found", asking).await.unwrap().unwrap().expect("granted");
    assert_eq!(attempts.count() - before, 1, "sent once");

    proxy.replies(Flow::Swallow);
    let releasing = task(guard.release());
    eventually("it is released", async || exists().await == Value::Int(0)).await;
    // Another owner takes it before the repeat arrives.
    let other = Client::connect(server.url().as_str()).await.unwrap();
    let taken = other.string_lock("stock").acquire().await.unwrap();
    proxy.replies(Flow::Pass);
    soon("the release has its outcome", releasing).await.unwrap().unwrap();
    assert_eq!(exists().await, Value::Int(1), "the other owner has it still");
    taken.release().await.unwrap();
}

/// The watchdog renews many such locks, and only those that their owners still have.
#[tokio::test]
async fn its_watchdog_renews_what_is_held() {
    on_each_server(async |url| {
        let watchdog = Duration::from_millis(900);
        let client = Client::builder().endpoint(url).watchdog_timeout(watchdog).connect().await.unwrap();
        let kept = client.string_lock("kept").acquire().await.unwrap();
        let stolen = client.string_lock("stolen").acquire().await.unwrap();
        command(url, "SET stolen another KEEPTTL").await;
        soon("the loss is noticed", stolen.lost()).await;
        assert!(client.string_lock("kept").try_acquire_for(2 * watchdog).await.unwrap().is_none());
        assert!(kept.is_valid(), "on {url}");
        kept.release().await.unwrap();
    })
    .await;
}
