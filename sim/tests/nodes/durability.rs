//! The state of a node after it was killed or lost its power, for each way of keeping data.

use std::time::Duration;

use crate::switch::Switch;
use lockstorm_sim::{
    config::{Config, Fsync},
    durability::Disk,
    server::Server,
};

fn nothing() -> Config {
    Config::default().with(|config| {
        config.persistence.save = Vec::new();
        config.replication.diskless_sync_delay = 0;
    })
}

/// A node whose snapshots take one second for each key.
fn slow_to_save() -> Config {
    let mut config = nothing();
    config.persistence.rdb_key_save_delay = 1_000_000;
    config
}

fn append(appendfsync: Fsync) -> Config {
    nothing().with(|config| {
        config.aof.appendonly = true;
        config.aof.appendfsync = appendfsync;
    })
}

/// Plays `script` on a node, ends it, starts it again, and returns those of the keys `a`, `b` and
/// `c` that exist. Semicolons separate commands and waits in milliseconds.
fn survivors(config: &Config, script: &str, end: fn(Server) -> Disk) -> String {
    let mut net = Switch::new([config.clone()]);
    let disk = play(&mut net, script, end);
    there(&mut net, config, disk)
}

fn play(net: &mut Switch, script: &str, end: fn(Server) -> Disk) -> Disk {
    for step in script.split(';').map(str::trim) {
        match step.parse() {
            Ok(ms) => net.run(Duration::from_millis(ms)),
            Err(_) => assert!(!net.call(0, step).starts_with('-'), "{step}"),
        }
    }
    end(net.stop(0))
}

fn there(net: &mut Switch, config: &Config, disk: Disk) -> String {
    net.start(0, |_, env| Server::restart(config.clone(), disk, env));
    let there = |key: &&str| net.call(0, &format!("EXISTS {key}")) == ":1";
    ["a", "b", "c"].into_iter().filter(there).collect()
}

#[test]
fn a_loss_of_power_loses_exactly_what_was_not_synced() {
    use Fsync::{Always, EverySecond, No};
    let slow = append(EverySecond).with(|config| config.aof.fsync_ms = 700);
    let mut resting = slow_to_save().with(|config| {
        config.aof.appendonly = true;
        config.aof.appendfsync = Always;
    });
    resting.aof.no_appendfsync_on_rewrite = true;
    let points = nothing().with(|config| config.persistence.save = vec![(2, 2)]);
    let rows = [
        (nothing(), "SET a 1; 5000", ""),
        (append(Always), "SET a 1", "a"),
        (append(No), "SET a 1; 60000", ""),
        // The node starts a quarter into a second, and a write in that second waits for the next
        // one.
        (append(EverySecond), "SET a 1; 740", ""),
        (append(EverySecond), "SET a 1; 750", "a"),
        // The sync covers the first write of a new second, but not the ones behind it.
        (append(EverySecond), "3000; SET a 1; SET b 1; 700", "a"),
        (append(EverySecond), "3000; SET a 1; SET b 1; 750; SET c 1", "ab"),
        // A sync of 700 ms covers the writes before its begin, and delays the next sync.
        (slow.clone(), "3000; SET a 1; 699", ""),
        (slow.clone(), "3000; SET a 1; SET b 1; 700", "a"),
        (slow, "3000; SET a 1; SET b 1; 1450", "ab"),
        // The save point: two changes, and more than two seconds since the last save, counted from
        // the start.
        (points.clone(), "SET a 1; 60000", ""),
        (points.clone(), "SET a 1; SET b 1; 2700", ""),
        // The save begins in the next second of the wall clock, and the periodic work notices its
        // end.
        (points.clone(), "SET a 1; SET b 1; 2750; SET c 1; 40", ""),
        (points.clone(), "SET a 1; SET b 1; 2750; SET c 1; 50", "ab"),
        (nothing(), "SET a 1; SAVE; SET b 1", "a"),
        (nothing(), "SET a 1; BGSAVE; SET b 1", ""),
        (nothing(), "SET a 1; BGSAVE; SET b 1; 100", "a"),
        (slow_to_save(), "SET a 1; SAVE; SET b 1; BGSAVE; SET c 1; 1900", "a"),
        (slow_to_save(), "SET a 1; SAVE; SET b 1; BGSAVE; SET c 1; 2000", "ab"),
        (append(No), "SET a 1; BGREWRITEAOF; SET b 1", ""),
        (append(No), "SET a 1; BGREWRITEAOF; SET b 1; 100", "a"),
        (append(Always), "SET a 1; BGREWRITEAOF; SET b 1", "ab"),
        // With this option nothing is synced while a file is being written.
        (resting.clone(), "SET a 1; BGSAVE; SET b 1; 500", "a"),
        (resting, "SET a 1; BGSAVE; SET b 1; 1000", "ab"),
        (append(Always), "SET a 1; BGREWRITEAOF; SET b 1; 100; SET c 1", "abc"),
        // With an append-only file the snapshot is not read, whatever it contains.
        (append(No), "SET a 1; SAVE", ""),
    ];
    for (config, script, expected) in rows {
        let kind =
            (config.aof.appendonly, config.aof.appendfsync, config.aof.fsync_ms, &config.persistence.save);
        assert_eq!(survivors(&config, script, Server::crash), expected, "{script} with {kind:?}");
    }
}

#[test]
fn a_file_that_is_to_be_written_is_there_with_its_first_base() {
    let slow = slow_to_save().with(|config| config.aof.appendfsync = Fsync::Always);
    let rows = [
        ("SET a 1; CONFIG SET appendonly yes; SET b 1; 999", ""),
        ("SET a 1; CONFIG SET appendonly yes; SET b 1; 1000; SET c 1", "abc"),
        // An earlier file stays until then.
        (
            "CONFIG SET appendonly yes; 1000; SET a 1; CONFIG SET appendonly no; CONFIG SET appendonly yes; SET b 1",
            "a",
        ),
    ];
    for (script, expected) in rows {
        let end = |server: Server| server.crash();
        let mut net = Switch::new([slow.clone()]);
        let disk = play(&mut net, script, end);
        let appending = slow.clone().with(|config| config.aof.appendonly = true);
        assert_eq!(there(&mut net, &appending, disk), expected, "{script}");
    }
}

#[test]
fn a_killed_process_loses_only_what_it_never_wrote() {
    let rows = [
        (nothing(), "SET a 1", ""),
        (append(Fsync::No), "SET a 1", "a"),
        (append(Fsync::EverySecond), "SET a 1; SET b 1", "ab"),
    ];
    for (config, script, expected) in rows {
        assert_eq!(survivors(&config, script, Server::kill), expected, "{script}");
    }
}

#[test]
fn a_clock_set_back_stops_the_syncing_until_it_has_caught_up() {
    let mut net = Switch::new([append(Fsync::EverySecond)]);
    net.run_secs(3);
    net.step_wall_back(0, Duration::from_secs(60));
    net.call(0, "SET a 1");
    net.run_secs(50);
    assert_eq!(net.server(0).node().persistence.disk.log.as_ref().map(|log| log.synced), Some(0));
    net.run_secs(11);
    assert_ne!(net.server(0).node().persistence.disk.log.as_ref().map(|log| log.synced), Some(0));
}

#[test]
fn transactions_databases_and_types_come_back_from_either_file() {
    for config in [append(Fsync::Always), nothing()] {
        let mut net = Switch::new([config.clone()]);
        let client = net.connect(0);
        for line in ["SELECT 3", "MULTI", "SET s v", "HSET h f 1", "EXEC", "SELECT 0", "SET t w", "SAVE"] {
            net.send(0, client, line);
        }
        let disk = net.stop(0).crash();
        net.start(0, |config, env| Server::restart(config, disk, env));
        let client = net.connect(0);
        for (line, reply) in [("GET t", "$1 w"), ("SELECT 3", "+OK"), ("GET s", "$1 v"), ("HGET h f", "$1 1")]
        {
            net.send(0, client, line);
            assert_eq!(net.received(0, client), reply, "{line} with appendonly {}", config.aof.appendonly);
        }
    }
}

#[test]
fn what_a_transaction_asks_to_be_written_is_all_of_it_and_once() {
    for (config, wish) in [
        (append(Fsync::Always), "BGREWRITEAOF"),
        (nothing(), "BGSAVE"),
        (nothing(), "CONFIG SET appendonly yes appendfsync always"),
    ] {
        let mut net = Switch::new([config]);
        let client = net.connect(0);
        for line in ["MULTI", "INCR a", wish, "INCR a", "EXEC"] {
            net.send(0, client, line);
        }
        net.run(Duration::from_millis(200));
        let disk = net.stop(0).crash();
        let appendonly = !wish.starts_with("BGSAVE");
        net.start(0, |config, env| {
            Server::restart(config.with(|config| config.aof.appendonly = appendonly), disk, env)
        });
        assert_eq!(net.call(0, "GET a"), "$1 2", "{wish}");
    }
}

#[test]
fn keys_that_expired_while_the_node_was_down_are_left_out_of_a_snapshot() {
    let mut net = Switch::new([nothing()]);
    net.call(0, "SET a 1");
    net.call(0, "SET b 1");
    net.call(0, "PEXPIRE a 1000");
    net.call(0, "SAVE");
    let disk = net.stop(0).crash();
    net.run_secs(2);
    net.start(0, |config, env| Server::restart(config, disk, env));
    assert_eq!(net.call(0, "DBSIZE"), ":1");
}

/// CONFIG REWRITE also writes the master that the node follows: a Sentinel sends it to each node
/// that it reconfigures.
#[test]
fn what_config_rewrite_has_written_is_there_after_a_crash_and_nothing_else() {
    let follower = nothing().with(|config| config.replication.replicaof = Some(("n0".into(), 6379)));
    for (script, follows, hz, full) in [
        ("CONFIG SET hz 20; REPLICAOF NO ONE", true, "10", false),
        ("CONFIG SET hz 20; REPLICAOF NO ONE; CONFIG REWRITE", false, "20", false),
        ("CONFIG SET hz 20; CONFIG REWRITE; REPLICAOF NO ONE; CONFIG SET hz 30", true, "20", false),
        ("CONFIG SET hz 20; REPLICAOF NO ONE; CONFIG REWRITE", true, "10", true),
    ] {
        let config = follower.clone().with(|config| config.server.config_file = "redis.conf".into());
        let mut net = Switch::new([nothing(), config]);
        net.run_secs(1);
        if full {
            net.fill_disk(1);
        }
        for command in script.split("; ") {
            let refused = full && command == "CONFIG REWRITE";
            assert_eq!(net.call(1, command).starts_with('-'), refused, "{command}");
        }
        let disk = net.stop(1).crash();
        net.start(1, |config, env| Server::restart(config, disk, env));
        let config = &net.server(1).node().config;
        assert_eq!(
            (config.replication.replicaof.is_some(), &*config.server.hz.to_string()),
            (follows, hz),
            "{script}, {full}"
        );
    }
}

#[test]
fn a_replica_that_crashes_goes_on_from_its_own_snapshot() {
    let mut net = Switch::new([
        nothing(),
        nothing().with(|config| config.replication.replicaof = Some(("n0".into(), 6379))),
    ]);
    net.run_secs(1);
    net.call(0, "SET a 1");
    net.run_secs(1);
    net.call(1, "SAVE");
    net.call(0, "SET b 1");
    net.run_secs(1);
    let disk = net.stop(1).crash();
    net.call(0, "SET c 1");
    net.start(1, |config, env| Server::restart(config, disk, env));
    assert_eq!((net.call(1, "EXISTS a b"), net.call(1, "EXISTS c")), (":1".into(), ":0".into()));
    net.run_secs(1);
    assert_eq!(net.call(1, "EXISTS a b c"), ":3");
    let syncs = net.server(0).node().replication.syncs;
    assert_eq!((syncs.full, syncs.partial), (1, 1));
}

#[test]
fn a_master_restarted_from_its_snapshot_is_continued_by_its_replica() {
    let mut net = Switch::following(1, nothing());
    net.call(0, "SET a 1");
    net.run_secs(1);
    net.call(0, "SAVE");
    let disk = net.stop(0).crash();
    net.start(0, |config, env| Server::restart(config, disk, env));
    net.run_secs(2);
    net.call(0, "SET b 1");
    net.run_secs(1);
    assert_eq!(net.call(1, "EXISTS a b"), ":2");
    let syncs = net.server(0).node().replication.syncs;
    assert_eq!((syncs.full, syncs.partial), (0, 1));
}

#[test]
fn a_reload_keeps_all_but_what_has_expired() {
    let mut net = Switch::new([nothing()]);
    net.call(0, "SET a 1");
    net.call(0, "HSET b f 1");
    net.call(0, "DEBUG SET-ACTIVE-EXPIRE 0");
    net.call(0, "SET c 1 PX 10");
    net.run_secs(1);
    assert_eq!(net.call(0, "DBSIZE"), ":3");
    assert_eq!(net.call(0, "DEBUG RELOAD"), "+OK");
    assert_eq!(net.call(0, "DBSIZE"), ":2");
    assert_eq!((net.call(0, "GET a"), net.call(0, "HGET b f")), ("$1 1".into(), "$1 1".into()));
}

#[test]
fn a_message_reaches_the_replicas_and_not_the_append_only_file() {
    let mut net = Switch::following(1, append(Fsync::Always));
    let subscriber = net.connect(1);
    net.send(1, subscriber, "SUBSCRIBE ch");
    net.received(1, subscriber);
    let appended =
        |net: &Switch| net.server(0).node().persistence.disk.log.as_ref().map(|log| log.commands.len());
    let before = appended(&net);
    net.call(0, "PUBLISH ch hello");
    net.run_secs(1);
    assert_eq!(net.received(1, subscriber), "*3 $7 message $2 ch $5 hello");
    assert_eq!(appended(&net), before);
}

#[test]
fn users_that_were_saved_are_there_after_a_restart_and_the_others_are_not() {
    let mut net = Switch::new([nothing().with(|config| config.security.aclfile = "/users.acl".into())]);
    assert!(net.call(0, "ACL LOAD").starts_with("-ERR Error loading ACLs, opening file '/users.acl':"));
    net.call(0, "ACL SETUSER kept on nopass ~x +@hash");
    assert_eq!(net.call(0, "ACL SAVE"), "+OK");
    net.call(0, "ACL SETUSER kept off");
    net.call(0, "ACL SETUSER lost on");
    assert_eq!(net.call(0, "ACL LOAD"), "+OK");
    assert!(net.call(0, "ACL USERS").contains("kept") && !net.call(0, "ACL USERS").contains("lost"));
    net.call(0, "ACL SETUSER lost on");
    let disk = net.stop(0).crash();
    net.start(0, |config, env| Server::restart(config, disk, env));
    let users = net.call(0, "ACL LIST");
    assert!(users.contains("user kept on nopass sanitize-payload ~x resetchannels -@all +@hash"), "{users}");
    assert!(
        users.contains("user default on nopass sanitize-payload ~* &* +@all") && !users.contains("lost"),
        "{users}"
    );
}

#[test]
fn a_stream_comes_back_with_its_groups_from_the_log_and_from_the_snapshot() {
    let script = [
        "XADD s 1-1 f v",
        "XADD s * f v",
        "XADD s MAXLEN ~ 1 LIMIT 5 99999999999999-* g 7 f v",
        "XGROUP CREATE s g 0",
        "XREADGROUP GROUP g ann COUNT 2 STREAMS s >",
        "XREADGROUP GROUP g bob NOACK STREAMS s >",
        "XACK s g 1-1",
        "XDEL s 1-1",
        "XGROUP CREATE empty g $ MKSTREAM ENTRIESREAD 3",
    ];
    let asked =
        ["XINFO STREAM s", "XRANGE s - +", "XPENDING s g", "XINFO GROUPS s", "XINFO STREAM empty FULL"];
    for (config, last) in
        [(append(Fsync::No), "PING"), (append(Fsync::No), "BGREWRITEAOF"), (nothing(), "SAVE")]
    {
        let mut net = Switch::new([config]);
        for step in script.into_iter().chain([last]) {
            assert!(!net.call(0, step).starts_with('-'), "{step}");
        }
        let before = asked.map(|question| net.call(0, question));
        let disk = net.stop(0).kill();
        net.start(0, |config, env| Server::restart(config, disk, env));
        assert_eq!(asked.map(|question| net.call(0, question)), before, "after {last}");
    }
}

#[test]
fn what_expired_while_a_master_was_away_is_deleted_on_the_replicas_that_go_on_with_it() {
    let mut net = Switch::following(1, nothing());
    net.call(0, "DEBUG SET-ACTIVE-EXPIRE 0");
    net.call(0, "SET kept 1");
    for n in 0..10 {
        net.call(0, &format!("SET k{n} v PX 1000"));
    }
    net.run_secs(2);
    assert_eq!(net.call(1, "DBSIZE"), ":11");
    net.call(0, "SAVE");
    let disk = net.stop(0).kill();
    net.start(0, |config, env| Server::restart(config, disk, env));
    net.run_secs(2);
    assert_eq!(net.call(1, "DBSIZE"), ":1");
    let syncs = net.server(0).node().replication.syncs;
    assert_eq!((syncs.full, syncs.partial), (0, 1));
}
