//! The scripts of the read-write lock against section 19 of the recorded replies.

use redis::Value;

use super::{LATCH, LEASE, Messages, NIL, Vectors, int};

pub(super) const READ_ACQUIRE: &str = include_str!("../../../src/locks/read_write/acquire_read.lua");
pub(super) const WRITE_ACQUIRE: &str = include_str!("../../../src/locks/read_write/acquire_write.lua");
const READ_RENEW: &str = include_str!("../../../src/locks/read_write/renew.lua");
pub(super) const READ_PROBE: &str = include_str!("../../../src/locks/read_write/probe.lua");
const READ_LOOK: &str = include_str!("../../../src/locks/read_write/look.lua");
const READ_RELEASE: &str = concat!(
    include_str!("../../../src/locks/read_write/longest_read.lua"),
    include_str!("../../../src/locks/read_write/publish.lua"),
    include_str!("../../../src/locks/read_write/release_read.lua")
);
pub(super) const WRITE_RELEASE: &str = concat!(
    include_str!("../../../src/locks/read_write/longest_read.lua"),
    include_str!("../../../src/locks/read_write/publish.lua"),
    include_str!("../../../src/locks/read_write/release_write.lua")
);
const RW_FORCE_RELEASE: &str = concat!(
    include_str!("../../../src/locks/read_write/publish.lua"),
    include_str!("../../../src/locks/read_write/force_release.lua")
);

const RW_CHANNEL: &str = "redisson_rwlock:{rw}";

/// The calls of the read-write lock `rw`. Each release has a request ID of its own.
impl Vectors {
    async fn read(&mut self, owner: &str, lease: u64) -> Value {
        let keys = ["rw", &format!("{{rw}}:{owner}:rwlock_timeout")];
        self.run(READ_ACQUIRE, &keys, &[&lease, &owner, &format!("{owner}:write")]).await.unwrap()
    }

    async fn write(&mut self, owner: &str, lease: u64) -> Value {
        self.run(WRITE_ACQUIRE, &["rw"], &[&lease, &format!("{owner}:write")]).await.unwrap()
    }

    /// `keeps` is the lease of the reader's remaining levels, which Redisson does not send.
    async fn unread(&mut self, owner: &str, request: &str, keeps: u64) -> Value {
        let latch = format!("redisson_unlock_latch:{{rw}}:{request}");
        let keys = ["rw", RW_CHANNEL, &format!("{{rw}}:{owner}:rwlock_timeout"), "{rw}", &latch];
        self.run(READ_RELEASE, &keys, &[&0, &owner, &"PUBLISH", &LATCH, &keeps]).await.unwrap()
    }

    async fn unwrite(&mut self, owner: &str, request: &str) -> Value {
        let latch = format!("redisson_unlock_latch:{{rw}}:{request}");
        let keys = ["rw", RW_CHANNEL, "{rw}", &latch];
        let args: [&dyn ToString; 4] = [&1, &format!("{owner}:write"), &"PUBLISH", &LATCH];
        self.run(WRITE_RELEASE, &keys, &args).await.unwrap()
    }

    async fn look(&mut self) -> Value {
        self.run(READ_LOOK, &["rw"], &[]).await.unwrap()
    }

    async fn force(&mut self, mode: &str) -> Value {
        self.run(RW_FORCE_RELEASE, &["rw", RW_CHANNEL], &[&mode, &0, &"PUBLISH"]).await.unwrap()
    }

    async fn mode(&mut self) -> Option<String> {
        self.get("HGET rw mode").await
    }
}

fn taken(mode: &str, with_reads: i64) -> Value {
    Value::Array(vec![Value::BulkString(mode.as_bytes().to_vec()), int(with_reads)])
}

/// Section 19, rows 1 to 6: a writer that reads, and the state after its releases.
#[tokio::test]
async fn read_write_of_one_owner() {
    let Some(mut v) = Vectors::start().await else { return };
    let mut messages = Messages::on(&v.server, RW_CHANNEL).await;
    assert_eq!(v.look().await, Value::Array(vec![NIL, int(0)]));
    assert_eq!(v.write("A", 100_000).await, NIL);
    assert_eq!(v.look().await, taken("write", 0));
    assert_eq!(v.read("A", 5_000).await, NIL);
    assert_eq!(v.read("A", 5_000).await, NIL);
    assert_eq!(v.look().await, taken("write", 1));
    assert_eq!(v.get::<i64>("HLEN rw").await, 3);
    v.check_pttl("rw", 100_000).await;
    v.check_pttl("{rw}:A:rwlock_timeout:1", 5_000).await;
    v.check_pttl("{rw}:A:rwlock_timeout:2", 5_000).await;
    // Redisson gives the writer the lease of the remaining read hold, 5 s.
    assert_eq!(v.unread("A", "q1", 5_000).await, int(0));
    assert_eq!(v.get::<i64>("EXISTS {rw}:A:rwlock_timeout:2").await, 0);
    v.check_pttl("rw", 100_000).await;
    assert_eq!(v.unread("A", "q1", 5_000).await, int(0), "the same request again");
    assert_eq!(v.unread("A", "q2", 1).await, int(0));
    assert_eq!(v.look().await, taken("write", 0));
    v.check_pttl("rw", 100_000).await;
    assert_eq!(v.unwrite("A", "q3").await, int(1));
    assert_eq!((v.get::<i64>("EXISTS rw").await, messages.next().await.as_str()), (0, "1"));

    // A downgrade; Redisson does not notify any waiter. The lease is that of the remaining hold.
    assert_eq!(v.write("A", 100_000).await, NIL);
    assert_eq!(v.read("A", 30_000).await, NIL);
    assert!(matches!(v.read("B", 30_000).await, Value::Int(99_000..=100_000)));
    assert_eq!(v.unwrite("A", "q4").await, int(1));
    assert_eq!((v.mode().await.as_deref(), messages.next().await.as_str()), (Some("read"), "1"));
    assert_eq!(v.get::<i64>("HEXISTS rw A:write").await, 0);
    v.check_pttl("rw", 30_000).await;
    assert_eq!(v.read("B", 40_000).await, NIL);
    assert_eq!(v.unread("A", "q5", 1).await, int(0));
    assert_eq!(v.unread("B", "q6", 1).await, int(1));
    assert_eq!((v.get::<i64>("EXISTS rw").await, messages.next().await.as_str()), (0, "0"));

    assert_eq!(v.read("A", 30_000).await, NIL);
    assert!(
        matches!(v.write("A", 30_000).await, Value::Int(29_000..=30_000)),
        "a reader cannot become a writer"
    );
    assert_eq!(v.unread("A", "q7", 1).await, int(1));
    // Redisson adds the leases, to 40 s.
    assert_eq!(v.write("A", 30_000).await, NIL);
    assert_eq!(v.write("A", 10_000).await, NIL);
    v.check_pttl("rw", 30_000).await;
    assert_eq!(v.unwrite("A", "q8").await, int(0));
    assert_eq!(v.unwrite("A", "q9").await, int(1));
    // Redisson publishes, and remembers the request.
    assert_eq!((v.unwrite("A", "q10").await, v.unread("A", "q11", 1).await), (NIL, NIL));
    assert_eq!(v.unwrite("A", "q9").await, int(1), "the same request again");
}

/// Section 19, rows 7 to 11: the leases of readers, force, foreign hashes, renewal.
#[tokio::test]
async fn read_write_of_several() {
    let Some(mut v) = Vectors::start().await else { return };
    // The released level is the one with 100 ms. Redisson keeps that lease, and the whole lock
    // ends.
    assert_eq!((v.read("A", 100).await, v.read("A", 100_000).await), (NIL, NIL));
    assert_eq!(v.unread("A", "q1", 99_000).await, int(0));
    v.check_pttl("{rw}:A:rwlock_timeout:1", 99_000).await;
    v.check_pttl("rw", 99_000).await;
    assert_eq!(v.unread("A", "q2", 1).await, int(1));

    // The remaining hold has more time left than its lease, because another owner renewed it.
    assert_eq!((v.read("A", 100_000).await, v.read("A", 100_000).await), (NIL, NIL));
    assert_eq!(v.unread("A", "q6", 5_000).await, int(0));
    v.check_pttl("{rw}:A:rwlock_timeout:1", 100_000).await;
    // The next release deletes the latches of earlier ones.
    let latches = ["q7", "q1", "q2", "q6"].map(|request| format!("redisson_unlock_latch:{{rw}}:{request}"));
    let mut keys = vec!["rw", RW_CHANNEL, "{rw}:A:rwlock_timeout", "{rw}"];
    keys.extend(latches.iter().map(String::as_str));
    let args: [&dyn ToString; 5] = [&0, &"A", &"PUBLISH", &LATCH, &1];
    assert_eq!(v.run(READ_RELEASE, &keys, &args).await.unwrap(), int(1));
    let kept: Vec<Option<i64>> = v.get(&format!("MGET {}", latches.join(" "))).await;
    assert_eq!(kept, [Some(1), None, None, None]);

    // Another owner's longer lease counts, and a shorter one does not cut it.
    assert_eq!((v.read("A", 100_000).await, v.read("B", 50_000).await), (NIL, NIL));
    v.check_pttl("rw", 100_000).await;
    let mut messages = Messages::on(&v.server, RW_CHANNEL).await;
    assert_eq!(v.unread("A", "q3", 1).await, int(0));
    v.check_pttl("rw", 50_000).await;
    assert_eq!(messages.next().await, "0", "less is left than a waiting writer was told");
    assert_eq!(v.unread("A", "q3", 1).await, int(0), "the same request again");
    assert_eq!(v.unread("C", "q4", 1).await, NIL);

    assert_eq!((v.force("write").await, v.force("read").await), (int(0), int(1)));
    assert_eq!(v.write("A", 1_000).await, NIL);
    assert_eq!((v.force("read").await, v.force("write").await), (int(0), int(1)));

    // A plain lock's hash. Redisson's reader takes it as well, and its unlock deletes both.
    v.get::<i64>("HSET rw A 1").await;
    v.get::<i64>("PEXPIRE rw 30000").await;
    for reply in [v.read("B", 1_000).await, v.write("B", 1_000).await] {
        assert!(matches!(reply, Value::Int(29_000..=30_000)), "{reply:?}");
    }
    assert_eq!((v.unread("A", "q5", 1).await, v.force("read").await), (NIL, int(0)));
    assert_eq!(v.hash("rw").await, [("A".into(), 1)]);
    v.get::<i64>("DEL rw").await;

    for owner in ["A", "A", "A2", "Z9"] {
        assert_eq!(v.read(owner, 5_000).await, NIL);
    }
    let holds = |owner: &str| format!("{{rw}}:{owner}:rwlock_timeout");
    let keys = ["rw", &holds("A"), "rw", &holds("A2"), "rw", &holds("gone"), "text", "{text}:A"];
    v.get::<String>("SET text text").await;
    let renewed = v.run(READ_RENEW, &keys, &[&LEASE, &"A", &"A2", &"gone", &"A"]).await.unwrap();
    assert_eq!(renewed, Value::Array([1, 1, 0, 0].map(Value::Int).to_vec()));
    for (key, left) in
        [("rw", 30_000), ("{rw}:A:rwlock_timeout:1", 30_000), ("{rw}:A:rwlock_timeout:2", 30_000)]
    {
        v.check_pttl(key, left).await;
    }
    v.check_pttl("{rw}:A2:rwlock_timeout:1", 30_000).await;
    v.check_pttl("{rw}:Z9:rwlock_timeout:1", 5_000).await;
    // A level that has ended is not renewed: its field remains only because others read.
    v.get::<i64>("DEL {rw}:Z9:rwlock_timeout:1").await;
    let renewed = v.run(READ_RENEW, &["rw", &holds("Z9")], &[&LEASE, &"Z9"]).await.unwrap();
    assert_eq!(renewed, Value::Array(vec![int(0)]));
    // A level, or a hash, with more time left than the lease keeps it.
    v.get::<i64>("DEL rw").await;
    assert_eq!((v.read("A", 100_000).await, v.read("A", 5_000).await), (NIL, NIL));
    let renewed = v.run(READ_RENEW, &["rw", &holds("A")], &[&LEASE, &"A"]).await.unwrap();
    assert_eq!(renewed, Value::Array(vec![int(1)]));
    for (key, left) in
        [("rw", 100_000), ("{rw}:A:rwlock_timeout:1", 100_000), ("{rw}:A:rwlock_timeout:2", 30_000)]
    {
        v.check_pttl(key, left).await;
    }

    // After a lost reply a reader learns the number of its levels that have not ended, and the time
    // left of the last one.
    for (ended, owner, levels, left) in
        [("none", "A", 2, 30_000), ("none", "B", 0, -2), ("1", "A", 1, 30_000), ("2", "A", 0, -2)]
    {
        v.get::<i64>(&format!("DEL {}:{ended}", holds("A"))).await;
        let found = v.run(READ_PROBE, &["rw", &holds(owner)], &[&owner]).await.unwrap();
        let Value::Array(found) = found else { panic!("{found:?}") };
        let [Value::Int(living), Value::Int(remaining)] = found[..] else { panic!("{found:?}") };
        assert_eq!(living, levels, "{owner}, {ended} ended");
        assert!((left - 1_000..=left).contains(&remaining), "{owner}, {ended} ended: {remaining}");
    }
}
