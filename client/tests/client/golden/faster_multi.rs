//! The scripts of the faster multi-lock against recorded replies of Redisson's. Deadlines follow
//! the server's clock, which cannot be set: the test writes the deadline field where the vectors
//! give a time of request.

use std::collections::BTreeMap;

use redis::Value;

use super::{LATCH, LEASE, Messages, NIL, Vectors, int};

macro_rules! script {
    ($file:literal) => {
        concat!(
            include_str!("../../../src/locks/faster_multi/group.lua"),
            include_str!(concat!("../../../src/locks/faster_multi/", $file))
        )
    };
}

const ACQUIRE: &str = script!("acquire.lua");
const RELEASE: &str = script!("release.lua");
const RENEW: &str = script!("renew.lua");
const LEVELS: &str = script!("levels.lua");
const LEFT: &str = script!("left.lua");
const FORCE_RELEASE: &str = script!("force_release.lua");
const CHANNEL: &str = "redisson_lock__channel:{g}";

impl Vectors {
    async fn of_group(&mut self, script: &str, keys: &[&str], args: &[&dyn ToString], values: &str) -> Value {
        let values: Vec<&str> = values.split(' ').collect();
        let args: Vec<&dyn ToString> =
            args.iter().copied().chain(values.iter().map(|value| value as &dyn ToString)).collect();
        self.run(script, keys, &args).await.unwrap()
    }

    async fn take_values(&mut self, owner: &str, lease: u64, values: &str) -> Value {
        self.of_group(ACQUIRE, &["g"], &[&lease, &owner], values).await
    }

    async fn give_values(&mut self, owner: &str, request: &str, values: &str) -> Value {
        let latch = format!("redisson_unlock_latch:{{g}}:{request}");
        self.of_group(RELEASE, &["g", CHANNEL, &latch], &[&0, &owner, &"PUBLISH", &LATCH], values).await
    }

    async fn now(&mut self) -> i64 {
        let (secs, micros): (i64, i64) = self.get("TIME").await;
        secs * 1000 + micros / 1000
    }

    /// The fields of the group: owners and levels as they are, and for each deadline the seconds
    /// left, rounded up.
    async fn fields(&mut self) -> Vec<String> {
        let now = self.now().await;
        let fields: BTreeMap<String, String> = self.get("HGETALL g").await;
        let told = |(field, value): (String, String)| match value.parse::<i64>() {
            Ok(deadline) if field.ends_with(":expire_time") => {
                format!("{field}={}s", (deadline - now + 999).div_euclid(1000))
            }
            _ => format!("{field}={value}"),
        };
        let mut told: Vec<String> = fields.into_iter().map(told).collect();
        told.sort_unstable();
        told
    }

    async fn set_deadline(&mut self, value: &str, owner: &str, left: i64) {
        let at = self.now().await + left;
        self.get::<i64>(&format!("HSET g {value}:{owner}:expire_time {at}")).await;
    }
}

/// Section 19, and the fields and replies in between.
#[tokio::test]
async fn faster_multi() {
    let Some(mut v) = Vectors::start().await else { return };
    let mut messages = Messages::on(&v.server, CHANNEL).await;
    assert_eq!(v.take_values("A", LEASE, "f1 f2").await, NIL);
    let of_a = [
        "f1:A:expire_time=30s",
        "f1:A:lock_count=1",
        "f1=A",
        "f2:A:expire_time=30s",
        "f2:A:lock_count=1",
        "f2=A",
    ];
    assert_eq!(v.fields().await, of_a);
    v.check_pttl("g", 30_000).await;
    assert!(matches!(v.take_values("B", LEASE, "f2 f3").await, Value::Int(29_000..=30_000)));
    assert_eq!(v.fields().await, of_a, "nothing of it is taken");
    // A refusal returns the longest time left of the requested values that are held.
    v.set_deadline("f1", "A", 9_000).await;
    assert!(matches!(v.take_values("B", LEASE, "f1 f3").await, Value::Int(8_000..=9_000)));
    assert!(matches!(v.take_values("B", LEASE, "f1 f2").await, Value::Int(29_000..=30_000)));
    assert_eq!(v.take_values("B", LEASE, "f3").await, NIL);
    assert_eq!(v.give_values("A", "q1", "f1 f2").await, int(1));
    assert_eq!(messages.next().await, "0");
    let of_b = ["f3:B:expire_time=30s", "f3:B:lock_count=1", "f3=B"];
    assert_eq!(v.fields().await, of_b);
    assert_eq!(v.get::<String>("GET redisson_unlock_latch:{g}:q1").await, "1");
    v.check_pttl("redisson_unlock_latch:{g}:q1", 16_000).await;
    assert_eq!(v.take_values("A", LEASE, "f1").await, NIL);
    assert_eq!(v.give_values("A", "q1", "f1 f2").await, int(1), "the same request again changes nothing");
    // H-27: Redisson reports one value as held whenever the key exists.
    let levels = async |v: &mut Vectors, owner: &str, values: &str| {
        let Value::Array(levels) = v.of_group(LEVELS, &["g"], &[&owner], values).await else { panic!() };
        levels
    };
    assert!(matches!(levels(&mut v, "A", "f1").await[..], [Value::Int(1), Value::Int(29_000..=30_000)]));
    assert_eq!(levels(&mut v, "A", "f3").await, [int(0), int(0)]);
    assert!(matches!(
        levels(&mut v, "B", "f1 f3").await[..],
        [Value::Int(0), Value::Int(1), Value::Int(29_000..)]
    ));
}

/// Levels of values, whose leases only grow, and the TTL of the key.
#[tokio::test]
async fn faster_multi_levels() {
    let Some(mut v) = Vectors::start().await else { return };
    let mut messages = Messages::on(&v.server, CHANNEL).await;
    assert_eq!(v.take_values("A", LEASE, "f1").await, NIL);
    assert_eq!(v.take_values("A", 5_000, "f1 f2").await, NIL);
    let both = [
        "f1:A:expire_time=30s",
        "f1:A:lock_count=2",
        "f1=A",
        "f2:A:expire_time=5s",
        "f2:A:lock_count=1",
        "f2=A",
    ];
    assert_eq!(v.fields().await, both);
    v.check_pttl("g", 30_000).await;
    assert_eq!(v.take_values("A", 90_000, "f2").await, NIL);
    v.check_pttl("g", 90_000).await;
    let renew = async |v: &mut Vectors, owner: &str, values: &str| {
        let count = values.split(' ').count();
        v.of_group(RENEW, &["g"], &[&LEASE, &owner, &count], values).await
    };
    v.set_deadline("f1", "A", 2_000).await;
    assert_eq!(renew(&mut v, "A", "f1 f2").await, Value::Array(vec![int(1)]));
    let longer = |count| {
        let f1 = ["f1:A:expire_time=30s".to_owned(), "f1:A:lock_count=2".into(), "f1=A".into()];
        let f2 = ["f2:A:expire_time=90s".to_owned(), format!("f2:A:lock_count={count}"), "f2=A".into()];
        [f1, f2].concat()
    };
    assert_eq!(v.fields().await, longer(2), "what is longer already stays");
    // All of the values or none are renewed, only for their owner, and only before they end.
    v.set_deadline("f1", "A", 2_000).await;
    for (owner, values) in [("A", "f1 f3"), ("B", "f1")] {
        assert_eq!(renew(&mut v, owner, values).await, Value::Array(vec![int(0)]), "{owner} {values}");
    }
    assert_eq!(v.fields().await[0], "f1:A:expire_time=2s");
    v.set_deadline("f1", "A", -1).await;
    assert_eq!(renew(&mut v, "A", "f1").await, Value::Array(vec![int(0)]), "over, although nobody has it");
    v.set_deadline("f1", "A", 30_000).await;
    let several: [&dyn ToString; 7] = [&LEASE, &"B", &1, &"f1", &"A", &1, &"f2"];
    v.get::<String>("SET text 1").await;
    let reply = v.run(RENEW, &["text", "g"], &several).await.unwrap();
    assert_eq!(
        reply,
        Value::Array(vec![int(0), int(1)]),
        "a key that is no group keeps no other from being renewed"
    );

    // Redisson would set its own lease for the remaining levels.
    assert_eq!(v.give_values("A", "q1", "f2").await, int(0));
    assert_eq!(v.fields().await, longer(1));
    // Nothing was free before, so nothing is published before this marker.
    v.get::<i64>(&format!("PUBLISH {CHANNEL} marker")).await;
    assert_eq!(v.give_values("A", "q2", "f1 f2").await, int(0), "f2 is free, and f1 is not");
    assert_eq!(messages.next().await, "marker");
    assert_eq!(messages.next().await, "0");
    assert_eq!(v.give_values("A", "q3", "f1").await, int(1));
    assert_eq!(v.get::<i64>("EXISTS g").await, 0);
    assert_eq!(v.give_values("A", "q4", "f1").await, NIL);
    assert_eq!(v.get::<i64>("EXISTS redisson_unlock_latch:{g}:q4").await, 0);
    // A key without a TTL keeps having none.
    v.get::<i64>("HSET g other 1").await;
    assert_eq!(v.take_values("A", LEASE, "f1").await, NIL);
    assert_eq!(v.get::<i64>("PTTL g").await, -1);
}

/// H-27: another owner now has one of three values. Redisson releases the others, forgets that it
/// did, and takes one level more when the request is repeated. Its release of the thief's value
/// would even free that, because it only checks the owner's deadline.
#[tokio::test]
async fn faster_multi_release_of_what_is_partly_lost() {
    let Some(mut v) = Vectors::start().await else { return };
    let mut messages = Messages::on(&v.server, CHANNEL).await;
    for _ in 0..2 {
        assert_eq!(v.take_values("A", LEASE, "f1 f2 f3").await, NIL);
    }
    assert_eq!(v.give_values("A", "q1", "f1").await, int(0));
    // Redisson takes a value that it considers ended in this way: the fields of the previous owner
    // remain.
    v.get::<i64>("HSET g f2 B f2:B:lock_count 1").await;
    v.set_deadline("f2", "B", 60_000).await;
    let left =
        ["f2:A:expire_time=30s", "f2:A:lock_count=2", "f2:B:expire_time=60s", "f2:B:lock_count=1", "f2=B"];
    let of_f3 = ["f3:A:expire_time=30s", "f3:A:lock_count=1", "f3=A"];
    for _ in 0..2 {
        assert_eq!(v.give_values("A", "q2", "f1 f2 f3").await, NIL);
        assert_eq!(v.fields().await, [&left[..], &of_f3].concat(), "one level of each, once");
        assert_eq!(v.get::<String>("GET redisson_unlock_latch:{g}:q2").await, "-1");
    }
    assert_eq!(messages.next().await, "0");
    assert_eq!(v.give_values("A", "q3", "f2").await, NIL);
    assert_eq!(v.give_values("A", "q4", "f3").await, int(1));
    // Once the thief's time is over the value is free, and its next owner removes the thief's
    // fields.
    v.set_deadline("f2", "B", 0).await;
    assert_eq!(v.of_group(LEFT, &["g"], &[], "f1 f2").await, int(-2));
    assert_eq!(v.take_values("A", LEASE, "f2").await, NIL);
    assert_eq!(v.fields().await, ["f2:A:expire_time=30s", "f2:A:lock_count=1", "f2=A"]);
}

/// A forced release frees the owner in the hash, whether its time is over or not, and no other
/// value. H-27: a value without a deadline is free, where Redisson's script fails.
#[tokio::test]
async fn faster_multi_forced_release() {
    let Some(mut v) = Vectors::start().await else { return };
    let mut messages = Messages::on(&v.server, CHANNEL).await;
    let force = async |v: &mut Vectors, values: &str| {
        v.of_group(FORCE_RELEASE, &["g", CHANNEL], &[&0, &"PUBLISH"], values).await
    };
    assert_eq!(force(&mut v, "f1").await, int(0));
    assert_eq!(v.take_values("A", LEASE, "f1 f2").await, NIL);
    assert_eq!(v.take_values("B", 60_000, "f3").await, NIL);
    assert!(matches!(v.of_group(LEFT, &["g"], &[], "f1 f3").await, Value::Int(59_000..=60_000)));
    assert!(matches!(v.of_group(LEFT, &["g"], &[], "f1 f2 f4").await, Value::Int(29_000..=30_000)));
    assert_eq!(force(&mut v, "f1 f4").await, int(1));
    assert_eq!(messages.next().await, "0");
    v.set_deadline("f2", "A", 0).await;
    assert_eq!(force(&mut v, "f2 f1").await, int(0), "its time was over");
    assert_eq!(v.fields().await, ["f3:B:expire_time=60s", "f3:B:lock_count=1", "f3=B"]);
    v.get::<i64>("HDEL g f3:B:expire_time").await;
    assert_eq!(v.take_values("A", LEASE, "f3").await, NIL);
    assert_eq!(v.fields().await, ["f3:A:expire_time=30s", "f3:A:lock_count=1", "f3=A"]);
}
