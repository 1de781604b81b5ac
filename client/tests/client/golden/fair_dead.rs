//! Waiters of a fair lock that die together; Redisson's deadlines remove them one after another.

use super::{
    ALIVE, FAIR, FAIR_ABANDON, FAIR_FORCE_RELEASE, FAIR_TRY_ACQUIRE, FORCED, LEASE, NIL, NOW, Vectors,
    WAITING, int, waiting,
};

const WAIT: u64 = 10_000;

impl Vectors {
    /// The times by which the waiters ask again, counted from [`NOW`].
    async fn alive(&mut self) -> Vec<(String, i64)> {
        let alive: Vec<(String, f64)> = self.get(&format!("ZRANGE {ALIVE} 0 -1 WITHSCORES")).await;
        #[expect(clippy::cast_possible_truncation, reason = "milliseconds since 1970 fit")]
        alive.into_iter().map(|(owner, by)| (owner, by as i64 - NOW as i64)).collect()
    }

    /// A free lock whose queue has six dead waiters, W1 to W6, with requests one millisecond apart,
    /// and a live one.
    async fn seven_wait(&mut self) {
        assert_eq!(self.fair_acquire("H", WAIT, NOW).await, NIL);
        // Without a TTL, so that the deadlines are exact.
        self.get::<i64>("PERSIST fl").await;
        for number in 1..=7 {
            self.fair_acquire(&format!("W{number}"), WAIT, NOW + number).await;
        }
        self.get::<i64>("DEL fl").await;
    }
}

/// The deadlines of six waiters are ten seconds apart. The waiters end together, ten seconds after
/// their requests, and the live waiter behind them is granted the lock.
#[tokio::test]
async fn six_dead_heads_cost_one_wait() {
    let Some(mut v) = Vectors::start().await else { return };
    v.seven_wait().await;
    assert_eq!(v.queue().await.last(), Some(&("W7".to_owned(), Some(70_000))));
    let alive: Vec<_> = (1..=7).map(|number| (format!("W{number}"), 10_000 + number)).collect();
    assert_eq!(v.alive().await, alive);
    assert!(
        (69_000..=70_000).contains(&v.get::<i64>(&format!("PTTL {ALIVE}")).await),
        "as long as the last place"
    );
    // Repeated requests keep its place, and remove no waiter early.
    assert_eq!(v.fair_acquire("W7", WAIT, NOW + 5_000).await, int(0));
    assert_eq!(v.fair_acquire("W7", WAIT, NOW + 9_999).await, int(0));
    assert_eq!(v.queue().await.len(), 7);
    assert_eq!(v.fair_acquire("W7", WAIT, NOW + 10_005).await, int(0), "the sixth has asked later");
    assert_eq!(v.queue().await, waiting(&[("W6", 20_005), ("W7", 30_005)]), "nearer by those that are out");
    assert_eq!(v.fair_acquire("W7", WAIT, NOW + 10_006).await, NIL);
    assert_eq!((v.queue().await, v.alive().await), (vec![], vec![]));
}

/// The scripts that do not queue remove the same waiters.
#[tokio::test]
async fn every_script_sweeps_all_that_are_dead() {
    let Some(mut v) = Vectors::start().await else { return };
    let late = NOW + 10_007;
    for script in ["try", "release", "force"] {
        v.get::<i64>(&format!("DEL {} {} {} {ALIVE}", FAIR[0], FAIR[1], FAIR[2])).await;
        v.seven_wait().await;
        match script {
            "try" => {
                let reply = v.run(FAIR_TRY_ACQUIRE, &WAITING, &[&LEASE, &"N", &late, &WAIT]).await.unwrap();
                assert_eq!(reply, NIL, "no one is left");
            }
            "release" => assert_eq!(v.fair_release("N", late).await, NIL),
            _ => {
                let reply = v.run(FAIR_FORCE_RELEASE, &FORCED, &[&0, &late, &"PUBLISH"]).await.unwrap();
                assert_eq!(reply, int(0));
            }
        }
        assert_eq!((v.queue().await, v.alive().await), (vec![], vec![]), "{script}");
    }
}

/// A place from Redisson's script has no time for the next request: it lasts until its deadline,
/// and the waiters before it end as usual.
#[tokio::test]
async fn a_waiter_of_redissons_is_dead_at_its_deadline_alone() {
    let Some(mut v) = Vectors::start().await else { return };
    v.seven_wait().await;
    v.get::<i64>(&format!("ZREM {ALIVE} W3")).await;
    assert_eq!(v.fair_acquire("W7", WAIT, NOW + 9_000).await, int(0));
    assert_eq!(v.fair_acquire("W7", WAIT, NOW + 10_006).await, int(0));
    // W3 and the waiters behind it come nearer by the 9.994 s that the two removed waiters had
    // left.
    let queue = waiting(&[("W3", 20_006), ("W4", 30_006), ("W5", 40_006), ("W6", 50_006), ("W7", 60_006)]);
    assert_eq!(v.queue().await, queue);
    assert_eq!(v.fair_acquire("W7", WAIT, NOW + 15_000).await, int(0));
    assert_eq!(v.fair_acquire("W7", WAIT, NOW + 20_005).await, int(0));
    assert_eq!(v.queue().await, queue, "its own wait, from when it was the head");
    assert_eq!(v.fair_acquire("W7", WAIT, NOW + 20_006).await, NIL, "with those behind it");
}

/// The rest of the holder's lease is added: the next waiter has its own wait after that, as if it
/// had just come.
#[tokio::test]
async fn who_follows_the_dead_has_its_wait_after_the_lease() {
    let Some(mut v) = Vectors::start().await else { return };
    v.seven_wait().await;
    v.get::<i64>("HSET fl H 1").await;
    v.get::<i64>("PEXPIRE fl 25000").await;
    // Without a time of its next request W7 ends only by its deadline, so the lease does not extend
    // its time.
    v.get::<i64>(&format!("ZREM {ALIVE} W7")).await;
    assert_eq!(
        v.run(FAIR_TRY_ACQUIRE, &WAITING, &[&LEASE, &"N", &(NOW + 10_007), &WAIT]).await.unwrap(),
        int(1)
    );
    let queue = v.queue().await;
    let [(_, Some(deadline))] = queue[..] else { panic!("{queue:?}") };
    assert!((44_000..=45_007).contains(&deadline), "{deadline}: the lease and its wait, from then on");
}

/// A waiter that asks is alive, however late: its own request does not remove it.
#[tokio::test]
async fn a_waiter_that_asks_late_keeps_its_place() {
    let Some(mut v) = Vectors::start().await else { return };
    v.seven_wait().await;
    v.get::<i64>(&format!("ZADD {} XX {} W1", FAIR[2], NOW + 60_000)).await;
    assert_eq!(v.fair_acquire("W1", WAIT, NOW + 50_000).await, NIL, "the lock is free, and it is the first");
    // The next request removes the waiters that have not asked.
    assert_eq!(v.queue().await.len(), 6);
    v.get::<i64>("DEL fl").await;
    assert_eq!(v.fair_acquire("N", WAIT, NOW + 50_000).await, NIL);
    assert_eq!(v.alive().await, []);
}

/// A waiter that leaves or is granted the lock no longer has a time for its next request.
#[tokio::test]
async fn who_leaves_is_not_waited_for() {
    let Some(mut v) = Vectors::start().await else { return };
    v.seven_wait().await;
    let keys = [FAIR[1], FAIR[2], FAIR[0], FAIR[3], ALIVE];
    let args: [&dyn ToString; 7] = [&NOW, &0, &"PUBLISH", &"W2", &WAIT, &"W4", &WAIT];
    assert_eq!(v.run(FAIR_ABANDON, &keys, &args).await.unwrap(), int(2));
    assert_eq!(v.fair_acquire("W1", WAIT, NOW + 100).await, NIL);
    let left: Vec<_> = v.alive().await.into_iter().map(|(owner, _)| owner).collect();
    assert_eq!(left, ["W3", "W5", "W6", "W7"]);
    v.get::<i64>("DEL fl").await;
    assert_eq!(v.run(FAIR_TRY_ACQUIRE, &WAITING, &[&LEASE, &"W3", &(NOW + 101), &WAIT]).await.unwrap(), NIL);
    assert_eq!(v.alive().await.len(), 3);
}
