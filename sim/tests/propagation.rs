//! What replicas and the append-only file are told: absolute times for relative ones, results for what is drawn or rounded,
//! and nothing for commands that changed nothing.

use bytes::Bytes;
use lockstorm_sim::{
    commands::{Ctx, Origin, find, run},
    config::Config,
    effect::Effects,
    env::Env,
    event::ConnId,
    node::Node,
    session::Session,
    time::Wall,
};

const NOW_MS: i64 = 1_700_000_000_000;

/// Runs commands one after the other and returns what the last one leaves for replicas, as text.
fn propagated(commands: &[&str]) -> Vec<String> {
    let mut env = Env::new(1);
    env.wall = Wall::from_millis(NOW_MS);
    let conn = ConnId(1);
    let mut node = Box::new(Node::new(Config::default(), env.random_id(), env.random_id(), env.monotonic));
    let session = Session::new(conn, "127.0.0.1:50000".into(), "127.0.0.1:6379".into(), env.monotonic);
    node.sessions.insert(conn, session);
    let mut effects = Effects::default();
    for command in commands {
        effects = Effects::default();
        let args: Vec<Bytes> =
            command.split(' ').map(|word| Bytes::copy_from_slice(word.as_bytes())).collect();
        let spec = find(&args).expect(command);
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
        // Whoever finds a key expired tells so, even by a read; at the very millisecond it is still there.
        (&["SET k v PXAT 1699999999999", "GET k"], &["DEL k"]),
        (&["SET k v PXAT 1700000000000", "GET k"], &[]),
        (&["SET k v PXAT 1699999999999", "SET k w"], &["DEL k", "SET k w"]),
    ] {
        assert_eq!(propagated(commands), expected, "{commands:?}");
    }
}
