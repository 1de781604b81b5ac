//! MIGRATE between two nodes: the keys that moved, the keys that stayed, and that nothing else
//! happens during it.

use std::time::Duration;

use crate::switch::Switch;
use lockstorm_sim::config::Config;

/// Two nodes; the second requires `password` unless it is empty.
fn pair(password: &str) -> Switch {
    let plain = Config::default().with(|config| config.persistence.save = Vec::new());
    let guarded = plain.clone().with(|config| config.security.requirepass = password.into());
    Switch::new([plain, guarded])
}

/// The second node's address, in MIGRATE's form.
const TARGET: &str = "n1 6379";

fn migrate(net: &mut Switch, rest: &str) -> String {
    let conn = net.connect(0);
    net.send(0, conn, &format!("MIGRATE {TARGET} {rest}"));
    net.run(Duration::from_secs(5));
    net.received(0, conn)
}

#[test]
fn keys_of_every_type_go_over_with_their_expiries() {
    let mut net = pair("");
    for command in [
        "SET s v PX 100000",
        "RPUSH l a b c",
        "SADD i 1 2 3",
        "SADD t x y",
        "HSET h f v",
        "ZADD z 1 a 2.5 b",
        "SET stays v",
    ] {
        assert!(!net.call(0, command).starts_with('-'), "{command}");
    }
    assert_eq!(migrate(&mut net, "s 0 1000"), "+OK");
    assert_eq!(migrate(&mut net, "\"\" 3 1000 KEYS l i t h z none"), "+OK");
    assert_eq!(net.call(0, "DBSIZE"), ":1");
    assert_eq!(net.call(1, "GET s"), "$1 v");
    let ttl: i64 = net.call(1, "PTTL s")[1..].parse().expect("a time to live");
    assert!((90_000..=100_000).contains(&ttl), "{ttl}");
    let conn = net.connect(1);
    net.send(1, conn, "SELECT 3");
    net.received(1, conn);
    for (key, kind) in [("l", "list"), ("i", "set"), ("t", "set"), ("h", "hash"), ("z", "zset")] {
        net.send(1, conn, &format!("TYPE {key}"));
        assert_eq!(net.received(1, conn), format!("+{kind}"));
    }
}

#[test]
fn a_copy_stays_and_what_is_in_the_way_is_replaced_only_where_that_is_asked_for() {
    let mut net = pair("");
    net.call(0, "MSET a 1 b 2");
    net.call(1, "SET a old");
    assert_eq!(
        migrate(&mut net, "\"\" 0 1000 KEYS a b"),
        "-ERR Target instance replied with error: BUSYKEY Target key name already exists."
    );
    // Keys that moved are gone here; keys that did not move remain.
    assert_eq!((net.call(0, "EXISTS a"), net.call(0, "EXISTS b")), (":1".into(), ":0".into()));
    assert_eq!(net.call(1, "GET b"), "$1 2");
    assert_eq!(migrate(&mut net, "a 0 1000 COPY REPLACE"), "+OK");
    assert_eq!((net.call(0, "GET a"), net.call(1, "GET a")), ("$1 1".into(), "$1 1".into()));
}

#[test]
fn a_target_that_wants_a_password_gets_it() {
    let mut net = pair("secret");
    net.call(0, "SET a 1");
    assert_eq!(
        migrate(&mut net, "a 0 1000"),
        "-ERR Target instance replied with error: NOAUTH Authentication required."
    );
    assert!(migrate(&mut net, "a 0 1000 AUTH wrong").contains("WRONGPASS"));
    assert_eq!(net.call(0, "EXISTS a"), ":1");
    assert_eq!(migrate(&mut net, "a 0 1000 AUTH2 default secret"), "+OK");
    assert_eq!(net.call(0, "EXISTS a"), ":0");
}

#[test]
fn a_target_that_is_silent_or_gone_leaves_everything_here() {
    let mut net = pair("");
    net.call(0, "SET a 1");
    net.hold(1, 0);
    let conn = net.connect(0);
    net.send(0, conn, &format!("MIGRATE {TARGET} a 0 500"));
    net.run(Duration::from_secs(1));
    assert!(net.received(0, conn).starts_with("-IOERR error or timeout "));
    net.release(1, 0);
    assert_eq!(net.call(0, "EXISTS a"), ":1");
    net.sever(0, 1);
    assert!(migrate(&mut net, "a 0 500").starts_with("-IOERR error or timeout writing to target instance"));
    assert_eq!(net.call(0, "EXISTS a"), ":1");
}

#[test]
fn nothing_else_happens_while_keys_are_on_their_way() {
    let mut net = pair("");
    net.call(0, "SET a 1");
    net.hold(1, 0);
    let (mover, other) = (net.connect(0), net.connect(0));
    net.send(0, mover, &format!("MIGRATE {TARGET} a 0 2000"));
    net.run(Duration::from_millis(100));
    net.send(0, other, "SET a 2");
    net.send(0, mover, "PING");
    net.run(Duration::from_millis(100));
    assert_eq!((net.received(0, other), net.received(0, mover)), (String::new(), String::new()));
    net.release(1, 0);
    net.run(Duration::from_millis(100));
    assert_eq!(net.received(0, mover), "+OK +PONG");
    assert_eq!(net.received(0, other), "+OK");
    assert_eq!((net.call(0, "GET a"), net.call(1, "GET a")), ("$1 2".into(), "$1 1".into()));
}

/// Regression: the client that sent the next command got the error.
#[test]
fn who_had_read_what_it_sends_away_hears_of_it_itself() {
    let mut net = pair("");
    net.call(0, "SET a 1");
    let (reader, other) = (net.connect(0), net.connect(0));
    for (conn, command) in
        [(reader, "HELLO 3"), (other, "HELLO 3"), (reader, "CLIENT TRACKING ON"), (reader, "GET a")]
    {
        net.send(0, conn, command);
        net.received(0, conn);
    }
    net.send(0, reader, &format!("MIGRATE {TARGET} a 0 1000"));
    net.run(Duration::from_secs(5));
    assert_eq!(net.received(0, reader), "+OK >2 $10 invalidate *1 $1 a");
    net.send(0, other, "PING");
    assert_eq!(net.received(0, other), "+PONG");
}

#[test]
fn replicas_hear_of_what_has_gone() {
    let base = Config::default().with(|config| {
        config.persistence.save = Vec::new();
        config.replication.diskless_sync_delay = 0;
    });
    let follower = base.clone().with(|config| config.replication.replicaof = Some(("n0".into(), 6379)));
    let mut net = Switch::new([base.clone(), base, follower]);
    net.run(Duration::from_secs(3));
    net.call(0, "MSET a 1 b 2");
    net.run(Duration::from_secs(1));
    assert_eq!(net.call(2, "DBSIZE"), ":2");
    assert_eq!(migrate(&mut net, "a 0 1000"), "+OK");
    assert_eq!((net.call(2, "EXISTS a"), net.call(2, "EXISTS b")), (":0".into(), ":1".into()));
}

/// The number of cached connections in INFO of the first node.
fn kept(net: &mut Switch) -> String {
    let conn = net.connect(0);
    net.send(0, conn, "INFO stats");
    let stats = net.received(0, conn);
    let line = stats.split_whitespace().find_map(|line| line.strip_prefix("migrate_cached_sockets:"));
    line.expect("INFO tells of it").to_owned()
}

#[test]
fn a_connection_is_kept_for_the_next_migration_until_it_is_idle_for_long() {
    let mut net = pair("");
    net.call(0, "MSET a 1 b 2 c 3 d 4");
    assert_eq!(kept(&mut net), "0");
    let accepted = |net: &mut Switch| net.server(1).node().stats.connections;
    assert_eq!(migrate(&mut net, "a 0 1000"), "+OK");
    let first = accepted(&mut net);
    assert_eq!((migrate(&mut net, "b 0 1000"), kept(&mut net)), ("+OK".into(), "1".into()));
    // A migration into another database uses the same connection.
    assert_eq!(migrate(&mut net, "c 5 1000"), "+OK");
    assert_eq!(accepted(&mut net), first);
    net.run(Duration::from_secs(12));
    assert_eq!(kept(&mut net), "0");
    assert_eq!(migrate(&mut net, "d 0 1000"), "+OK");
    assert_eq!(accepted(&mut net), first + 1);
    assert_eq!(net.call(1, "MGET a b c d"), "*4 $1 1 $1 2 $-1 $1 4");
}

#[test]
fn a_kept_connection_that_is_lost_is_dialed_anew() {
    let mut net = pair("");
    net.call(0, "MSET a 1 b 2");
    assert_eq!(migrate(&mut net, "a 0 1000"), "+OK");
    net.call(1, "CLIENT KILL TYPE normal SKIPME yes");
    net.run(Duration::from_secs(1));
    assert_eq!(kept(&mut net), "0");
    assert_eq!(migrate(&mut net, "b 0 1000"), "+OK");
    assert_eq!(net.call(1, "MGET a b"), "*2 $1 1 $1 2");
}
