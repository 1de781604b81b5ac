//! The scripts of the semaphores against recorded replies of Redisson's.

use redis::Value;

use super::{LATCH, Messages, NIL, Vectors, int};

const SEMAPHORE_ACQUIRE: &str = include_str!("../../../src/locks/semaphore/acquire.lua");
const SEMAPHORE_ADD: &str = concat!(
    include_str!("../../../src/locks/semaphore/repeat.lua"),
    include_str!("../../../src/locks/semaphore/add.lua")
);
const SEMAPHORE_DRAIN: &str = concat!(
    include_str!("../../../src/locks/semaphore/repeat.lua"),
    include_str!("../../../src/locks/semaphore/drain.lua")
);
const SEMAPHORE_SET: &str = concat!(
    include_str!("../../../src/locks/semaphore/repeat.lua"),
    include_str!("../../../src/locks/semaphore/set.lua")
);
pub(super) const PERMIT_ACQUIRE: &str = concat!(
    include_str!("../../../src/locks/permit_semaphore/now.lua"),
    include_str!("../../../src/locks/permit_semaphore/reclaim.lua"),
    include_str!("../../../src/locks/permit_semaphore/acquire.lua")
);
const PERMIT_RELEASE: &str = concat!(
    include_str!("../../../src/locks/permit_semaphore/now.lua"),
    include_str!("../../../src/locks/permit_semaphore/reclaim.lua"),
    include_str!("../../../src/locks/permit_semaphore/release.lua")
);

/// Section 19: the plain semaphore. Each change has a request ID of its own; the third key of each
/// is its memory, which Redisson does not have.
#[tokio::test]
async fn semaphore() {
    let Some(mut v) = Vectors::start().await else { return };
    let mut messages = Messages::on(&v.server, "redisson_sc:{s}").await;
    let mut requests = 0;
    let mut memory = || {
        requests += 1;
        format!("redisson_unlock_latch:{{s}}:q{requests}")
    };
    let keys = |memory: &str| ["s".to_owned(), "redisson_sc:{s}".to_owned(), memory.to_owned()];
    let change = async |v: &mut Vectors, script: &str, memory: &str, permits: i64| {
        let keys = keys(memory);
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        v.run(script, &keys, &[&"PUBLISH", &LATCH, &permits]).await.unwrap()
    };
    let acquire = async |v: &mut Vectors, memory: &str, permits: i64| {
        v.run(SEMAPHORE_ACQUIRE, &["s", memory], &[&permits, &LATCH]).await.unwrap()
    };

    assert_eq!(acquire(&mut v, &memory(), 1).await, int(0), "a semaphore that is not there has no permits");
    assert_eq!(v.get::<i64>("EXISTS s").await, 0);
    // Redisson returns nil; here the remembered reply is 1.
    let first = memory();
    assert_eq!(change(&mut v, SEMAPHORE_ADD, &first, 1).await, int(1));
    assert_eq!((v.get::<i64>("GET s").await, messages.next().await.as_str()), (1, "1"));
    assert_eq!(change(&mut v, SEMAPHORE_ADD, &first, 1).await, int(1), "the same request again");
    assert_eq!(v.get::<i64>("GET s").await, 1);
    v.check_pttl(&first, 16_000).await;
    assert_eq!(change(&mut v, SEMAPHORE_SET, &memory(), 5).await, int(0));
    assert_eq!(acquire(&mut v, &memory(), 2).await, int(0));
    let taken = memory();
    assert_eq!(acquire(&mut v, &taken, 1).await, int(1));
    assert_eq!(acquire(&mut v, &taken, 1).await, int(1), "the same request again");
    assert_eq!(v.get::<i64>("GET s").await, 0);
    assert_eq!(change(&mut v, SEMAPHORE_DRAIN, &memory(), 0).await, int(0));
    assert_eq!(change(&mut v, SEMAPHORE_ADD, &memory(), -3).await, int(1));
    assert_eq!(change(&mut v, SEMAPHORE_ADD, &memory(), 1).await, int(1));
    assert_eq!(v.get::<i64>("GET s").await, -2);
    // Redisson publishes `-3` and `-2`, at which its own listeners fail.
    assert_eq!(change(&mut v, SEMAPHORE_ADD, &memory(), 5).await, int(1));
    assert_eq!((v.get::<i64>("GET s").await, messages.next().await.as_str()), (3, "3"));
    assert_eq!(change(&mut v, SEMAPHORE_DRAIN, &memory(), 0).await, int(3));
    assert_eq!(v.get::<i64>("GET s").await, 0);
    // A refused SET publishes nothing.
    assert_eq!(change(&mut v, SEMAPHORE_SET, &memory(), 5).await, int(0), "none left counts as present");
    v.get::<i64>("DEL s").await;
    assert_eq!(change(&mut v, SEMAPHORE_SET, &memory(), 4).await, int(1));
    assert_eq!(messages.next().await, "4");
    // Redisson sets the number again and drops the TTL of the key.
    v.get::<i64>("PEXPIRE s 5000").await;
    assert_eq!(change(&mut v, SEMAPHORE_ADD, &memory(), 1).await, int(1));
    assert_eq!((v.get::<i64>("GET s").await, messages.next().await.as_str()), (5, "5"));
    v.check_pttl("s", 5_000).await;
    // The release of a grant deletes the grant's memory.
    let release = [&keys(&memory())[..], std::slice::from_ref(&taken)].concat();
    let release: Vec<&str> = release.iter().map(String::as_str).collect();
    assert_eq!(v.run(SEMAPHORE_ADD, &release, &[&"PUBLISH", &LATCH, &1]).await.unwrap(), int(1));
    assert_eq!(v.get::<i64>(&format!("EXISTS {taken}")).await, 0);
}

/// Section 19: the expirable semaphore. Deadlines follow the server's clock, which cannot be set:
/// the test writes the score of a permit that must have expired.
#[tokio::test]
async fn permit_semaphore() {
    const NEVER: &str = "922337203685477";
    let Some(mut v) = Vectors::start().await else { return };
    let mut messages = Messages::on(&v.server, "redisson_sc:{p}").await;
    let keys = ["p", "{p}:timeout", "redisson_sc:{p}"];
    let acquire = async |v: &mut Vectors, lease: u64, id: &str| {
        v.run(PERMIT_ACQUIRE, &keys, &[&"PUBLISH", &1, &lease, &id]).await.unwrap()
    };
    let release = async |v: &mut Vectors, request: &str, extent: &str, ids: &[&str]| {
        let memory = format!("redisson_unlock_latch:{{p}}:{request}");
        let mut args: Vec<&dyn ToString> = vec![&"PUBLISH", &LATCH, &extent];
        args.extend(ids.iter().map(|id| id as &dyn ToString));
        v.run(PERMIT_RELEASE, &[&keys[..], &[memory.as_str()]].concat(), &args).await.unwrap()
    };
    let okay = Value::Okay;
    assert_eq!(acquire(&mut v, 5_000, "id1").await, NIL, "there is no semaphore");
    assert_eq!(v.get::<i64>("EXISTS p {p}:timeout").await, 0);
    v.get::<String>("SET p 2").await;
    assert_eq!(acquire(&mut v, 5_000, "id1").await, okay);
    assert_eq!(acquire(&mut v, 5_000, "id1").await, okay, "the same request again");
    assert_eq!((v.get::<i64>("GET p").await, v.get::<i64>("ZCARD {p}:timeout").await), (1, 1));
    let (deadline, now): (f64, (i64, i64)) = (v.get("ZSCORE {p}:timeout id1").await, v.get("TIME").await);
    #[expect(clippy::cast_possible_truncation, reason = "milliseconds since 1970 fit")]
    let left = deadline as i64 - now.0 * 1000 - now.1 / 1000;
    assert!((4_000..=5_000).contains(&left), "{left}");
    // The form of Redisson's permit without a lease.
    v.get::<i64>(&format!("ZADD {{p}}:timeout {NEVER} id2")).await;
    v.get::<i64>("DECR p").await;
    // Redisson replies with the time by its own clock; here the reply is the time until then.
    assert!(matches!(acquire(&mut v, 9_000, "id3").await, Value::Int(3_000..=5_000)));
    v.get::<i64>("ZADD {p}:timeout 1000 id1").await;
    // Redisson publishes 1 before it takes the returned permit; here the message is the number left
    // after, which is none.
    assert_eq!(acquire(&mut v, 9_000, "id3").await, okay);
    assert_eq!((v.get::<i64>("GET p").await, v.get::<i64>("ZCARD {p}:timeout").await), (0, 2));
    assert_eq!(release(&mut v, "q1", "all", &["id1"]).await, NIL, "it is not out any more");
    // The permit has expired, and no script has run since: Redisson puts it back and reports that
    // it has not. Here the next script puts it back.
    v.get::<i64>("ZADD {p}:timeout 1000 id3").await;
    assert_eq!(release(&mut v, "q2", "all", &["id3"]).await, NIL);
    v.get::<i64>("ZREM {p}:timeout id3").await;
    assert_eq!(acquire(&mut v, 9_000, "id4").await, NIL, "what is out never ends");
    assert_eq!(release(&mut v, "q3", "all", &["id2", "unknown"]).await, NIL);
    assert_eq!(v.get::<i64>("ZCARD {p}:timeout").await, 1);
    assert_eq!(release(&mut v, "q4", "all", &["id2"]).await, int(1));
    assert_eq!((v.get::<i64>("GET p").await, messages.next().await.as_str()), (1, "1"));
    assert_eq!(release(&mut v, "q4", "all", &["id2"]).await, int(1), "the same request again");
    assert_eq!(v.get::<i64>("GET p").await, 1);
    // Two of three are released, together with the permits that have expired since.
    v.get::<String>("SET p 0").await;
    v.get::<i64>("ZADD {p}:timeout 1000 id5").await;
    v.get::<i64>(&format!("ZADD {{p}}:timeout {NEVER} id6")).await;
    assert_eq!(release(&mut v, "q5", "rest", &["id6", "unknown"]).await, int(1));
    assert_eq!((v.get::<i64>("GET p").await, messages.next().await.as_str()), (2, "2"));
    // The next release deletes the memories of earlier ones.
    let memory = |request: &str| format!("redisson_unlock_latch:{{p}}:{request}");
    let (next, spent) = (memory("q6"), [memory("q4"), memory("q5")]);
    v.get::<i64>(&format!("ZADD {{p}}:timeout {NEVER} id6")).await;
    let all: Vec<&str> = keys.into_iter().chain([&*next, &*spent[0], &*spent[1]]).collect();
    let args: [&dyn ToString; 4] = [&"PUBLISH", &LATCH, &"all", &"id6"];
    assert_eq!(v.run(PERMIT_RELEASE, &all, &args).await.unwrap(), int(1));
    assert_eq!(v.get::<i64>(&format!("EXISTS {}", spent.join(" "))).await, 0);
    assert_eq!((v.get::<i64>("GET p").await, messages.next().await.as_str()), (3, "3"));
    // Two have expired, and one is taken again immediately: waiters learn of the other. They learn
    // of them even if both together do not suffice.
    for (asked, reply, left) in [(1, okay.clone(), 1), (3, NIL, 2)] {
        v.get::<String>("SET p 0").await;
        v.get::<i64>("DEL {p}:timeout").await;
        v.get::<i64>("ZADD {p}:timeout 1000 id8 1000 id9").await;
        let ids = ["id10", "id11", "id12"];
        let mut args: Vec<&dyn ToString> = vec![&"PUBLISH", &asked, &9_000];
        args.extend(ids.iter().take(asked).map(|id| id as &dyn ToString));
        assert_eq!(v.run(PERMIT_ACQUIRE, &keys, &args).await.unwrap(), reply, "{asked} asked for");
        assert_eq!((v.get::<i64>("GET p").await, messages.next().await), (left, left.to_string()));
    }
    // The TTL of a semaphore also applies to its permits.
    v.get::<i64>("PEXPIRE p 5000").await;
    assert_eq!(acquire(&mut v, 9_000, "id7").await, okay);
    v.check_pttl("{p}:timeout", 5_000).await;
}
