//! Tests that the documented rights of each object are exactly those that it needs. With them its
//! whole life works. Without one of them an error names it, or the acquired hold can still be
//! released.

use std::pin::pin;
use std::time::Duration;

use lockstorm_client::{Client, ErrorKind, Handle, Object, OwnerId, RateMode, Redlock, Result};
use redis::Value;

use crate::support::{
    Flow, Proxy, RedisServer, command, eventually, impatient, listeners, on_each_server, soon, task,
};

const LEASE: Duration = Duration::from_secs(30);
const SHORT: Duration = Duration::from_millis(200);

/// The documented rights of one object.
struct Row {
    constructor: String,
    /// With `~` or `&` before them.
    patterns: Vec<String>,
    commands: String,
}

/// The table of the documentation, together with the rights that its text states for all rows.
fn documented() -> Vec<Row> {
    let text = include_str!("../../src/rights.md").replace('\n', "\u{1f}");
    let prose = text.replace('\u{1f}', " ");
    let quoted = |begins: &str| {
        let (_, rest) = prose.split_once(&format!("`{begins}")).expect("the text has it");
        format!("{begins}{}", rest.split_once('`').expect("it ends").0)
    };
    let (every, listening) = (quoted("+eval"), quoted("+publish"));
    let lines = text.split('\u{1f}').filter_map(|line| line.strip_prefix("| [`"));
    let row = |line: &str| {
        let (constructor, rights) = line.split_once("`] | `").expect("a row has two cells");
        let rights: Vec<_> = rights.trim_end_matches("` |").split(' ').map(ToOwned::to_owned).collect();
        let (commands, patterns): (Vec<_>, Vec<_>) =
            rights.into_iter().partition(|right| right.starts_with('+'));
        let has_channel = patterns.iter().any(|pattern| pattern.starts_with('&'));
        let listening = if has_channel { listening.as_str() } else { "" };
        let commands = [every.as_str(), listening, &commands.join(" ")].join(" ");
        Row { constructor: constructor.to_owned(), patterns, commands }
    };
    lines.map(row).collect()
}

impl Row {
    /// Gives the user all rights of the row except `missing`.
    async fn allow(&self, url: &str, missing: Option<&str>) {
        command(url, "FLUSHALL").await;
        let patterns = self.patterns.iter().filter(|pattern| Some(pattern.as_str()) != missing);
        let rights: Vec<_> = patterns.map(String::as_str).chain(self.commands.split_whitespace()).collect();
        command(url, &format!("ACL SETUSER clerk reset on >secret {}", rights.join(" "))).await;
    }

    /// The channel of its waiters; `None` if each waiter has its own.
    fn channel(&self) -> Option<&str> {
        self.patterns
            .iter()
            .find_map(|pattern| pattern.strip_prefix('&'))
            .filter(|channel| !channel.ends_with('*'))
    }

    /// Returns true if an acquired hold can be released without this right.
    fn does_without(&self, pattern: &str) -> bool {
        let is_latch = pattern.starts_with("~redisson_unlock_latch:");
        let is_lock =
            !["Client::semaphore", "Client::latch", "Client::rate_limiter"].contains(&&*self.constructor);
        // The common prefix of the keys of all read holds.
        is_latch && is_lock || pattern == "~{stock}"
    }

    /// Makes every call of the object.
    async fn live(&self, url: &str) -> Result<()> {
        let as_clerk = url.replace("redis://", "redis://clerk:secret@");
        let (mine, other) = (impatient(&as_clerk).await, impatient(&as_clerk).await);
        match &*self.constructor {
            "Client::lock" => live(mine.lock("stock"), other.lock("stock"), true).await,
            "Client::non_reentrant_lock" => {
                live(mine.non_reentrant_lock("stock"), other.non_reentrant_lock("stock"), false).await
            }
            "Client::fair_lock" => live(mine.fair_lock("stock"), other.fair_lock("stock"), true).await,
            "Client::non_reentrant_fair_lock" => {
                live(mine.non_reentrant_fair_lock("stock"), other.non_reentrant_fair_lock("stock"), false)
                    .await
            }
            "Client::fenced_lock" => {
                live(mine.fenced_lock("stock"), other.fenced_lock("stock"), true).await?;
                mine.fenced_lock("stock").last_token().await.map(drop)
            }
            "Client::spin_lock" => live(mine.spin_lock("stock"), other.spin_lock("stock"), true).await,
            "Client::string_lock" => live(mine.string_lock("stock"), other.string_lock("stock"), false).await,
            "Client::rw_lock" => {
                let (mine, other) = (mine.rw_lock("stock"), other.rw_lock("stock"));
                live(mine.write(), other.write(), true).await?;
                live(mine.read(), other.write(), true).await
            }
            "Client::faster_multi_lock" => {
                let lock = |client: &Client| client.faster_multi_lock("stock", ["one", "other"]);
                live(lock(&mine), lock(&other), true).await
            }
            "Client::semaphore" => {
                let (mine, other) = (mine.semaphore("stock"), other.semaphore("stock"));
                mine.set_permits(1).await?;
                let one = mine.acquire(1).await?;
                let waiting = pin!(other.acquire(1));
                let released = async {
                    listeners(url, self.channel().expect("it has one"), 1).await;
                    one.release().await
                };
                let got = released_while_waiting(waiting, released).await?;
                got.release().await?;
                mine.add_permits(1).await?;
                mine.drain().await?;
                mine.available().await.map(drop)
            }
            "Client::permit_semaphore" => {
                let (mine, other) = (mine.permit_semaphore("stock"), other.permit_semaphore("stock"));
                mine.set_permits(1).await?;
                let one = mine.acquire(1).await?;
                one.extend(LEASE).await?;
                one.release().await?;
                let one = mine.acquire(1).lease(SHORT).await?;
                let got = other.acquire(1).await?;
                drop(one);
                mine.update_lease(got.ids()[0], LEASE).await?;
                mine.available().await?;
                other.release(&got.forget()).await.map(drop)
            }
            "Client::latch" => {
                let (mine, other) = (mine.latch("stock"), other.latch("stock"));
                mine.try_set(1).await?;
                let waiting = pin!(other.wait());
                let counted = async {
                    listeners(url, self.channel().expect("it has one"), 1).await;
                    mine.count_down().await
                };
                released_while_waiting(waiting, counted).await?;
                mine.delete().await?;
                mine.count().await.map(drop)
            }
            "Client::rate_limiter" => {
                let mine = mine.rate_limiter("stock");
                for mode in [RateMode::Overall, RateMode::PerClient] {
                    mine.set_rate(mode, 1, SHORT).await?;
                    mine.acquire(1).await?;
                    mine.acquire(1).await?;
                    mine.available().await?;
                }
                mine.config().await.map(drop)
            }
            "Redlock" => {
                let lock = |client| Redlock::builder([client]).node_timeout(LEASE / 3).build("stock");
                live(lock(mine)?, lock(other)?, true).await
            }
            other => panic!("no life of {other} is known"),
        }
    }
}

/// The result of `waiting`, which `release` lets proceed. An error of either is the result.
async fn released_while_waiting<T, R>(
    mut waiting: impl Future<Output = Result<T>> + Unpin,
    release: impl Future<Output = Result<R>>,
) -> Result<T> {
    tokio::select! {
        biased;
        got = &mut waiting => return got,
        released = release => released.map(drop)?,
    }
    waiting.await
}

/// Makes every call of a lock. The waiter comes when the lease is over, so it waits for no message.
async fn live<M: Object, O: Object>(mine: Handle<M>, other: Handle<O>, nests: bool) -> Result<()> {
    let owner = OwnerId::new(7);
    let guard = mine.acquire().owner(owner).await?;
    guard.extend(LEASE).await?;
    assert!(mine.is_locked().await?);
    assert_eq!(mine.hold_count(owner).await?, 1);
    assert!(mine.remaining().await?.is_some());
    if nests {
        mine.acquire().owner(owner).await?.release().await?;
    }
    guard.release().await?;
    let over = mine.acquire().lease(SHORT).await?;
    let got = other.acquire().await?;
    drop(over);
    got.release().await?;
    let freed = mine.acquire().await?;
    assert!(mine.force_release().await?);
    drop(freed);
    Ok(())
}

/// With these rights and no others, an object's whole life works, and the server refuses nothing.
#[tokio::test]
async fn the_rights_of_the_documentation_are_all_that_is_needed() {
    on_each_server(async |url| {
        for row in documented() {
            row.allow(url, None).await;
            command(url, "ACL LOG RESET").await;
            let lived = row.live(url).await;
            lived.unwrap_or_else(|error| panic!("{}: {error} on {url}", row.constructor));
            let refused = command(url, "ACL LOG").await;
            assert_eq!(refused, Value::Array(Vec::new()), "{} on {url}", row.constructor);
        }
    })
    .await;
}

#[tokio::test]
async fn an_error_names_the_key_or_the_channel_that_the_user_may_not_use() {
    on_each_server(async |url| {
        for row in documented() {
            for pattern in &row.patterns {
                row.allow(url, Some(pattern)).await;
                let what = format!("{} without {pattern} on {url}", row.constructor);
                match row.live(url).await {
                    Err(error) => assert!(error.to_string().contains(&**pattern), "{what}: {error}"),
                    Ok(()) => assert!(row.does_without(pattern), "{what}: it works"),
                }
            }
        }
    })
    .await;
}

/// A URL of the same server for a user with the keys that begin with `stock`, and with `more`.
async fn owner_of_stock(url: &str, more: &str) -> String {
    let rights = format!("~stock* ~{{stock}}:* {more} &* +@all");
    command(url, &format!("ACL SETUSER clerk reset on >secret {rights}")).await;
    url.replace("redis://", "redis://clerk:secret@")
}

/// Regression: the user has the right to the lock's key but not to the latch's; the lock was
/// acquired, and its release failed with NOPERM.
#[tokio::test]
async fn what_was_acquired_could_not_be_given_back() {
    on_each_server(async |url| {
        let beside = "~redisson_lock_queue:* ~redisson_lock_timeout:* ~redisson_lock_alive:* ~redisson_lock_token:* \
                      ~redisson_sc:*";
        let client = impatient(&owner_of_stock(url, beside).await).await;
        gives_back(url, client.lock("stock"), true).await;
        gives_back(url, client.non_reentrant_lock("stock"), false).await;
        gives_back(url, client.fair_lock("stock"), true).await;
        gives_back(url, client.non_reentrant_fair_lock("stock"), false).await;
        gives_back(url, client.fenced_lock("stock"), true).await;
        gives_back(url, client.spin_lock("stock"), true).await;
        gives_back(url, client.string_lock("stock"), false).await;
        gives_back(url, client.rw_lock("stock").read(), true).await;
        gives_back(url, client.rw_lock("stock").write(), true).await;
        gives_back(url, client.faster_multi_lock("stock", ["one", "other"]), true).await;
        leaves_another_alone(url, client.lock("stock")).await;
        leaves_another_alone(url, client.fair_lock("stock")).await;
        leaves_another_alone(url, client.spin_lock("stock")).await;
        leaves_another_alone(url, client.string_lock("stock")).await;
        leaves_another_alone(url, client.rw_lock("stock").write()).await;
        leaves_another_alone(url, client.faster_multi_lock("stock", ["one", "other"])).await;

        command(url, "DEL stock").await;
        command(url, "SET stock 2").await;
        let seats = client.permit_semaphore("stock");
        let two = seats.acquire(2).await.unwrap();
        two.release().await.unwrap_or_else(|error| panic!("{error} on {url}"));
        assert_eq!(seats.available().await.unwrap(), 2, "on {url}");
        command(url, "DEL stock").await;
    })
    .await;
}

async fn gives_back<O: Object>(url: &str, lock: Handle<O>, nests: bool) {
    let owner = OwnerId::new(7);
    let released = |done: Result<()>| done.unwrap_or_else(|error| panic!("{error}, {lock:?} on {url}"));
    let outer = lock.acquire().owner(owner).await.unwrap();
    if nests {
        let inner = lock.acquire().owner(owner).await.unwrap();
        // The same on a server whose memory is full.
        command(url, "CONFIG SET maxmemory 1").await;
        released(inner.release().await);
        command(url, "CONFIG SET maxmemory 0").await;
        assert_eq!(lock.hold_count(owner).await.unwrap(), 1, "{lock:?} on {url}");
    }
    released(outer.release().await);
    assert!(!lock.is_locked().await.unwrap(), "{lock:?} on {url}");
}

/// The lease of one owner is over, and another has the lock: a release does not affect that.
async fn leaves_another_alone<O: Object>(url: &str, lock: Handle<O>) {
    let over = lock.acquire().owner(OwnerId::new(7)).lease(SHORT).await.unwrap();
    let other = lock.acquire().owner(OwnerId::new(8)).await.unwrap();
    let error = over.release().await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::NotHeld { .. }), "{error}, {lock:?} on {url}");
    assert!(other.is_valid() && lock.hold_count(OwnerId::new(8)).await.unwrap() == 1, "{lock:?} on {url}");
    other.release().await.unwrap_or_else(|error| panic!("{error}, {lock:?} on {url}"));
}

/// The reply to a release that the server does not remember is lost. A release of its owner's only
/// level can be repeated without harm; with nested levels the repeat would take the next one.
#[tokio::test]
async fn a_release_without_a_latch_takes_no_other_level_after_a_lost_reply() {
    let Some(server) = RedisServer::start() else { return };
    owner_of_stock(&server.url(), "").await;
    let proxy = Proxy::to(&server).await;
    let client = impatient(&proxy.url().replace("redis://", "redis://clerk:secret@")).await;
    let (lock, owner) = (client.lock("stock"), OwnerId::new(7));
    // The server knows the scripts from here on.
    lock.acquire().owner(owner).await.unwrap().release().await.unwrap();
    let outer = lock.acquire().owner(owner).await.unwrap();
    let inner = lock.acquire().owner(owner).await.unwrap();
    let error = without_reply(&server, &proxy, inner, 1).await.unwrap_err();
    assert!(!error.is_definite(), "{error}");
    assert_eq!(lock.hold_count(owner).await.unwrap(), 1, "the other level is there");
    without_reply(&server, &proxy, outer, 0).await.unwrap();
    assert!(!lock.is_locked().await.unwrap());
}

/// The result of a release whose reply is lost; the server then counts `left` levels.
async fn without_reply(
    server: &RedisServer,
    proxy: &Proxy,
    guard: lockstorm_client::LockGuard,
    left: i64,
) -> Result<()> {
    let url = server.url();
    let owner = guard.owner().to_owned();
    // A refusal comes immediately; any other request waits until the replies are swallowed.
    command(&url, "CLIENT PAUSE 60000 WRITE").await;
    let releasing = task(guard.release());
    eventually("it waits", async || {
        let clients: String = redis::from_redis_value(command(&url, "CLIENT LIST").await).unwrap();
        clients.lines().any(|client| client.contains("user=clerk") && client.contains("flags=b"))
    })
    .await;
    proxy.replies(Flow::Swallow);
    command(&url, "CLIENT UNPAUSE").await;
    let left = if left == 0 { Value::Nil } else { Value::BulkString(left.to_string().into_bytes()) };
    eventually("it is given back", async || command(&url, &format!("HGET stock {owner}")).await == left)
        .await;
    proxy.replies(Flow::Pass);
    soon("it has an outcome", releasing).await.unwrap()
}
