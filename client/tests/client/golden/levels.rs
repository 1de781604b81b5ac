//! Levels of a hold and their leases, in every script that takes or releases one.

use super::{
    ACQUIRE, FAIR_ACQUIRE, FAIR_RELEASE, FAIR_TRY_ACQUIRE, FENCED_ACQUIRE, FORCED, LATCH, LEASE, NIL, NOW,
    RELEASE, SPIN_RELEASE, Vectors, WAITING, int, pair,
    read_write::{WRITE_ACQUIRE, WRITE_RELEASE},
};

/// Each script that takes one more level keeps a lease longer than its own, which Redisson cuts,
/// and extends a shorter one. Each script that releases one keeps the lease, which Redisson sets.
/// An owner without the lock releases nothing, and a repeated request gets its reply again.
#[tokio::test]
async fn levels_never_cut_a_lease() {
    let Some(mut v) = Vectors::start().await else { return };
    const CHANNEL: &str = "redisson_lock__channel:{lk}";
    let (now, wait) = (NOW, 300_000);
    type Args<'a> = Vec<&'a dyn ToString>;
    let acquire: [(&str, &[&str], Args<'_>); 5] = [
        (ACQUIRE, &["lk"], vec![&LEASE, &"A"]),
        (FENCED_ACQUIRE, &["lk", "token"], vec![&LEASE, &"A"]),
        (FAIR_ACQUIRE, &WAITING, vec![&LEASE, &"A", &wait, &now]),
        (FAIR_TRY_ACQUIRE, &WAITING, vec![&LEASE, &"A", &now, &wait]),
        (WRITE_ACQUIRE, &["lk"], vec![&LEASE, &"A"]),
    ];
    for (script, keys, args) in acquire {
        let lock = keys[0];
        v.get::<i64>(&format!("DEL {lock}")).await;
        for (level, left, then) in [(1, None, 30_000), (2, Some(5_000), 30_000), (3, Some(100_000), 100_000)]
        {
            if let Some(left) = left {
                v.get::<i64>(&format!("PEXPIRE {lock} {left}")).await;
            }
            let reply = v.run(script, keys, &args).await.unwrap();
            let expected = if script == FENCED_ACQUIRE { pair(-1, level) } else { NIL };
            assert_eq!(reply, expected, "level {level} by {script}");
            assert_eq!(v.get::<i64>(&format!("HGET {lock} A")).await, level, "{script}");
            v.check_pttl(lock, then).await;
        }
    }

    let release: [(&str, &[&str], Args<'_>); 4] = [
        (RELEASE, &["lk", CHANNEL], vec![&0, &"OWNER", &"PUBLISH", &LATCH]),
        (SPIN_RELEASE, &["lk"], vec![&"OWNER", &LATCH]),
        (FAIR_RELEASE, &FORCED, vec![&0, &"OWNER", &now, &"PUBLISH", &LATCH]),
        (WRITE_RELEASE, &["lk", CHANNEL, "{lk}"], vec![&0, &"OWNER", &"PUBLISH", &LATCH]),
    ];
    for (script, keys, args) in release {
        let lock = keys[0];
        v.get::<i64>(&format!("DEL {lock} q0 q1 q2 q3")).await;
        v.get::<i64>(&format!("HSET {lock} A 3")).await;
        if script == WRITE_RELEASE {
            v.get::<i64>(&format!("HSET {lock} mode write")).await;
        }
        // One level is released while much of the lease is left, another while little is.
        for (owner, request, left, reply, levels, then) in [
            ("B", "q0", 100_000, NIL, 3, 100_000),
            ("A", "q1", 100_000, int(0), 2, 100_000),
            ("A", "q1", 5_000, int(0), 2, 5_000),
            ("A", "q2", 5_000, int(0), 1, 5_000),
            ("A", "q3", 5_000, int(1), 0, -2),
            ("A", "q3", 5_000, int(1), 0, -2),
            ("A", "q0", 5_000, NIL, 0, -2),
        ] {
            v.get::<i64>(&format!("PEXPIRE {lock} {left}")).await;
            let (keys, owner): (Vec<&str>, String) = ([keys, &[request]].concat(), owner.to_owned());
            let args = args
                .iter()
                .map(|arg| if arg.to_string() == "OWNER" { &owner as &dyn ToString } else { *arg });
            let args: Args<'_> = args.collect();
            assert_eq!(v.run(script, &keys, &args).await.unwrap(), reply, "{owner}, {request}: {script}");
            let held: Option<i64> = v.get(&format!("HGET {lock} A")).await;
            assert_eq!(held.unwrap_or(0), levels, "{owner}, {request}: {script}");
            if then == -2 {
                assert_eq!(v.get::<i64>(&format!("EXISTS {lock}")).await, 0, "{script}");
            } else {
                v.check_pttl(lock, then).await;
            }
            if reply == NIL {
                assert_eq!(v.get::<i64>(&format!("EXISTS {request}")).await, 0, "{script}");
            } else {
                v.check_pttl(request, LATCH as i64).await;
            }
        }
        // The next release deletes the latches of earlier ones.
        v.get::<i64>(&format!("HSET {lock} A 1")).await;
        if script == WRITE_RELEASE {
            v.get::<i64>(&format!("HSET {lock} mode write")).await;
        }
        let owner = "A".to_owned();
        let args: Args<'_> = args
            .iter()
            .map(|arg| if arg.to_string() == "OWNER" { &owner as &dyn ToString } else { *arg })
            .collect();
        let keys = [keys, &["q4", "q1", "q2", "q3"]].concat();
        assert_eq!(v.run(script, &keys, &args).await.unwrap(), int(1));
        assert_eq!(v.get::<Vec<Option<i64>>>("MGET q1 q2 q3 q4").await, [None, None, None, Some(1)]);
        v.get::<i64>("DEL q4").await;
    }
}
