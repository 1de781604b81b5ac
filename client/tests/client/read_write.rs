//! The read-write lock: sharing, waiting, wake-ups, the end of each lease, and lost replies. On the
//! simulator and on a real server.

use std::future::IntoFuture;
use std::time::Duration;

use lockstorm_client::{Client, ErrorKind, OwnerId, ReadWriteLock};

use crate::support::{
    Flow, Proxy, RedisServer, command, eventually, impatient, listeners, on_each_server, soon, task,
};

const LONG: Duration = Duration::from_secs(60);
const WATCHDOG: Duration = Duration::from_millis(1500);
const CHANNEL: &str = "redisson_rwlock:{doc}";
const ME: i64 = 1;

async fn client(url: &str) -> Client {
    Client::builder().endpoint(url).watchdog_timeout(WATCHDOG).connect().await.unwrap()
}

async fn doc(url: &str) -> ReadWriteLock {
    client(url).await.rw_lock("doc")
}

fn me() -> OwnerId {
    OwnerId::new(ME)
}

#[tokio::test]
async fn readers_share_and_exclude_writers() {
    on_each_server(async |url| {
        let (mine, other) = (doc(url).await, doc(url).await);
        let first = mine.read().acquire().owner(me()).await.unwrap();
        let nested = mine.read().acquire().owner(me()).await.unwrap();
        let second = other.read().try_acquire().owner(me()).await.unwrap().expect("readers share");
        assert_eq!(mine.read().hold_count(me()).await.unwrap(), 2);
        assert_eq!(mine.write().hold_count(me()).await.unwrap(), 0);
        assert!(mine.read().is_locked().await.unwrap());
        assert!(!mine.write().is_locked().await.unwrap());
        for writer in [&mine, &other] {
            assert!(
                writer.write().try_acquire().owner(me()).await.unwrap().is_none(),
                "not even its own reader"
            );
        }
        assert!(!other.write().force_release().await.unwrap(), "nobody writes");
        assert!(first.is_valid() && nested.is_valid());
        first.release().await.unwrap();
        second.release().await.unwrap();
        assert!(other.write().try_acquire().await.unwrap().is_none());
        nested.release().await.unwrap();
        assert!(!mine.read().is_locked().await.unwrap());
        assert!(other.write().try_acquire().await.unwrap().is_some());
    })
    .await;
}

/// Each half frees only its own mode, and notifies its holders immediately.
#[tokio::test]
async fn force_frees_what_is_held_in_its_mode() {
    on_each_server(async |url| {
        let (mine, other) = (doc(url).await, doc(url).await);
        let writing = mine.write().acquire().owner(me()).await.unwrap();
        let reading = mine.read().acquire().owner(me()).await.unwrap();
        assert!(!mine.read().force_release().await.unwrap(), "it is held for writing");
        assert!(writing.is_valid() && reading.is_valid());
        assert!(mine.write().force_release().await.unwrap());
        assert!(!writing.is_valid() && !reading.is_valid());
        let error = reading.release().await.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::NotHeld { .. }), "{error}");
        drop(writing);

        let mut readers = Vec::new();
        for lock in [&mine, &other] {
            readers.push(soon("it is free", lock.read().acquire().into_future()).await.unwrap());
        }
        assert!(mine.read().force_release().await.unwrap());
        for reader in &readers {
            soon("each reader learns of it", reader.lost()).await;
        }
        assert!(other.write().try_acquire().await.unwrap().is_some());
    })
    .await;
}

/// The writer becomes a reader: all readers that it refused enter together and immediately; the
/// waiting writer does not.
#[tokio::test]
async fn a_downgrade_wakes_all_readers_and_lets_no_writer_in() {
    on_each_server(async |url| {
        let mine = doc(url).await;
        let writing = mine.write().acquire().owner(me()).lease(LONG).await.unwrap();
        let reading = mine.read().acquire().owner(me()).lease(LONG).await.unwrap();
        let mut readers = Vec::new();
        for _ in 0..2 {
            let waiting = doc(url).await;
            for _ in 0..3 {
                let wanted = waiting.read().acquire().into_future();
                readers.push(task(async move { wanted.await.unwrap() }));
            }
        }
        listeners(url, CHANNEL, 2).await;
        let writer = doc(url).await.write();
        writing.release().await.unwrap();
        assert!(writer.try_acquire().await.unwrap().is_none());
        let mut guards = Vec::new();
        for reader in readers {
            guards.push(soon("a downgrade wakes it", reader).await.unwrap());
        }
        assert!(reading.is_valid());
        reading.release().await.unwrap();
        assert!(writer.try_acquire().await.unwrap().is_none());
        for guard in guards {
            guard.release().await.unwrap();
        }
        assert!(soon("all readers have left", writer.acquire().into_future()).await.is_ok());
    })
    .await;
}

/// The last reader wakes a writer, whose release wakes the next writer and all readers.
#[tokio::test]
async fn releases_wake_who_can_have_it() {
    on_each_server(async |url| {
        let mine = doc(url).await;
        let reading = mine.read().acquire().lease(LONG).await.unwrap();
        let others = doc(url).await;
        let mut waiting = Vec::new();
        for _ in 0..3 {
            let wanted = others.write().acquire().lease(LONG).into_future();
            waiting.push(task(async move { wanted.await.unwrap().release().await.unwrap() }));
        }
        listeners(url, CHANNEL, 1).await;
        reading.release().await.unwrap();
        for writer in waiting {
            soon("each writer has its turn", writer).await.unwrap();
        }
    })
    .await;
}

/// A reader with a long lease leaves, one with a short lease stays: a writer that waits for the
/// long lease learns of the short one.
#[tokio::test]
async fn a_waiting_writer_learns_that_less_is_left() {
    on_each_server(async |url| {
        let (mine, writer) = (doc(url).await, doc(url).await.write());
        let long = mine.read().acquire().lease(LONG).await.unwrap();
        let wanted = writer.acquire().into_future();
        let waiting = task(async move { wanted.await.unwrap() });
        listeners(url, CHANNEL, 1).await;
        let short = mine.read().acquire().lease(Duration::from_secs(2)).await.unwrap();
        long.release().await.unwrap();
        drop(soon("the short lease ends", waiting).await.unwrap());
        assert!(!short.is_valid());
    })
    .await;
}

/// Each level has its own lease, in whichever order the levels are released.
#[tokio::test]
async fn what_remains_keeps_its_own_lease() {
    on_each_server(async |url| {
        let (mine, other) = (doc(url).await, doc(url).await);
        for long_first in [true, false] {
            let (short, long) = (Duration::from_millis(400), Duration::from_secs(20));
            let leases = if long_first { [long, short] } else { [short, long] };
            let mut levels = Vec::new();
            for lease in leases {
                levels.push(mine.read().acquire().owner(me()).lease(lease).await.unwrap());
            }
            let long = levels.remove(usize::from(!long_first));
            levels.remove(0).release().await.unwrap();
            assert!(other.write().try_acquire_for(2 * short).await.unwrap().is_none(), "{long:?}");
            assert!(long.is_valid(), "{long:?}");
            long.release().await.unwrap();
            assert!(other.write().try_acquire().await.unwrap().is_some());
        }
        // The long level is released, and the short one ends with its lease.
        let short = mine.read().acquire().owner(me()).lease(Duration::from_secs(1)).await.unwrap();
        let long = mine.read().acquire().owner(me()).lease(LONG).await.unwrap();
        long.release().await.unwrap();
        let left = mine.read().remaining().await.unwrap().expect("one is left");
        assert!(left <= Duration::from_secs(1), "{left:?}");
        assert!(soon("it ends", other.write().acquire().into_future()).await.is_ok());
        drop(short);
    })
    .await;
}

/// The halves of one owner are renewed and released independently.
#[tokio::test]
async fn each_half_is_renewed_for_itself() {
    on_each_server(async |url| {
        let (mine, other) = (doc(url).await, doc(url).await);
        // The writer's renewal survives the release of its read hold, and the renewal of its read
        // hold survives the release of the write hold.
        let writing = mine.write().acquire().owner(me()).await.unwrap();
        let reading = mine.read().acquire().owner(me()).await.unwrap();
        reading.release().await.unwrap();
        assert!(other.read().try_acquire_for(2 * WATCHDOG).await.unwrap().is_none());
        assert!(writing.is_valid());
        let reading = mine.read().acquire().owner(me()).await.unwrap();
        writing.release().await.unwrap();
        assert!(other.write().try_acquire_for(2 * WATCHDOG).await.unwrap().is_none());
        assert!(reading.is_valid());
        // The renewal extends its keys and not only the hash: another reader's release does not
        // remove it.
        let brief = other.read().acquire().await.unwrap();
        brief.release().await.unwrap();
        assert!(other.write().try_acquire().await.unwrap().is_none());
        reading.release().await.unwrap();
        assert!(other.write().try_acquire().await.unwrap().is_some());
    })
    .await;
}

/// A reader that is gone keeps the lock for its own lease, however long others read.
#[tokio::test]
async fn the_holds_of_a_dead_reader_are_not_renewed() {
    on_each_server(async |url| {
        let (other, writer) = (doc(url).await, doc(url).await);
        // The state that a crashed client leaves.
        command(url, "HSET doc mode read dead:1 1").await;
        command(url, "SET {doc}:dead:1:rwlock_timeout:1 1 PX 1500").await;
        command(url, "PEXPIRE doc 1500").await;
        let reading = other.read().acquire().await.unwrap();
        assert!(writer.write().try_acquire_for(2 * WATCHDOG).await.unwrap().is_none());
        assert!(reading.is_valid());
        reading.release().await.unwrap();
        assert!(writer.write().try_acquire().await.unwrap().is_some(), "the dead reader's lease is over");
    })
    .await;
}

/// A nested write hold with a shorter lease, or the release of a read hold under the writer, does
/// not shorten the lease.
#[tokio::test]
async fn the_writers_lease_is_not_shortened() {
    on_each_server(async |url| {
        let mine = doc(url).await;
        let (short, half) = (Duration::from_secs(1), LONG / 2);
        let outer = mine.write().acquire().owner(me()).lease(LONG).await.unwrap();
        let inner = mine.write().acquire().owner(me()).lease(short).await.unwrap();
        inner.release().await.unwrap();
        for _ in 0..2 {
            let reads = [
                mine.read().acquire().owner(me()).lease(short).await.unwrap(),
                mine.read().acquire().owner(me()).lease(short).await.unwrap(),
            ];
            for read in reads {
                read.release().await.unwrap();
                assert!(mine.write().remaining().await.unwrap() > Some(half));
            }
        }
        assert!(outer.validity() > half);
        outer.release().await.unwrap();
        assert!(!mine.write().is_locked().await.unwrap());
    })
    .await;
}

/// A plain lock of the same name excludes both halves, and keeps its hold.
#[tokio::test]
async fn a_plain_lock_of_the_same_name_is_left_alone() {
    on_each_server(async |url| {
        let client = client(url).await;
        let (plain, doc) = (client.lock("doc"), client.rw_lock("doc"));
        let held = plain.acquire().owner(me()).lease(LONG).await.unwrap();
        for half in [doc.read(), doc.write()] {
            assert!(half.try_acquire().owner(me()).await.unwrap().is_none());
            assert!(!half.is_locked().await.unwrap());
            assert!(!half.force_release().await.unwrap());
        }
        assert!(held.is_valid());
        held.release().await.unwrap();
        let reading = doc.read().acquire().owner(me()).await.unwrap();
        assert!(plain.try_acquire().owner(OwnerId::new(2)).await.unwrap().is_none());
        reading.release().await.unwrap();
    })
    .await;
}

/// The reply to an acquisition or a release is lost: the lock is not taken twice, and no hold
/// remains.
#[tokio::test]
async fn a_lost_reply_is_resolved() {
    let Some(server) = RedisServer::start() else { return };
    let proxy = Proxy::to(&server).await;
    let client = impatient(&proxy.url()).await;
    let (mine, other) = (client.rw_lock("doc"), doc(&server.url()).await);
    let other = other.write();
    for half in [mine.read(), mine.write()] {
        let first = half.acquire().owner(me()).lease(LONG).await.unwrap();
        proxy.replies(Flow::Swallow);
        let asking = task(half.acquire().owner(me()).lease(LONG).into_future());
        eventually("the second level is granted", async || {
            let count = server.command(&["HGET", "doc", first.owner()]).await;
            count == redis::Value::BulkString(b"2".into())
        })
        .await;
        proxy.replies(Flow::Pass);
        let second = soon("it is found", asking).await.unwrap().unwrap();
        assert_eq!(half.hold_count(me()).await.unwrap(), 2);
        second.release().await.unwrap();

        // A release: the repeat gets the reply that the server remembers.
        proxy.replies(Flow::Swallow);
        let releasing = task(first.release());
        eventually("it is free", async || !other.is_locked().await.unwrap() && is_gone(&server).await).await;
        proxy.replies(Flow::Pass);
        soon("the release ends", releasing).await.unwrap().unwrap();
    }
}

async fn is_gone(server: &RedisServer) -> bool {
    server.command(&["EXISTS", "doc"]).await == redis::Value::Int(0)
}

/// A level that has ended remains in the hash while others read. It does not count as the grant of
/// a request whose reply was lost.
#[tokio::test]
async fn an_ended_level_is_no_grant() {
    let Some(server) = RedisServer::start() else { return };
    let proxy = Proxy::to(&server).await;
    let (mine, other) = (impatient(&proxy.url()).await.rw_lock("doc"), doc(&server.url()).await);
    let reading = other.read().acquire().lease(LONG).await.unwrap();
    let ended = mine.read().acquire().owner(me()).lease(Duration::from_millis(100)).await.unwrap();
    soon("its lease ends", ended.lost()).await;
    eventually("its key is gone", async || {
        let key = format!("{{doc}}:{}:rwlock_timeout:1", ended.owner());
        server.command(&["EXISTS", &key]).await == redis::Value::Int(0)
    })
    .await;
    assert_eq!(mine.read().hold_count(me()).await.unwrap(), 1);
    // The request is held up, and then lost with its connection.
    proxy.requests_on_open_connections(Flow::Swallow);
    let guard = soon("it is asked again", mine.read().acquire().owner(me()).lease(LONG).into_future()).await;
    let guard = guard.unwrap();
    assert_eq!(mine.read().hold_count(me()).await.unwrap(), 2, "it was granted when it was asked again");
    reading.release().await.unwrap();
    assert!(other.write().try_acquire().await.unwrap().is_none());
    assert!(guard.is_valid());
}
