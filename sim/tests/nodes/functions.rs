//! Function libraries belong to a node like its data: they survive a restart, and its replicas have
//! them.

use crate::switch::Switch;
use lockstorm_sim::{
    config::{Config, Fsync},
    server::Server,
};

const LOAD: &str =
    r##"FUNCTION LOAD "#!lua name=a\nredis.register_function('f', function() return 'one' end)""##;
const LOAD_OTHER: &str =
    r##"FUNCTION LOAD REPLACE "#!lua name=a\nredis.register_function('f', function() return 'two' end)""##;

fn prompt() -> Config {
    Config::default().with(|config| {
        config.replication.diskless_sync_delay = 0;
        config.persistence.save = Vec::new();
    })
}

fn restarted(net: &mut Switch) {
    let disk = net.stop(0).crash();
    net.start(0, |config, env| Server::restart(config, disk, env));
}

#[test]
fn libraries_are_in_a_snapshot_on_disk() {
    let mut net = Switch::new([prompt()]);
    net.call(0, LOAD);
    net.call(0, "SAVE");
    net.call(0, LOAD_OTHER);
    assert_eq!(net.call(0, "FCALL f 0"), "$3 two");
    restarted(&mut net);
    assert_eq!(net.call(0, "FCALL f 0"), "$3 one");
}

#[test]
fn libraries_are_in_the_append_only_file_and_in_its_base() {
    let config = prompt().with(|config| {
        config.aof.appendonly = true;
        config.aof.appendfsync = Fsync::Always;
    });
    let mut net = Switch::new([config]);
    net.call(0, LOAD);
    restarted(&mut net);
    assert_eq!(net.call(0, "FCALL f 0"), "$3 one", "a command behind the base");
    net.call(0, "BGREWRITEAOF");
    restarted(&mut net);
    assert_eq!(net.call(0, "FCALL f 0"), "$3 one", "the base");
    for (line, reply) in [("FUNCTION DELETE a", "+OK"), (LOAD, "$1 a"), ("FUNCTION FLUSH", "+OK")] {
        assert_eq!(net.call(0, line), reply);
        restarted(&mut net);
    }
    assert_eq!(net.call(0, "FCALL f 0"), "-ERR Function not found");
}

#[test]
fn replicas_have_the_libraries_of_their_master_and_no_others() {
    let mut net = Switch::new([prompt(), prompt()]);
    net.call(0, LOAD);
    net.call(1, r##"FUNCTION LOAD "#!lua name=b\nredis.register_function('g', function() end)""##);
    net.call(1, "REPLICAOF n0 6379");
    net.run_secs(1);
    let there = "*1 *6 $12 library_name $1 a $6 engine $3 LUA $9 functions *1 *6 $4 name $1 f $11 description $-1 $5 flags *0";
    assert_eq!(net.call(1, "FUNCTION LIST"), there);
    net.call(0, LOAD_OTHER);
    net.run_secs(1);
    assert!(net.call(1, "FUNCTION LIST WITHCODE").contains("two"));
    let dump = net.call(0, "FUNCTION DUMP");
    assert_eq!(net.call(1, "FUNCTION DUMP"), dump);
    net.call(0, "FUNCTION FLUSH");
    net.run_secs(1);
    assert_eq!(net.call(1, "FUNCTION LIST"), "*0");
}

#[test]
fn what_a_function_does_is_repeated_and_not_the_call() {
    let mut net = Switch::following(1, prompt());
    net.call(0, r##"FUNCTION LOAD "#!lua name=a\nredis.register_function('f', function(keys) redis.call('set', keys[1], redis.call('time')[1]) end)""##);
    net.call(0, "FCALL f 1 k");
    let value = net.call(0, "GET k");
    net.run_secs(2);
    assert_eq!(net.call(1, "GET k"), value);
}
