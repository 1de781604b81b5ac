//! Propagation to replicas and the AOF, as in Redis 7.0: absolute times for relative ones, results
//! for random choices and rounding, and nothing for commands without effect.

use bytes::Bytes;
use lockstorm_sim::{
    commands::{Ctx, Origin, find, run},
    config::Config,
    durability::LogState,
    effect::Effects,
    env::Env,
    event::ConnId,
    generation::Generation,
    node::{Node, clients::Session},
};
use lockstorm_world::time::Wall;

const NOW_MS: i64 = 1_700_000_000_000;

/// Later generations also propagate the consumers that get nothing.
const OLD: Generation = Generation::Redis70;

/// Runs commands one after the other, and returns the propagated commands of the last one as text.
fn propagated(commands: &[&str]) -> Vec<String> {
    let mut env = Env::new(1);
    env.wall = Wall::from_millis(NOW_MS);
    let conn = ConnId(1);
    let config = Config::of(OLD);
    let mut node = Box::new(Node::new(config, env.random_id(), env.random_id(), env.monotonic));
    let session = Session::new(conn, "127.0.0.1:50000".into(), "127.0.0.1:6379".into(), env.monotonic);
    node.clients.sessions.insert(session);
    // With an AOF commands are propagated.
    node.persistence.aof.state = LogState::On;
    let mut effects = Effects::default();
    for command in commands {
        effects = Effects::default();
        let args: Vec<Bytes> =
            command.split(' ').map(|word| Bytes::copy_from_slice(word.as_bytes())).collect();
        let spec = find(OLD, &args).expect(command);
        let mut ctx = Ctx::new(&mut node, &mut env, &mut effects, conn, 0, Origin::Client, NOW_MS);
        let reply = run(&mut ctx, spec, &args);
        assert!(!reply.is_error(), "{command}: {reply:?}");
    }
    let line = |args: &[Bytes]| {
        args.iter().map(|arg| String::from_utf8_lossy(arg).into_owned()).collect::<Vec<_>>().join(" ")
    };
    effects.propagated.iter().map(|command| line(&command.args)).collect()
}

#[test]
fn replicas_are_told_what_happened_and_not_what_was_asked() {
    for (commands, expected) in [
        (&["SET k v"][..], &["SET k v"][..]),
        (&["SET k v", "SET k w NX"], &[]),
        (&["SET k v", "SET k w GET"], &["SET k w"]),
        (&["SET k v PX 100"], &["SET k v PXAT 1700000000100"]),
        (&["SET k v EX 100 GET"], &["SET k v PXAT 1700000100000"]),
        (&["SETEX k 10 v"], &["SET k v PXAT 1700000010000"]),
        (&["PSETEX k 10 v"], &["SET k v PXAT 1700000000010"]),
        (&["SET k v", "GETSET k w"], &["SET k w"]),
        (&["SET k v", "GETDEL k"], &["DEL k"]),
        (&["SET k v", "GETEX k"], &[]),
        (&["SET k v", "GETEX k EX 1"], &["PEXPIREAT k 1700000001000"]),
        (&["SET k v EX 9", "GETEX k PERSIST"], &["PERSIST k"]),
        (&["SET k v", "GETEX k EXAT 1"], &["DEL k"]),
        (&["SET k 1", "INCRBYFLOAT k 0.5"], &["SET k 1.5 KEEPTTL"]),
        (&["HINCRBYFLOAT h f 0.5"], &["HSET h f 0.5"]),
        (&["INCR k"], &["INCR k"]),
        (&["SET k v", "EXPIRE k 100"], &["PEXPIREAT k 1700000100000"]),
        (&["SET k v", "PEXPIRE k 100 LT"], &["PEXPIREAT k 1700000000100"]),
        (&["SET k v", "EXPIRE k 100 XX"], &[]),
        (&["SET k v", "EXPIRE k -1"], &["DEL k"]),
        (&["SET k v", "EXPIREAT k 1"], &["DEL k"]),
        (&["DEL none"], &[]),
        (&["HSET h a 1", "HSETNX h a 2"], &[]),
        // Even a read deletes an expired key and propagates its DEL; in the millisecond of its
        // expiry the key still exists.
        (&["SET k v PXAT 1699999999999", "GET k"], &["DEL k"]),
        (&["SET k v PXAT 1700000000000", "GET k"], &[]),
        (&["SET k v PXAT 1699999999999", "SET k w"], &["DEL k", "SET k w"]),
    ] {
        assert_eq!(propagated(commands), expected, "{commands:?}");
    }
}

/// The command that propagates a group's delivery of an entry to a consumer.
fn claimed(consumer: &str, id: &str, ms: i64, deliveries: u64, last_id: &str) -> String {
    format!("XCLAIM s g {consumer} 0 {id} TIME {ms} RETRYCOUNT {deliveries} FORCE JUSTID LASTID {last_id}")
}

#[test]
fn replicas_are_told_ids_what_trimming_left_and_who_was_given_what() {
    let filled = ["XADD s 1-1 f v", "XADD s 2-1 f v", "XGROUP CREATE s g 0"];
    let read = ["XREADGROUP GROUP g ann STREAMS s >"];
    let with = |before: &[&'static str], last: &'static str| [&filled[..], before, &[last]].concat();
    for (commands, expected) in [
        (vec!["XADD s * f v"], vec!["XADD s 1700000000000-0 f v".to_owned()]),
        (vec!["XADD s 5-* f v"], vec!["XADD s 5-0 f v".into()]),
        (vec!["XADD s NOMKSTREAM * f v"], vec![]),
        (with(&[], "XADD s MAXLEN ~ 1 LIMIT 9 3-1 f v"), vec!["XADD s MAXLEN = 3 LIMIT 9 3-1 f v".into()]),
        (with(&[], "XADD s MINID ~ 2 3-* f v"), vec!["XADD s MINID = 1-1 3-0 f v".into()]),
        (with(&[], "XADD s MINID 2 3-0 f v"), vec!["XADD s MINID 2 3-0 f v".into()]),
        (with(&[], "XTRIM s MAXLEN ~ 1"), vec![]),
        (with(&[], "XTRIM s MAXLEN ~ 0"), vec!["XTRIM s MAXLEN = 0".into()]),
        (
            with(&[], "XTRIM s MINID ~ 9"),
            vec!["XTRIM s MINID = 18446744073709551615-18446744073709551615".into()],
        ),
        (with(&[], "XTRIM s MAXLEN 1"), vec!["XTRIM s MAXLEN 1".into()]),
        (with(&[], "XDEL s 7-7"), vec![]),
        (
            with(&[], read[0]),
            vec![claimed("ann", "1-1", NOW_MS, 1, "1-1"), claimed("ann", "2-1", NOW_MS, 1, "2-1")],
        ),
        (
            with(&[], "XREADGROUP GROUP g ann NOACK COUNT 1 STREAMS s >"),
            vec!["XGROUP CREATECONSUMER s g ann".into(), "XGROUP SETID s g 1-1 ENTRIESREAD 1".into()],
        ),
        (
            with(&["XGROUP CREATECONSUMER s g ann"], "XREADGROUP GROUP g ann NOACK STREAMS s >"),
            vec!["XGROUP SETID s g 2-1 ENTRIESREAD 2".into()],
        ),
        (with(&read, "XREADGROUP GROUP g ann STREAMS s 0"), vec![]),
        (with(&read, "XREADGROUP GROUP g bob STREAMS s >"), vec![]),
        (with(&read, "XACK s g 1-1 9-9"), vec!["XACK s g 1-1 9-9".into()]),
        (with(&read, "XACK s g 9-9"), vec![]),
        (with(&read, "XCLAIM s g bob 0 1-1 TIME 5"), vec![claimed("bob", "1-1", 5, 2, "2-1")]),
        (with(&read, "XCLAIM s g bob 0 9-9 LASTID 3-0"), vec!["XGROUP SETID s g 3-0 ENTRIESREAD 2".into()]),
        (with(&read, "XCLAIM s g bob 5 1-1"), vec![]),
        (
            with(&[read[0], "XDEL s 1-1"], "XAUTOCLAIM s g bob 0 0 JUSTID"),
            vec![claimed("ann", "1-1", NOW_MS, 1, "2-1"), claimed("bob", "2-1", NOW_MS, 1, "2-1")],
        ),
        (with(&[], "XGROUP CREATECONSUMER s g ann"), vec!["XGROUP CREATECONSUMER s g ann".into()]),
        (with(&[], "XGROUP DELCONSUMER s g ann"), vec![]),
        (with(&[], "XGROUP DESTROY s other"), vec![]),
    ] {
        assert_eq!(propagated(&commands), expected, "{commands:?}");
    }
}

/// The expected commands are those that `redis-server` 7.0 writes into its append-only file for the
/// last command of each row.
#[test]
fn bits_estimates_and_places_are_told_as_redis_tells_them() {
    let near = "GEOADD g 1 2 a";
    for (commands, expected) in [
        (&["SETBIT k 7 1"][..], &["SETBIT k 7 1"][..]),
        (&["SETBIT k 7 1", "SETBIT k 7 1"], &[]),
        (&["SETBIT k 7 1", "SETBIT k 20 0"], &["SETBIT k 20 0"]),
        (&["BITFIELD k SET u8 0 1"], &["BITFIELD k SET u8 0 1"]),
        (&["BITFIELD k SET u8 0 1", "BITFIELD k SET u8 0 1"], &[]),
        (&["BITFIELD k OVERFLOW FAIL SET u8 8 999"], &[]),
        (&["SET k x", "BITOP NOT d k"], &["BITOP NOT d k"]),
        (&["SET d x", "BITOP NOT d missing"], &["BITOP NOT d missing"]),
        (&["BITOP NOT d missing"], &[]),
        (&["PFADD h a"], &["PFADD h a"]),
        (&["PFADD h a", "PFADD h a"], &[]),
        // The key caches the estimate.
        (&["PFADD h a", "PFCOUNT h"], &["PFCOUNT h"]),
        (&["PFADD h a", "PFCOUNT h", "PFCOUNT h"], &[]),
        (&["PFADD h a", "PFCOUNT h h"], &[]),
        (&["PFMERGE m"], &["PFMERGE m"]),
        (&["PFADD h a", "PFDEBUG TODENSE h"], &["PFDEBUG TODENSE h"]),
        (&["PFADD h a", "PFDEBUG GETREG h", "PFDEBUG TODENSE h"], &[]),
        (&["PFADD h a", "PFDEBUG ENCODING h"], &[]),
        (&[near], &["zadd g 3378080408407459 a"]),
        (&[near, near], &[]),
        (&[near, "GEOADD g nx CH 3 4 b"], &["zadd g nx CH 3379626039612548 b"]),
        (&[near, "GEOADD g XX 3 4 c"], &[]),
        (&[near, "GEORADIUS g 0 0 9000 km STORE r"], &["GEORADIUS g 0 0 9000 km STORE r"]),
        (&[near, "GEORADIUS g 0 0 9000 km"], &[]),
        (&[near, "SET r x", "GEORADIUS g 50 50 1 m STORE r"], &["GEORADIUS g 50 50 1 m STORE r"]),
    ] {
        assert_eq!(propagated(commands), expected, "{commands:?}");
    }
}
