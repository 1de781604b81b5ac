//! Several values of one group in one round trip, on a real server.

use std::time::Duration;

use lockstorm_client::{Client, ErrorKind, Lock, OwnerId};
use redis::Value;

use super::{LEASE, WATCHDOG, client};
use crate::support::{Flow, Proxy, RedisServer, eventually, impatient, soon, task};

const GROUP: &str = "stock";

/// The lock on values named by letters: `ab` is the lock on `a` and `b`.
fn of(client: &Client, values: &str) -> Lock {
    client.faster_multi_lock(GROUP, values.chars().map(String::from))
}

/// The values of these that any owner holds.
async fn held(client: &Client, values: &str) -> String {
    let mut held = String::new();
    for value in values.chars() {
        if of(client, &value.to_string()).is_locked().await.unwrap() {
            held.push(value);
        }
    }
    held
}

async fn hlen(server: &RedisServer) -> Value {
    server.command(&["HLEN", GROUP]).await
}

/// Writes the fields of a value that another client holds, in Redisson's form, until `ms`
/// milliseconds from now by the server's clock.
async fn take(server: &RedisServer, value: &str, ms: i64) {
    let time: (i64, i64) = redis::from_redis_value(server.command(&["TIME"]).await).unwrap();
    let field = lockstorm_client::wire::group_field(value.as_bytes());
    let (deadline, levels) = (format!("{field}:thief:1:expire_time"), format!("{field}:thief:1:lock_count"));
    let until = (time.0 * 1000 + time.1 / 1000 + ms).to_string();
    server.command(&["HSET", GROUP, &field, "thief:1", &deadline, &until, &levels, "1"]).await;
}

/// All values or none, in any order of their names: locks of one group exclude each other if they
/// share a value.
#[tokio::test]
async fn values_are_locked_all_or_none() {
    let Some(server) = RedisServer::start() else { return };
    let (mine, others) = (client(&server.url()).await, client(&server.url()).await);
    let guard = of(&mine, "baab").acquire().await.unwrap();
    assert_eq!((hlen(&server).await, held(&others, "abcd").await), (Value::Int(6), "ab".into()));
    for (values, is_granted) in [("bc", false), ("cba", false), ("cd", true), ("a", false), ("d", true)] {
        let other = of(&others, values).try_acquire().await.unwrap();
        assert_eq!(other.is_some(), is_granted, "{values}");
        if let Some(other) = other {
            other.release().await.unwrap();
        }
        assert_eq!(held(&others, "abcd").await, "ab", "nothing of {values} is left");
    }
    // The release wakes a waiter, even behind another one that wants a different value.
    let first = of(&mine, "c").acquire().await.unwrap();
    let waits = |values| task(of(&others, values).acquire().into_future());
    let (elsewhere, waiting) = (waits("cd"), waits("bd"));
    eventually("both listen", async || {
        let listening = server.command(&["PUBSUB", "NUMSUB", "redisson_lock__channel:{stock}"]).await;
        matches!(&listening, Value::Array(reply) if reply[1] == Value::Int(1))
    })
    .await;
    guard.release().await.unwrap();
    let guard = soon("b and d are free", waiting).await.unwrap().unwrap();
    first.release().await.unwrap();
    guard.release().await.unwrap();
    soon("c and d are free", elsewhere).await.unwrap().unwrap().release().await.unwrap();
    assert_eq!(hlen(&server).await, Value::Int(0), "nothing is left");
}

/// H-27: an owner's holds cover all values, where Redisson omits the first one.
#[tokio::test]
async fn what_is_held_is_said_of_every_value() {
    let Some(server) = RedisServer::start() else { return };
    let client = client(&server.url()).await;
    let owner = OwnerId::new(7);
    let levels = async |values: &str| of(&client, values).hold_count(owner).await.unwrap();
    let stranger = of(&client, "c").acquire().await.unwrap();
    assert_eq!(
        (levels("a").await, levels("c").await),
        (0, 0),
        "the key is there, and the owner holds nothing"
    );
    let outer = of(&client, "ab").acquire().owner(owner).await.unwrap();
    let inner = of(&client, "bd").acquire().owner(owner).lease(LEASE).await.unwrap();
    for (values, expected) in [("a", 1), ("b", 2), ("ab", 1), ("bd", 1), ("ac", 0), ("abc", 0), ("e", 0)] {
        assert_eq!(levels(values).await, expected, "{values}");
    }
    // The time left lasts until the last of the values ends, and no other value counts.
    let left = async |values: &str| of(&client, values).remaining().await.unwrap();
    assert!(left("abd").await.is_some_and(|left| left > LEASE / 2 && left <= LEASE));
    assert!(left("ac").await.is_some_and(|left| left <= WATCHDOG));
    assert_eq!(left("e").await, None);
    inner.release().await.unwrap();
    assert_eq!((levels("ab").await, levels("d").await), (1, 0));
    outer.release().await.unwrap();
    assert_eq!(held(&client, "abcd").await, "c");
    assert!(!of(&client, "ab").force_release().await.unwrap(), "c is none of these");
    assert!(stranger.is_valid());
    assert!(of(&client, "bc").force_release().await.unwrap());
    assert!(!stranger.is_valid(), "its own client knows at once");
    assert_eq!(hlen(&server).await, Value::Int(0));
    drop(stranger);
}

/// H-21: a client whose clock is ahead takes a held value. The owner is notified, unlike
/// Redisson's. Its release gives back the values it still has, and takes nothing from the thief,
/// unlike Redisson's.
#[tokio::test]
async fn a_value_that_was_taken_away_makes_the_guard_lost() {
    let Some(server) = RedisServer::start() else { return };
    let client = client(&server.url()).await;
    let guard = of(&client, "abc").acquire().await.unwrap();
    take(&server, "b", 60_000).await;
    soon("the watchdog notices", guard.lost()).await;
    assert!(of(&client, "b").try_acquire().await.unwrap().is_none());
    let error = guard.release().await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::NotHeld { .. }), "{error}");
    assert_eq!(held(&client, "abc").await, "b", "the others are free, and the thief holds what it took");
    server.command(&["DEL", GROUP]).await;

    // A hold without renewals learns of it at its release.
    let guard = of(&client, "ab").acquire().lease(LEASE).await.unwrap();
    take(&server, "a", 60_000).await;
    assert!(matches!(guard.release().await.unwrap_err().kind(), ErrorKind::NotHeld { .. }));
    assert_eq!(held(&client, "ab").await, "a");
}

/// The server's clock decides when a value ends, whatever the hash contains until then. That
/// includes a value of Redisson's without its owner's fields, and no field of an earlier owner
/// remains. H-27: Redisson's script fails at a value without a deadline.
#[tokio::test]
async fn values_whose_time_is_over_are_free() {
    let Some(server) = RedisServer::start() else { return };
    let client = client(&server.url()).await;
    take(&server, "a", -1).await;
    take(&server, "b", 60_000).await;
    assert_eq!(held(&client, "ab").await, "b");
    let field = lockstorm_client::wire::group_field(b"c");
    server.command(&["HSET", GROUP, &field, "thief:1"]).await;
    let waiting = of(&client, "abc").try_acquire_for(Duration::from_millis(50)).await.unwrap();
    assert!(waiting.is_none(), "b is held");
    take(&server, "b", 300).await;
    let guard = soon("b is over", of(&client, "abc").acquire().into_future()).await.unwrap();
    assert_eq!(hlen(&server).await, Value::Int(9), "nothing of the earlier owner is left");
    guard.release().await.unwrap();
    assert_eq!(hlen(&server).await, Value::Int(0));
}

/// Each set of values of one owner is renewed and lost by itself.
#[tokio::test]
async fn values_of_one_owner_are_kept_apart() {
    let Some(server) = RedisServer::start() else { return };
    let client = client(&server.url()).await;
    let owner = OwnerId::new(7);
    let one = of(&client, "ab").acquire().owner(owner).await.unwrap();
    let other = of(&client, "cd").acquire().owner(owner).await.unwrap();
    take(&server, "a", 60_000).await;
    soon("it is lost", one.lost()).await;
    let later = of(&client, "c").acquire().owner(owner).lease(LEASE).await.unwrap();
    assert!(of(&client, "d").try_acquire_for(2 * WATCHDOG).await.unwrap().is_none(), "it is renewed still");
    assert!(other.is_valid() && later.is_valid());
    later.release().await.unwrap();
    assert!(of(&client, "c").try_acquire().await.unwrap().is_none(), "a level of it is left");
    other.release().await.unwrap();
    assert_eq!(held(&client, "abcd").await, "a", "what was lost with a is renewed no more");
    drop(one);
}

/// A hold is over, and its owner has taken one of its values again: the late release takes no level
/// of the newer hold.
#[tokio::test]
async fn a_late_release_leaves_what_was_taken_anew() {
    let Some(server) = RedisServer::start() else { return };
    let client = client(&server.url()).await;
    let owner = OwnerId::new(7);
    let short = of(&client, "ab").acquire().owner(owner).lease(Duration::from_millis(100)).await.unwrap();
    // It shares no value with the first hold, but keeps the key.
    let keeper = of(&client, "d").acquire().owner(owner).await.unwrap();
    soon("it is over", short.lost()).await;
    eventually("by the server, too", async || held(&client, "ab").await.is_empty()).await;
    let anew = of(&client, "bc").acquire().owner(owner).await.unwrap();
    assert_eq!(of(&client, "b").hold_count(owner).await.unwrap(), 1, "the level that is over does not count");
    assert!(matches!(short.release().await.unwrap_err().kind(), ErrorKind::NotHeld { .. }));
    assert_eq!(held(&client, "bc").await, "bc");
    anew.release().await.unwrap();
    assert_eq!(held(&client, "abcd").await, "d");
    keeper.release().await.unwrap();
}

/// The levels of each value reveal a grant whose reply is lost, although another hold of the owner
/// has some of them.
#[tokio::test]
async fn a_grant_whose_reply_is_lost_is_found() {
    let Some(server) = RedisServer::start() else { return };
    let proxy = Proxy::to(&server).await;
    let client = impatient(&proxy.url()).await;
    let owner = OwnerId::new(1);
    let outer = of(&client, "b").acquire().owner(owner).await.unwrap();
    let count = format!("{}:{}:lock_count", lockstorm_client::wire::group_field(b"b"), outer.owner());

    proxy.replies(Flow::Swallow);
    let lock = of(&client, "abc");
    let asking = task(lock.acquire().owner(owner).into_future());
    eventually("it is granted", async || {
        server.command(&["HGET", GROUP, &count]).await == Value::BulkString(b"2".into())
    })
    .await;
    proxy.replies(Flow::Pass);
    let inner = asking.await.unwrap().unwrap();
    assert_eq!(lock.hold_count(owner).await.unwrap(), 1, "sent once, or found: never counted twice");

    // A request that never arrived does not count as executed because of the owner's other hold.
    proxy.requests_on_open_connections(Flow::Hold);
    let again = lock.acquire().owner(owner).await.unwrap();
    proxy.requests(Flow::Pass);
    assert_eq!(lock.hold_count(owner).await.unwrap(), 2);
    for guard in [again, inner, outer] {
        guard.release().await.unwrap();
    }
    assert_eq!(hlen(&server).await, Value::Int(0));
}

/// A dropped caller leaves no hold behind.
#[tokio::test]
async fn a_caller_that_is_gone_leaves_nothing() {
    let Some(server) = RedisServer::start() else { return };
    let proxy = Proxy::to(&server).await;
    let client = impatient(&proxy.url()).await;
    of(&client, "a").acquire().await.unwrap().release().await.unwrap();
    proxy.replies(Flow::Swallow);
    let asking = task(of(&client, "ab").acquire().into_future());
    eventually("it is granted", async || hlen(&server).await == Value::Int(6)).await;
    asking.abort();
    proxy.replies(Flow::Pass);
    eventually("it is given back", async || hlen(&server).await == Value::Int(0)).await;
}

/// A hold that another process has forgotten is adopted by naming its values.
#[tokio::test]
async fn a_hold_is_adopted_by_its_values() {
    let Some(server) = RedisServer::start() else { return };
    let (old, new) = (client(&server.url()).await, client(&server.url()).await);
    let guard = of(&old, "ab").acquire().await.unwrap();
    let owner = guard.owner().to_owned();
    guard.forget();
    assert!(matches!(of(&new, "abc").adopt(&owner).await.unwrap_err().kind(), ErrorKind::NotHeld { .. }));
    let guard = of(&new, "ab").adopt(&owner).await.unwrap();
    assert!(of(&old, "b").try_acquire_for(2 * WATCHDOG).await.unwrap().is_none(), "it is renewed");
    assert!(of(&new, "ab").adopt(&owner).await.is_err(), "there is no other level");
    guard.release().await.unwrap();
    assert_eq!(hlen(&server).await, Value::Int(0));
}

#[tokio::test]
async fn what_cannot_work_is_refused() {
    let Some(server) = RedisServer::start() else { return };
    let client = client(&server.url()).await;
    let many = |count: u32| client.faster_multi_lock(GROUP, (0..count).map(u32::to_be_bytes));
    for (lock, told) in [
        (of(&client, ""), "from 1 to 1000 values can be locked together, not 0"),
        (many(1_001), "from 1 to 1000 values can be locked together, not 1001"),
        (client.faster_multi_lock("", ["a"]), "the name of the lock is empty"),
    ] {
        for error in [lock.acquire().await.unwrap_err(), lock.is_locked().await.unwrap_err()] {
            assert_eq!(error.to_string(), format!("bad configuration: {told}"));
        }
    }
    let guard = many(1_000).try_acquire().await.unwrap().expect("free");
    guard.extend(LEASE).await.unwrap();
    guard.release().await.unwrap();
    server.command(&["SET", GROUP, "text"]).await;
    let error = of(&client, "a").try_acquire().await.unwrap_err();
    assert!(error.to_string().contains("WRONGTYPE"), "{error}");
}

/// Redis keeps a key through the millisecond in which it expires, with 0 ms left. A grant in that
/// millisecond must not be deleted with the old content.
#[tokio::test]
async fn a_grant_in_the_last_millisecond_of_the_group_outlives_it() {
    let server = lockstorm_sim::TestServer::builder().manual_clock().start().await.unwrap();
    let client = Client::connect(&server.url()).await.unwrap();
    let ask = async |text: &str| crate::support::command(&server.url(), text).await;
    let first = of(&client, "a").acquire().lease(Duration::from_secs(5)).await.unwrap();
    first.forget();
    ask("DEBUG CLOCK ADVANCE 5000").await;
    assert_eq!(ask("PTTL stock").await, Value::Int(0));
    let second = of(&client, "b").try_acquire().lease(Duration::from_secs(5)).await.unwrap();
    assert!(second.is_some());
    assert_eq!(ask("PTTL stock").await, Value::Int(5_000));
}
