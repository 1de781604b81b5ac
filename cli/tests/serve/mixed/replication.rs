//! Replication between servers of several generations: the table of who can follow whom, and what
//! a replica has of its master.

use std::{fmt, path::Path, thread, time::Duration};

use lockstorm_sim::generation::Generation::{self, Redis62, Redis70, Redis82, Valkey81, Valkey91};

use super::{Kind, Process, real, simulated, within};
use crate::served::{PATIENCE, folder};

/// The end of a full synchronization.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The link is up.
    Up,
    /// The replica cannot read snapshots of this version, and tries again and again.
    Refused(u16),
}
use Outcome::{Refused, Up};

/// The outcome for each master and its replica, in the order of [`Generation::ALL`], as measured
/// between Redis 6.2.5, 7.0.15 and 8.2.3, and Valkey 8.1.8 and 9.1.2, on 2026-11-29.
const TABLE: [(Generation, [Outcome; 5]); 5] = [
    (Redis62, [Up, Up, Up, Up, Up]),
    (Redis70, [Refused(10), Up, Up, Up, Up]),
    (Redis82, [Refused(12), Refused(12), Up, Refused(12), Refused(12)]),
    (Valkey81, [Refused(11), Refused(11), Up, Up, Up]),
    (Valkey91, [Refused(11), Refused(11), Up, Up, Up]),
];

/// The fate of fields with a time to live, on the same servers. A master without such fields has no
/// row, nor has a replica that cannot follow.
const FIELDS: [(Generation, Generation, Fields); 4] = [
    (Redis82, Redis82, Fields { live: Live::Timed, later: true }),
    (Valkey91, Redis82, Fields { live: Live::Timed, later: false }),
    (Valkey91, Valkey81, Fields { live: Live::Plain, later: false }),
    (Valkey91, Valkey91, Fields { live: Live::Timed, later: true }),
];

#[derive(Debug, Clone, Copy)]
struct Fields {
    /// The fate of the times that a replica gets from the stream.
    live: Live,
    /// True if a replica can still come when its master has such a field.
    later: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Live {
    /// Fields have their times.
    Timed,
    /// The replica does not know the commands: it keeps a field of HSET without its time, lacks one
    /// of HSETEX, and acknowledges both.
    Plain,
}

/// Time within which a write or a link cut for a moment comes through, on a busy machine.
const SOON: Duration = Duration::from_secs(20);

pub(super) fn outcome(master: Generation, replica: Generation) -> Outcome {
    let (_, row) = TABLE.iter().find(|(of, _)| *of == master).expect("every generation has a row");
    let at = Generation::ALL.iter().position(|one| *one == replica).expect("all are listed");
    row[at]
}

/// A master and a replica, in a message.
struct Pair(Kind, Kind);

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.1, self.0)
    }
}

fn follow(replica: &Process, master: &Process) {
    assert_eq!(replica.ask(&format!("REPLICAOF 127.0.0.1 {}", master.port)), "+OK");
}

fn is_up(replica: &Process) -> bool {
    replica.info("master_link_status") == "up"
}

/// Waits until the replica is synchronized, or its log says that it cannot read the snapshot.
fn synchronizes(replica: &Process, expected: Outcome, pair: &Pair) {
    let reached = within(PATIENCE, || match expected {
        Up => is_up(replica),
        Refused(version) => replica.log().contains(&format!("version {version}")),
    });
    assert!(reached, "{pair} is not {expected:?}: {}", replica.log());
    if expected != Up {
        assert_eq!(replica.info("master_link_status"), "down", "{pair}");
        // It answers otherwise while it tries to load the next snapshot.
        assert!(within(SOON, || replica.ask("DBSIZE") == ":0"), "{pair}");
    }
}

/// A master with keys of several types gets a replica. The link is cut while there is a write.
fn replicates(pair: &Pair, folder: &Path) {
    let master = Process::node(pair.0, folder, "m", &[]);
    let replica = Process::node(pair.1, folder, "r", &[]);
    for (command, reply) in [
        ("SET k v PX 600000", "+OK"),
        ("HSET h f 1 g text", ":2"),
        ("SADD s a b 3", ":3"),
        ("SADD i 1 2 300", ":3"),
        ("ZADD z 1.5 a -3 b", ":2"),
        ("RPUSH l a 1 -2000", ":3"),
        ("XADD x 1-1 f v", "\"1-1\""),
        ("XGROUP CREATE x g 0", "+OK"),
        ("XREADGROUP GROUP g c COUNT 1 STREAMS x >", "[[\"x\" [[\"1-1\" [\"f\" \"v\"]]]]]"),
    ] {
        assert_eq!(master.ask(command), reply, "{pair}: {command}");
    }
    follow(&replica, &master);
    let expected = outcome(pair.0.generation, pair.1.generation);
    synchronizes(&replica, expected, pair);
    if expected != Up {
        return;
    }
    for (command, reply) in [
        ("GET k", "\"v\""),
        ("HGET h g", "\"text\""),
        ("SISMEMBER s 3", ":1"),
        ("SCARD s", ":3"),
        ("SISMEMBER i 300", ":1"),
        ("ZRANGE z 0 -1 WITHSCORES", "[\"b\" \"-3\" \"a\" \"1.5\"]"),
        ("LRANGE l 0 -1", "[\"a\" \"1\" \"-2000\"]"),
        ("XRANGE x - +", "[[\"1-1\" [\"f\" \"v\"]]]"),
        ("XPENDING x g", "[:1 \"1-1\" \"1-1\" [[\"c\" \"1\"]]]"),
    ] {
        assert_eq!(replica.ask(command), reply, "{pair}: {command}");
    }
    let ttl: i64 = replica.ask("PTTL k").trim_start_matches(':').parse().expect("a number");
    assert!((1..=600_000).contains(&ttl), "{pair}: {ttl}");
    assert_eq!(master.ask("SET k w PX 600000"), "+OK", "{pair}");
    assert!(within(SOON, || replica.ask("GET k") == "\"w\""), "{pair}: a write does not arrive");
    // A partial resynchronization brings what was written meanwhile.
    assert_eq!(master.ask("CLIENT KILL TYPE replica"), ":1", "{pair}");
    assert_eq!(master.ask("SET k x PX 600000"), "+OK", "{pair}");
    let arrived = || replica.ask("GET k") == "\"x\"" && is_up(&replica);
    assert!(within(SOON, arrived), "{pair}: the link does not come back: {}", replica.log());
    let synchronizations = ["sync_full", "sync_partial_ok"].map(|field| master.info(field));
    assert_eq!(synchronizations, ["1", "1"], "{pair}");
    if let Some((.., fields)) = FIELDS
        .iter()
        .find(|(master, replica, _)| (*master, *replica) == (pair.0.generation, pair.1.generation))
    {
        fields_replicate(pair, folder, (&master, &replica), *fields);
    }
}

/// Fields with a time to live are written while a replica follows, and are there when another one
/// comes.
fn fields_replicate(pair: &Pair, folder: &Path, (master, replica): (&Process, &Process), fields: Fields) {
    assert_eq!(master.ask("HPEXPIRE h 599000 FIELDS 1 f"), "[:1]", "{pair}");
    assert_eq!(master.ask("HSETEX h2 PX 599000 FIELDS 1 f 1"), ":1", "{pair}");
    assert_eq!(master.ask("SET k y"), "+OK", "{pair}");
    assert!(within(SOON, || replica.ask("GET k") == "\"y\""), "{pair}: a write does not arrive");
    assert!(is_up(replica), "{pair}");
    let fate = ["h", "h2"].map(|key| {
        let has_time = replica.ask(&format!("HPTTL {key} FIELDS 1 f")).starts_with("[:5");
        (replica.ask(&format!("HGET {key} f")), has_time)
    });
    let one = "\"1\"".to_owned();
    let expected = match fields.live {
        Live::Timed => [(one.clone(), true), (one, true)],
        Live::Plain => [(one, false), ("nil".to_owned(), false)],
    };
    assert_eq!(fate, expected, "{pair}: {}", replica.log());

    let later = Process::node(pair.1, folder, "later", &[]);
    follow(&later, master);
    if fields.later {
        synchronizes(&later, Up, pair);
        assert!(later.ask("HPTTL h FIELDS 1 f").starts_with("[:5"), "{pair}");
        return;
    }
    const REASON: &str = "Can't store key (db 0) in RDB version 11";
    assert!(within(SOON, || master.log().contains(REASON)), "{pair}: {}", master.log());
    assert!(!is_up(&later), "{pair}");
    // A replica can synchronize once the master has no such fields.
    assert_eq!(master.ask("DEL h h2"), ":2", "{pair}");
    synchronizes(&later, Up, pair);
}

/// Plays all pairs of a kind of master and a kind of replica that are installed.
fn all(name: &str, master: impl Fn(Generation) -> Kind + Sync, replica: impl Fn(Generation) -> Kind + Sync) {
    let folder = folder(&format!("mixed_replication_{name}"));
    // Each pair mostly waits.
    thread::scope(|scope| {
        for of in Generation::ALL {
            let (folder, master, replica) = (folder.join(of.name()), &master, &replica);
            scope.spawn(move || {
                for by in Generation::ALL {
                    let pair = Pair(master(of), replica(by));
                    if pair.0.is_there() && pair.1.is_there() {
                        replicates(&pair, &folder.join(by.name()));
                    }
                }
            });
        }
    });
}

#[test]
fn simulated_replicas_follow_real_masters_as_real_ones_do() {
    all("of_real", real, simulated);
}

#[test]
fn real_replicas_follow_simulated_masters_as_real_ones_do() {
    all("by_real", simulated, real);
}

#[test]
fn simulated_servers_follow_each_other_as_real_ones_do() {
    all("simulated", simulated, simulated);
}

#[test]
#[ignore = "it measures the table again, on real servers alone: cargo test -p lockstorm-cli --test serve -- --ignored"]
fn real_servers_follow_each_other_as_recorded() {
    all("real", real, real);
}
