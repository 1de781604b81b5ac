//! Replication between nodes: the data of replicas, and the state after broken links and changed
//! roles.

use std::time::Duration;

use crate::switch::{LATENCY, Switch};
use lockstorm_sim::{
    config::{Config, Mutations},
    durability::Disk,
    env::Env,
    event::{Action, ConnId, Event},
    server::Server,
};

/// Replicas get their snapshot immediately; one test covers the five seconds for which a server
/// waits for more of them.
fn prompt() -> Config {
    Config::default().with(|config| {
        config.replication.diskless_sync_delay = 0;
        config.persistence.save = Vec::new();
    })
}

#[test]
fn a_write_reaches_the_replica_one_latency_later() {
    let mut net = Switch::following(1, prompt());
    net.call(0, "SET k v");
    assert_eq!(net.call(1, "GET k"), "$-1");
    net.run(LATENCY);
    assert_eq!(net.call(1, "GET k"), "$1 v");
}

#[test]
fn a_replica_begins_with_everything_the_master_has() {
    let mut net = Switch::new([prompt(), prompt()]);
    net.call(0, "SET k v");
    net.call(0, "HSET h f 1 g 2");
    net.call(0, "PEXPIRE k 60000");
    net.call(1, "SET gone x");
    net.call(1, "REPLICAOF n0 6379");
    net.run_secs(1);
    for (command, reply) in
        [("GET k", "$1 v"), ("HGET h g", "$1 2"), ("PTTL k", ":59000"), ("GET gone", "$-1"), ("DBSIZE", ":2")]
    {
        assert_eq!(net.call(1, command), reply, "{command}");
    }
}

#[test]
fn a_snapshot_waits_five_seconds_for_more_replicas_unless_told_otherwise() {
    let mut net = Switch::new([Config::default(), Config::default()]);
    net.call(0, "SET k v");
    net.call(1, "REPLICAOF n0 6379");
    // The delay counts in whole seconds of the periodic run.
    net.run_secs(4);
    assert!(net.call(1, "ROLE").contains("sync") || net.call(1, "ROLE").contains("handshake"));
    net.run_secs(2);
    assert_eq!(net.call(1, "GET k"), "$1 v");
}

#[test]
fn a_replica_in_a_pause_hears_its_master_and_applies_nothing() {
    let mut net = Switch::following(1, prompt());
    net.call(1, "CLIENT PAUSE 100000 WRITE");
    net.call(0, "SET k v");
    net.run_secs(1);
    assert_eq!(net.call(1, "GET k"), "$-1");
    net.call(1, "CLIENT UNPAUSE");
    assert_eq!(net.call(1, "GET k"), "$1 v");
}

#[test]
fn a_broken_link_costs_only_what_was_missed() {
    let mut net = Switch::following(1, prompt());
    net.call(0, "SET k 1");
    net.run_secs(1);
    net.sever(0, 1);
    net.call(0, "SET k 2");
    net.run_secs(3);
    assert_eq!(net.call(1, "GET k"), "$1 1");
    net.join(0, 1);
    net.run_secs(2);
    assert_eq!(net.call(1, "GET k"), "$1 2");
    let syncs = net.server(0).node().replication.syncs;
    // The first one is refused: a node that was a master asks to continue its own history.
    assert_eq!((syncs.full, syncs.partial, syncs.partial_refused), (1, 1, 1));
}

/// Like `redis-server`: with `replicaof` from the start it has no position yet, and has lost no
/// link.
#[test]
fn a_replica_from_the_start_that_never_reached_its_master_says_so() {
    let mut env = Env::new(1);
    let config = Config::default().with(|config| config.replication.replicaof = Some(("nowhere".into(), 1)));
    let mut server = Server::restart(config, Disk::default(), &mut env);
    let conn = ConnId(1);
    server.step(&mut env, Event::Connected { conn, peer: "c:1".into(), local: "n:1".into() });
    env.wall += Duration::from_secs(7);
    env.monotonic += Duration::from_secs(7);
    server.step(&mut env, Event::Alarm);
    env.outbox.clear();
    server.step(&mut env, Event::Bytes { conn, bytes: "INFO replication\r\n".into() });
    let said = env.outbox.iter().find_map(|action| match action {
        Action::Send { bytes, .. } => Some(String::from_utf8_lossy(bytes).into_owned()),
        _ => None,
    });
    let said = said.expect("it is answered");
    for line in ["slave_read_repl_offset:1", "slave_repl_offset:1", "master_link_down_since_seconds:-1"] {
        assert!(said.lines().any(|said| said == line), "{line} is not in {said}");
    }
}

#[test]
fn a_link_broken_for_longer_than_the_backlog_costs_everything() {
    let mut net = Switch::following(1, prompt().with(|config| config.replication.backlog_size = 64));
    net.sever(0, 1);
    for n in 0..10 {
        net.call(0, &format!("SET k {n}"));
    }
    net.join(0, 1);
    net.run_secs(2);
    assert_eq!(net.call(1, "GET k"), "$1 9");
    let syncs = net.server(0).node().replication.syncs;
    assert_eq!((syncs.full, syncs.partial, syncs.partial_refused), (2, 0, 2));
}

#[test]
fn replicas_of_a_promoted_replica_go_on_where_they_were() {
    let mut net = Switch::following(2, prompt());
    net.call(0, "SET k 1");
    net.run_secs(1);
    net.call(1, "REPLICAOF NO ONE");
    net.call(2, "REPLICAOF n1 6379");
    net.run_secs(1);
    net.call(1, "SET k 2");
    net.run_secs(1);
    assert_eq!(net.call(2, "GET k"), "$1 2");
    let syncs = net.server(1).node().replication.syncs;
    assert_eq!((syncs.full, syncs.partial), (0, 1));
}

#[test]
fn an_old_master_that_went_on_alone_loses_what_it_wrote_then() {
    let mut net = Switch::following(1, prompt());
    net.sever(0, 1);
    net.call(0, "SET lost x");
    net.call(1, "REPLICAOF NO ONE");
    net.call(1, "SET kept y");
    net.join(0, 1);
    net.call(0, "REPLICAOF n1 6379");
    net.run_secs(2);
    assert_eq!(net.call(0, "GET lost"), "$-1");
    assert_eq!(net.call(0, "GET kept"), "$1 y");
    assert_eq!(net.server(1).node().replication.syncs.full, 1);
}

#[test]
fn an_old_master_that_wrote_nothing_more_is_continued() {
    let mut net = Switch::following(1, prompt());
    net.call(0, "SET k 1");
    net.run_secs(1);
    net.call(1, "REPLICAOF NO ONE");
    net.call(0, "REPLICAOF n1 6379");
    net.run_secs(2);
    net.call(1, "SET k 2");
    net.run_secs(1);
    assert_eq!(net.call(0, "GET k"), "$1 2");
    let syncs = net.server(1).node().replication.syncs;
    assert_eq!((syncs.full, syncs.partial), (0, 1));
}

#[test]
fn a_chain_passes_its_masters_stream_on_byte_for_byte() {
    let mut net = Switch::new(vec![prompt(); 3]);
    net.call(1, "REPLICAOF n0 6379");
    net.run_secs(1);
    net.call(2, "REPLICAOF n1 6379");
    net.run_secs(2);
    net.call(0, "SET k v");
    net.run(LATENCY);
    net.run(LATENCY);
    assert_eq!(net.call(2, "GET k"), "$1 v");
    assert_eq!(net.offset(0), net.offset(1));
    assert_eq!(net.offset(0), net.offset(2));
    // The head of the chain can take over its end without a full resynchronization.
    net.call(2, "REPLICAOF n0 6379");
    net.run_secs(2);
    assert_eq!(net.server(0).node().replication.syncs.partial, 1);
}

#[test]
fn a_transaction_is_applied_whole_or_not_at_all() {
    let mut net = Switch::following(1, prompt());
    let client = net.connect(0);
    for line in ["MULTI", "SET a 1", "SET b 2", "EXEC"] {
        net.send(0, client, line);
    }
    net.run(LATENCY);
    assert_eq!((net.call(1, "GET a"), net.call(1, "GET b")), ("$1 1".into(), "$1 2".into()));
    assert_eq!(net.offset(1), net.offset(0));
}

#[test]
fn a_replica_hides_what_expired_by_its_own_clock_and_leaves_the_deleting_to_the_master() {
    let mut net = Switch::new([prompt(), prompt()]);
    net.call(0, "SET k v");
    net.call(0, "PEXPIRE k 60000");
    net.call(1, "REPLICAOF n0 6379");
    net.run_secs(2);
    net.step_wall(1, Duration::from_secs(120));
    assert_eq!(net.call(1, "GET k"), "$-1");
    assert_eq!(net.call(1, "DBSIZE"), ":1");
    assert_eq!(net.call(0, "EXISTS k"), ":1");
    net.call(1, "REPLICAOF NO ONE");
    assert_eq!(net.call(1, "GET k"), "$-1");
    assert_eq!(net.call(1, "DBSIZE"), ":0");
}

#[test]
fn wait_answers_once_enough_replicas_have_the_write_or_the_time_is_up() {
    let mut net = Switch::following(2, prompt());
    let client = net.connect(0);
    net.send(0, client, "SET k v");
    net.send(0, client, "WAIT 2 100");
    assert_eq!(net.received(0, client), "+OK");
    // One latency for the question, one for the answer.
    net.run(LATENCY);
    net.run(LATENCY);
    assert_eq!(net.received(0, client), ":2");
    net.hold(0, 2);
    net.send(0, client, "SET k w");
    net.send(0, client, "WAIT 2 100");
    net.run(Duration::from_millis(99));
    assert_eq!(net.received(0, client), "+OK");
    net.run(Duration::from_millis(1));
    assert_eq!(net.received(0, client), ":1");
}

#[test]
fn a_silent_master_is_given_up_after_the_time_out_and_found_again() {
    let mut net = Switch::following(1, prompt().with(|config| config.replication.timeout = 5));
    net.hold(0, 1);
    net.run_secs(10);
    assert!(!net.call(1, "ROLE").contains("connected"), "{}", net.call(1, "ROLE"));
    net.release(0, 1);
    net.run_secs(8);
    assert!(net.call(1, "ROLE").contains("connected"));
}

#[test]
fn a_master_that_comes_back_with_nothing_takes_it_all_from_its_replica() {
    let mut net = Switch::following(1, prompt());
    net.call(0, "SET k v");
    net.run_secs(1);
    net.stop(0);
    assert_eq!(net.call(1, "GET k"), "$1 v");
    net.start(0, Server::new);
    net.run_secs(2);
    assert_eq!(net.call(1, "GET k"), "$-1");
}

#[test]
fn a_master_without_enough_good_replicas_refuses_writes() {
    let config = prompt().with(|config| {
        config.replication.min_replicas_to_write = 1;
        config.replication.min_replicas_max_lag = 3;
    });
    let mut net = Switch::new([config.clone(), prompt()]);
    let refused = "-NOREPLICAS Not enough good replicas to write.";
    assert_eq!(net.call(0, "SET k 1"), refused);
    net.call(1, "REPLICAOF n0 6379");
    net.run_secs(2);
    assert_eq!(net.call(0, "SET k 1"), "+OK");
    // The first count after more than three seconds of silence notices it, not an earlier one.
    net.hold(1, 0);
    net.run_secs(3);
    assert_eq!(net.call(0, "SET k 2"), "+OK");
    net.run_secs(3);
    assert_eq!(net.call(0, "SET k 3"), refused);
    net.release(1, 0);
    net.run_secs(2);
    assert_eq!(net.call(0, "SET k 4"), "+OK");
    net.sever(0, 1);
    assert_eq!(net.call(0, "SET k 5"), refused);
}

#[test]
fn a_replica_takes_no_writes_and_serves_stale_data_only_if_it_may() {
    for (stale, reply) in [
        (true, "$1 1"),
        (false, "-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."),
    ] {
        let mut net =
            Switch::following(1, prompt().with(|config| config.replication.replica_serve_stale_data = stale));
        net.call(0, "SET k 1");
        net.run_secs(1);
        assert_eq!(net.call(1, "SET k 2"), "-READONLY You can't write against a read only replica.");
        assert_eq!(net.call(1, "GET k"), "$1 1");
        net.sever(0, 1);
        assert_eq!(net.call(1, "GET k"), reply);
    }
}

#[test]
fn an_idle_pair_exchanges_one_acknowledgement_a_second_and_one_ping_every_ten() {
    let mut net = Switch::following(1, prompt());
    let (before, offset) = (net.deliveries(), net.offset(0));
    net.run_secs(60);
    assert_eq!(net.deliveries() - before, 60 + 6);
    // PING in the stream is an array of one word.
    assert_eq!(net.offset(0) - offset, 6 * "*1\r\n$4\r\nPING\r\n".len() as u64);
}

#[test]
fn a_node_without_peers_asks_for_nothing() {
    let mut net = Switch::new([prompt()]);
    net.call(0, "GET k");
    assert!(!net.has_alarm(0));
    net.call(0, "REPLICAOF NO ONE");
    assert!(!net.has_alarm(0));
}

#[test]
fn an_expiry_reaches_replicas_as_an_instant_or_as_before_redis_7_as_the_time_left() {
    // The replica's clock is a minute ahead. An absolute time of expiry is a minute nearer for it;
    // a remaining time is not.
    for (replicate_relative_ttl, expire, set) in [(false, ":39999", ":29999"), (true, ":100000", ":90000")] {
        let mut net = Switch::following(
            1,
            Config { mutations: Mutations { replicate_relative_ttl, ..Mutations::default() }, ..prompt() },
        );
        net.step_wall(1, Duration::from_secs(60));
        net.call(0, "SET k v");
        net.call(0, "PEXPIRE k 100000");
        net.call(0, "SET j v PX 90000");
        net.run(LATENCY);
        assert_eq!((net.call(1, "PTTL k"), net.call(1, "PTTL j")), (expire.into(), set.into()));
    }
}

#[test]
fn an_expiry_that_is_past_by_the_replicas_clock_hides_the_key_and_does_not_delete_it() {
    let mut net = Switch::following(1, prompt());
    net.step_wall(1, Duration::from_secs(60));
    net.call(0, "SET k v");
    net.call(0, "PEXPIRE k 10000");
    net.run(LATENCY);
    assert_eq!((net.call(1, "EXISTS k"), net.call(1, "DBSIZE")), (":0".into(), ":1".into()));
    // The master makes the key persistent: the replica had only hidden it, and shows it again.
    net.call(0, "PERSIST k");
    net.run(LATENCY);
    assert_eq!(net.call(1, "GET k"), "$1 v");
}

#[test]
fn what_expires_on_the_master_is_deleted_on_the_replica_by_its_word() {
    let mut net = Switch::following(1, prompt());
    net.call(0, "SET k v PX 1000");
    net.run_secs(1);
    net.step_wall_back(1, Duration::from_secs(60));
    assert_eq!(net.call(1, "DBSIZE"), ":1");
    net.run_secs(1);
    assert_eq!((net.call(0, "DBSIZE"), net.call(1, "DBSIZE")), (":0".into(), ":0".into()));
}

#[test]
fn a_replica_follows_as_a_user_that_may_do_no_more_than_that() {
    let mut net = Switch::new([prompt(), prompt()]);
    net.call(0, "SET k v");
    net.call(0, "ACL SETUSER replicator on >secret +psync +replconf +ping");
    net.call(0, "ACL SETUSER default -psync -sync");
    net.call(1, "REPLICAOF n0 6379");
    net.run_secs(3);
    assert_eq!(net.call(1, "GET k"), "$-1", "the default user may not follow");
    net.call(1, "CONFIG SET masteruser replicator masterauth wrong");
    net.run_secs(3);
    assert_eq!(net.call(1, "GET k"), "$-1", "not by a wrong password");
    net.call(1, "CONFIG SET masterauth secret");
    net.run_secs(3);
    assert_eq!(net.call(1, "GET k"), "$1 v");
    // The replica executes the stream without any permission, whatever its own users may do.
    net.call(1, "ACL SETUSER default -set");
    net.call(0, "SET k w");
    net.run_secs(1);
    assert_eq!(net.call(1, "GET k"), "$1 w");
    assert!(net.call(0, "CLIENT LIST").contains("user=replicator"));
}

#[test]
fn a_stream_that_goes_on_under_a_new_name_is_not_fed_under_the_old_one() {
    let mut net = Switch::following(2, prompt());
    net.call(0, "SET k 1");
    net.run_secs(1);
    net.call(1, "REPLICAOF NO ONE");
    net.call(1, "SET k 2");
    // The new replication ID and the writes under it arrive in one piece. The replica below must
    // not receive the writes before it knows the ID: it would ask for a continuation behind the
    // point where the histories part.
    net.call(0, "REPLICAOF n1 6379");
    net.run_secs(3);
    assert_eq!(net.call(2, "GET k"), "$1 2");
    assert_eq!(net.server(0).node().replication.syncs.full, 2);
    assert_eq!(net.server(1).node().replication.syncs.full, 0);
}

#[test]
fn a_replica_that_takes_writes_deletes_what_it_gave_a_time_to_live_and_nothing_else() {
    let mut net = Switch::following(1, prompt().with(|config| config.replication.replica_read_only = false));
    net.call(0, "DEBUG SET-ACTIVE-EXPIRE 0");
    net.call(0, "SET masters 5 PX 100");
    net.call(0, "SET counter 5 PX 100");
    net.run_secs(1);
    net.call(1, "SET own v PX 500");
    net.call(1, "SET kept v PX 500");
    net.call(1, "PERSIST kept");
    assert_eq!(net.call(1, "DBSIZE"), ":4");
    net.run_secs(2);
    assert_eq!(net.call(1, "DBSIZE"), ":3");
    // Reads do not see an expired key, and writes delete it.
    assert_eq!(net.call(1, "GET masters"), "$-1");
    assert_eq!(net.call(1, "INCR counter"), ":1");
    assert_eq!(net.call(1, "TTL counter"), ":-1");
    assert_eq!(net.call(1, "DBSIZE"), ":3");
}

#[test]
fn good_replicas_are_counted_anew_when_the_measure_changes() {
    let mut net = Switch::following(1, prompt());
    net.call(0, "CONFIG SET min-replicas-to-write 1 min-replicas-max-lag 2");
    net.call(1, "DEBUG SLEEP 15");
    net.run_secs(5);
    assert!(net.call(0, "SET k v").starts_with("-NOREPLICAS"));
    net.call(0, "CONFIG SET min-replicas-max-lag 20");
    assert_eq!(net.call(0, "SET k v"), "+OK");
}

#[test]
fn a_command_that_only_the_master_knows_is_passed_over_and_counted() {
    let mut net = Switch::following(1, prompt());
    net.call(0, "DEBUG REPLICATE unheard-of");
    net.call(0, "SET k v");
    net.run(LATENCY);
    assert_eq!(net.call(1, "GET k"), "$1 v");
    assert_eq!(net.server(1).node().stats.unexpected_errors, 1);
}

/// A master whose snapshots take five seconds to write, and a replica that has asked for one.
fn slow_snapshot(replica_config: Config) -> Switch {
    let mut net =
        Switch::new([prompt().with(|config| config.replication.backlog_size = 1024), replica_config]);
    for n in 0..10 {
        net.call(0, &format!("SET k{n} {n}"));
    }
    net.call(0, "CONFIG SET rdb-key-save-delay 500000");
    net.call(1, "SET old 1");
    net.call(1, "REPLICAOF n0 6379");
    net.run_secs(2);
    net
}

#[test]
fn what_is_written_while_a_snapshot_is_saved_is_kept_for_the_replica_whatever_the_size_of_the_backlog() {
    for diskless in ["yes", "no"] {
        let mut net = Switch::new([prompt().with(|config| config.replication.backlog_size = 1024), prompt()]);
        net.call(0, &format!("CONFIG SET repl-diskless-sync {diskless} rdb-key-save-delay 500000"));
        for n in 0..10 {
            net.call(0, &format!("SET k{n} {n}"));
        }
        net.call(1, "REPLICAOF n0 6379");
        net.run_secs(2);
        assert!(net.call(0, "INFO persistence").contains("rdb_bgsave_in_progress:1"));
        assert!(net.call(0, "INFO replication").contains("state=wait_bgsave"));
        for n in 0..100 {
            net.call(0, &format!("SET k{n} {}", "x".repeat(100)));
        }
        assert!(
            net.server(0).node().replication.backlog.as_ref().expect("there is a replica").len() > 10_000
        );
        net.run_secs(5);
        assert!(net.call(0, "INFO persistence").contains("rdb_bgsave_in_progress:0"));
        assert_eq!(net.call(1, "DBSIZE"), ":100", "diskless: {diskless}");
        assert_eq!(net.server(0).node().replication.syncs.full, 1);
        assert_eq!(
            net.server(0).node().replication.backlog.as_ref().expect("there is a replica").len(),
            1024
        );
    }
}

#[test]
fn a_snapshot_in_a_file_is_given_up_when_the_last_replica_that_waits_for_it_has_gone() {
    let mut net = Switch::new(vec![prompt(); 3]);
    for n in 0..10 {
        net.call(0, &format!("SET k{n} {n}"));
    }
    net.call(0, "CONFIG SET repl-diskless-sync no rdb-key-save-delay 500000");
    for n in [1, 2] {
        net.call(n, "REPLICAOF n0 6379");
    }
    net.run_secs(2);
    let is_saving = |net: &mut Switch| net.call(0, "INFO persistence").contains("rdb_bgsave_in_progress:1");
    assert_eq!(net.call(0, "INFO replication").matches("state=wait_bgsave").count(), 2);
    net.sever(0, 2);
    assert!(is_saving(&mut net), "one replica still waits");
    net.run_secs(5);
    assert_eq!(net.call(1, "DBSIZE"), ":10");
    assert_eq!(net.server(0).node().replication.syncs.full, 2, "no replica has asked again");
    net.join(0, 2);
    net.run_secs(2);
    assert!(is_saving(&mut net));
    net.sever(0, 2);
    assert!(!is_saving(&mut net), "no replica waits");
}

#[test]
fn a_replica_that_loads_from_the_socket_shows_its_old_data_only_where_the_history_is_the_same() {
    let mut net = slow_snapshot(prompt());
    assert_eq!(net.call(1, "GET old"), "$1 1", "a snapshot that goes through a file disturbs no client yet");
    let mut net = slow_snapshot(prompt());
    net.call(1, "CONFIG SET repl-diskless-load swapdb");
    assert!(net.call(1, "INFO persistence").contains(" loading:1 async_loading:0"));
    assert!(net.call(1, "GET old").starts_with("-LOADING"));
    net.sever(0, 1);
    assert_eq!(net.call(1, "GET old"), "$1 1", "what did not come whole replaces nothing");
    net.join(0, 1);
    // The first snapshot is written to its end, although no replica reads it.
    net.run_secs(12);
    assert_eq!(net.call(1, "GET old"), "$-1");
    // The second request has the same history, but from too far back.
    net.call(0, "SET late 1");
    net.run(LATENCY);
    net.sever(0, 1);
    for n in 0..100 {
        net.call(0, &format!("SET k{n} {}", "x".repeat(100)));
    }
    net.call(0, "DEL late");
    net.join(0, 1);
    net.run_secs(3);
    assert!(net.call(1, "INFO persistence").contains(" loading:0 async_loading:1"));
    assert_eq!(net.call(1, "GET late"), "$1 1");
    assert!(net.call(1, "REPLICAOF NO ONE").starts_with("-LOADING"));
    assert!(net.call(1, "CONFIG SET appendonly no").starts_with("-LOADING"));
    net.run_secs(60);
    assert_eq!(net.call(1, "GET late"), "$-1");
}

#[test]
fn a_replica_waits_for_the_end_of_the_running_save_and_all_others_for_the_end_of_its_snapshot() {
    let mut net = Switch::new([prompt(), prompt()]);
    net.call(0, "MSET a 1 b 1 c 1");
    net.call(0, "CONFIG SET rdb-key-save-delay 1000000");
    net.call(0, "BGSAVE");
    net.call(1, "REPLICAOF n0 6379");
    net.run_secs(2);
    assert!(net.call(0, "INFO replication").contains("state=wait_bgsave"));
    net.run_secs(3);
    assert_eq!(net.call(1, "DBSIZE"), ":0", "it is sent what has only begun to be written");
    assert_eq!(net.call(0, "SAVE"), "-ERR Background save already in progress");
    assert_eq!(net.call(0, "BGREWRITEAOF"), "+Background append only file rewriting scheduled");
    net.run_secs(2);
    assert_eq!(net.call(1, "DBSIZE"), ":3");
    assert!(net.call(0, "INFO persistence").contains("aof_rewrite_in_progress:1"));
}

#[test]
fn a_full_resynchronization_that_comes_to_nothing_leaves_the_old_history_to_go_on_with() {
    let mut net = Switch::new([prompt(), prompt(), prompt()]);
    net.call(0, "SET k 1");
    net.call(1, "REPLICAOF n0 6379");
    net.run_secs(2);
    // Another master is about to send its snapshot, and the replica leaves it before that is
    // complete.
    net.call(2, "SET other 1");
    net.call(2, "CONFIG SET rdb-key-save-delay 10000000");
    net.call(1, "REPLICAOF n2 6379");
    net.run_secs(2);
    assert!(net.call(1, "ROLE").contains("sync"));
    net.call(1, "REPLICAOF n0 6379");
    net.run_secs(2);
    assert_eq!(net.call(1, "GET k"), "$1 1");
    let syncs = net.server(0).node().replication.syncs;
    assert_eq!((syncs.full, syncs.partial), (1, 1));
    assert!(net.call(0, "CONFIG RESETSTAT").starts_with("+OK"));
    assert!(net.call(0, "INFO stats").contains("sync_full:0 sync_partial_ok:0"));
}

#[test]
fn a_replica_that_is_killed_misses_what_the_same_transaction_writes() {
    let mut net = Switch::following(1, prompt());
    let conn = net.connect(0);
    // More than the smallest backlog can hold.
    let long = format!("SET k {}", "v".repeat(20_000));
    for line in ["MULTI", "CLIENT KILL TYPE replica", "CONFIG SET repl-backlog-size 1", &long, "EXEC"] {
        net.send(0, conn, line);
    }
    net.run_secs(3);
    assert_eq!(net.call(1, "STRLEN k"), ":20000");
    assert_eq!(net.server(0).node().replication.syncs.full, 2);
}
