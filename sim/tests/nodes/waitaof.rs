//! WAITAOF between nodes: the offsets that replicas acknowledge as synced, and the writes that a
//! loss of power takes although they were confirmed.

use std::time::Duration;

use crate::switch::{LATENCY, Switch};
use lockstorm_sim::{
    config::{Config, Fsync},
    event::ConnId,
    generation::Generation,
    server::Server,
};

/// The generations that have WAITAOF.
const LATER: [Generation; 3] = [Generation::Redis82, Generation::Valkey81, Generation::Valkey91];

fn nothing(generation: Generation) -> Config {
    Config::of(generation).with(|config| {
        config.persistence.save = Vec::new();
        config.replication.diskless_sync_delay = 0;
    })
}

fn append(generation: Generation, appendfsync: Fsync) -> Config {
    nothing(generation).with(|config| {
        config.aof.appendonly = true;
        config.aof.appendfsync = appendfsync;
    })
}

/// A new client of node 0 that has set a key.
fn writer(net: &mut Switch, key: &str) -> ConnId {
    let client = net.connect(0);
    net.send(0, client, &format!("SET {key} 1"));
    assert_eq!(net.received(0, client), "+OK");
    client
}

#[test]
fn a_replica_acknowledges_what_it_has_synced_before_the_request() {
    for generation in LATER {
        let mut net = Switch::following(1, append(generation, Fsync::Always));
        let client = writer(&mut net, "a");
        net.run(LATENCY);
        net.send(0, client, "WAITAOF 1 1 0");
        net.run(LATENCY);
        net.run(LATENCY);
        assert_eq!(net.received(0, client), "*2 :1 :1", "{generation}");
        // The request comes together with the write, which is not synced yet. The acknowledgement
        // of the next second says that it is.
        net.send(0, client, "SET b 1\r\nWAITAOF 0 1 0");
        assert_eq!(net.received(0, client), "+OK", "{generation}");
        net.run(LATENCY);
        net.run(LATENCY);
        assert_eq!(net.received(0, client), "", "{generation}");
        net.run_secs(1);
        assert_eq!(net.received(0, client), "*2 :1 :1", "{generation}");
    }
}

#[test]
fn a_replica_without_a_file_confirms_no_write() {
    for generation in LATER {
        let mut net = Switch::new([append(generation, Fsync::Always), nothing(generation)]);
        net.call(1, "REPLICAOF n0 6379");
        net.run_secs(2);
        assert_eq!(net.call(0, "WAITAOF 1 1 0"), "*2 :1 :1", "{generation}: nothing was written");
        let client = writer(&mut net, "a");
        net.send(0, client, "WAITAOF 0 1 100");
        net.run(Duration::from_millis(99));
        assert_eq!(net.received(0, client), "", "{generation}");
        net.run(Duration::from_millis(1));
        assert_eq!(net.received(0, client), "*2 :1 :0", "{generation}");
        net.send(0, client, "WAIT 1 0");
        assert_eq!(net.received(0, client), ":1", "{generation}");
    }
}

#[test]
fn a_replica_of_an_older_generation_does_not_say_what_is_synced() {
    for generation in Generation::ALL {
        let mut net = Switch::following(1, append(generation, Fsync::Always));
        net.call(0, "SET a 1");
        net.run_secs(2);
        let offset = net.offset(0);
        let replica = net.server(0).node().replication.replicas.values().next().expect("a replica");
        let synced = if LATER.contains(&generation) { offset } else { 0 };
        assert_eq!((replica.acked, replica.synced), (offset, synced), "{generation}");
    }
}

#[test]
fn a_master_without_replicas_has_an_offset_for_each_command_that_it_appends() {
    for generation in Generation::ALL {
        let mut net = Switch::new([append(generation, Fsync::Always), nothing(generation)]);
        for node in 0..2 {
            net.call(node, "SET a 1");
            net.call(node, "EVAL \"redis.call('set','a',1) redis.call('set','b',1)\" 0");
            net.call(node, "PUBLISH ch x");
        }
        // A script with two writes is a transaction, with MULTI and EXEC.
        let appended = if LATER.contains(&generation) { 5 } else { 0 };
        assert_eq!((net.offset(0), net.offset(1)), (appended, 0), "{generation}");
    }
}

#[test]
fn a_sync_that_takes_time_confirms_what_was_written_before_its_begin() {
    let config = append(Generation::Redis82, Fsync::EverySecond).with(|config| config.aof.fsync_ms = 700);
    let mut net = Switch::new([config]);
    net.run_secs(3);
    let clients = ["a", "b"].map(|key| {
        let client = writer(&mut net, key);
        net.send(0, client, "WAITAOF 1 0 0");
        client
    });
    for (ms, expected) in [(699, ["", ""]), (1, ["*2 :1 :0", ""]), (749, ["", ""]), (1, ["", "*2 :1 :0"])] {
        net.run(Duration::from_millis(ms));
        assert_eq!(clients.map(|client| net.received(0, client)), expected, "after {ms} ms");
    }
}

/// An error of Valkey: a turn of its event loop that writes nothing makes it take the file for
/// synced.
#[test]
fn a_loss_of_power_takes_a_confirmed_write_from_valkey_and_not_from_redis() {
    for generation in LATER {
        let mut net = Switch::new([append(generation, Fsync::EverySecond)]);
        net.run_secs(3);
        // The first write of a second is synced at once, the second one with the next second.
        net.call(0, "SET a 1");
        let client = writer(&mut net, "b");
        net.send(0, client, "WAITAOF 1 0 0");
        let reply = loop {
            match net.received(0, client) {
                reply if reply.is_empty() => net.run(Duration::from_millis(50)),
                reply => break reply,
            }
        };
        assert_eq!(reply, "*2 :1 :0", "{generation}");
        let disk = net.stop(0).crash();
        net.start(0, |config, env| Server::restart(config, disk, env));
        let kept = if generation.is_valkey() { ":1" } else { ":2" };
        assert_eq!(net.call(0, "EXISTS a b"), kept, "{generation}");
    }
}

/// Without another event, the next tick of the cron is such a turn.
#[test]
fn valkey_confirms_at_its_next_tick_what_comes_together_with_the_write() {
    let mut net = Switch::new([append(Generation::Valkey91, Fsync::EverySecond)]);
    net.run_secs(3);
    net.call(0, "SET a 1");
    let client = net.connect(0);
    net.send(0, client, "SET b 1\r\nWAITAOF 1 0 0");
    assert_eq!(net.received(0, client), "+OK");
    net.run(Duration::from_millis(99));
    assert_eq!(net.received(0, client), "");
    net.run(Duration::from_millis(1));
    assert_eq!(net.received(0, client), "*2 :1 :0");
}

#[test]
fn a_script_knows_the_writes_of_its_caller_in_valkey_only() {
    for generation in LATER {
        let mut net = Switch::following(1, append(generation, Fsync::Always));
        net.hold(0, 1);
        let client = writer(&mut net, "a");
        for (script, of_redis, of_valkey) in [
            ("return redis.call('wait',1,0)", ":1", ":0"),
            ("return redis.call('waitaof',1,1,0)", "*2 :1 :1", "*2 :1 :0"),
        ] {
            net.send(0, client, &format!("EVAL \"{script}\" 0"));
            let expected = if generation.is_valkey() { of_valkey } else { of_redis };
            assert_eq!(net.received(0, client), expected, "{generation}: {script}");
        }
    }
}
