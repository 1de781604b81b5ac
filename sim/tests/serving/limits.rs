//! Limits of a client's requests, unread replies and connections, each as set by its option.

use std::{
    io::{ErrorKind, Read, Write},
    time::Duration,
};

use lockstorm_sim::TestServer;

use crate::peer::Peer;

const MIB: usize = 1 << 20;

fn with(options: &[(&str, &str)]) -> TestServer {
    let start = TestServer::builder().manual_clock();
    let start = options.iter().fold(start, |start, (name, value)| start.option(name, value));
    start.start_blocking().expect("a free port")
}

/// A value of 1 MiB under `big`.
fn put_big(peer: &mut Peer) {
    peer.send(format!("*3\r\n$3\r\nSET\r\n$3\r\nbig\r\n${MIB}\r\n{}\r\n", "x".repeat(MIB)));
    peer.gets("+OK\r\n");
}

#[test]
fn an_argument_may_be_as_long_as_proto_max_bulk_len() {
    let server = with(&[("proto-max-bulk-len", "1mb")]);
    let mut peer = Peer::connect(&server);
    put_big(&mut peer);
    peer.asks("STRLEN big", ":1048576\r\n");
    peer.send(format!("*2\r\n$3\r\nGET\r\n${}\r\n", MIB + 1));
    assert_eq!(peer.rest(), b"-ERR Protocol error: invalid bulk length\r\n");
}

#[test]
fn a_command_may_be_as_long_as_client_query_buffer_limit() {
    let server = with(&[("client-query-buffer-limit", "1mb")]);
    let (mut greedy, mut other) = (Peer::connect(&server), Peer::connect(&server));
    // The connection ends as soon as the command is too long, before the command's end.
    greedy.send(format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${}\r\n", 2 * MIB));
    let chunk = vec![b'x'; MIB / 4];
    let sent = (0..8).take_while(|_| greedy.stream.write_all(&chunk).is_ok()).count();
    assert!(sent >= 3, "{sent} quarters fit");
    assert_eq!(greedy.rest(), b"");
    other.asks("EXISTS k", ":0\r\n");
    other.awaits("clients", "connected_clients", "1");
}

#[test]
fn a_slow_reader_is_dropped_at_the_hard_limit() {
    let server = with(&[("client-output-buffer-limit", "normal 1mb 0 0")]);
    let (mut slow, mut other) = (Peer::connect(&server), Peer::connect(&server));
    put_big(&mut other);
    slow.send("GET big\r\n".repeat(64));
    other.awaits("clients", "connected_clients", "1");
    assert!(slow.rest().len() < 64 * MIB, "what it had not read is lost");
    // The limit is read at each check, so that a change takes effect immediately.
    other.asks("CONFIG SET client-output-buffer-limit \"normal 0 0 0\"", "+OK\r\n");
    let mut patient = Peer::connect(&server);
    patient.send("GET big\r\n".repeat(64));
    patient.send("QUIT\r\n");
    assert_eq!(patient.rest().len(), 64 * (MIB + "$1048576\r\n\r\n".len()) + "+OK\r\n".len());
}

#[test]
fn a_slow_reader_is_dropped_when_the_soft_limit_has_lasted() {
    let server = with(&[("client-output-buffer-limit", "normal 0 1mb 10")]);
    let (mut slow, mut other) = (Peer::connect(&server), Peer::connect(&server));
    put_big(&mut other);
    slow.send("GET big\r\n".repeat(64));
    other.awaits("stats", "total_commands_processed", "66");
    other.asks("DEBUG CLOCK ADVANCE 9000", "+OK\r\n");
    assert_eq!(other.info("clients", "connected_clients"), "2");
    // No further bytes are written to it: the time alone ends it.
    other.asks("DEBUG CLOCK ADVANCE 2000", "+OK\r\n");
    other.awaits("clients", "connected_clients", "1");
    assert!(slow.rest().len() < 64 * MIB);
}

#[test]
fn a_subscriber_that_does_not_listen_is_dropped_by_its_own_limit() {
    let server = with(&[("client-output-buffer-limit", "normal 0 0 0 pubsub 2mb 0 0")]);
    let (mut deaf, mut other) = (Peer::connect(&server), Peer::connect(&server));
    deaf.asks("SUBSCRIBE c", "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n");
    let message = format!("*3\r\n$7\r\nPUBLISH\r\n$1\r\nc\r\n${MIB}\r\n{}\r\n", "x".repeat(MIB));
    other.send(&message);
    other.gets(":1\r\n");
    for _ in 0..40 {
        other.send(&message);
        let mut receivers = [0; 4];
        other.stream.read_exact(&mut receivers).expect("answered");
        if &receivers == b":0\r\n" {
            break;
        }
    }
    assert_eq!(other.info("stats", "pubsub_channels"), "0");
    assert!(deaf.rest().len() < 40 * MIB);
}

#[test]
fn a_replica_that_does_not_read_is_dropped_by_its_own_limit() {
    let server = with(&[
        ("client-output-buffer-limit", "replica 2mb 0 0"),
        ("repl-backlog-size", "1mb"),
        ("repl-diskless-sync-delay", "0"),
    ]);
    let (mut replica, mut other) = (Peer::connect(&server), Peer::connect(&server));
    replica.send("SYNC\r\n");
    other.awaits("replication", "connected_slaves", "1");
    (0..40).for_each(|_| put_big(&mut other));
    other.awaits("replication", "connected_slaves", "0");
}

#[test]
fn one_client_too_many_is_told_so() {
    let server = with(&[("maxclients", "2")]);
    let (mut one, mut two) = (Peer::connect(&server), Peer::connect(&server));
    one.asks("PING", "+PONG\r\n");
    two.asks("PING", "+PONG\r\n");
    let mut three = Peer::connect(&server);
    assert_eq!(three.rest(), b"-ERR max number of clients reached\r\n");
    assert_eq!(one.info("stats", "rejected_connections"), "1");
    drop(two);
    one.awaits("clients", "connected_clients", "1");
    Peer::connect(&server).asks("PING", "+PONG\r\n");
}

#[test]
fn who_stays_silent_for_longer_than_timeout_is_dropped() {
    let server = with(&[("timeout", "5"), ("tcp-keepalive", "60")]);
    let mut idle = Peer::connect(&server);
    let (mut listening, mut waiting, mut other) =
        (Peer::connect(&server), Peer::connect(&server), Peer::connect(&server));
    idle.asks("PING", "+PONG\r\n");
    listening.asks("SUBSCRIBE c", "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n");
    waiting.send("BLPOP q 0\r\n");
    other.awaits("clients", "blocked_clients", "1");
    other.asks("DEBUG CLOCK ADVANCE 5000", "+OK\r\n");
    idle.asks("PING", "+PONG\r\n");
    other.asks("DEBUG CLOCK ADVANCE 7000", "+OK\r\n");
    assert_eq!(idle.rest(), b"");
    // Subscribers and blocked clients are not idle, not even while they wait for the clock.
    assert_eq!(other.info("clients", "connected_clients"), "3");
    other.asks("RPUSH q a", ":1\r\n");
    waiting.gets("*2\r\n$1\r\nq\r\n$1\r\na\r\n");
    waiting.asks("PING", "+PONG\r\n");
}

#[test]
fn a_stalled_node_leaves_what_comes_in_the_sockets() {
    let server = TestServer::start_blocking().expect("a free port");
    let (mut sleeper, mut eager) = (Peer::connect(&server), Peer::connect(&server));
    eager.asks("PING", "+PONG\r\n");
    sleeper.send("DEBUG SLEEP 2\r\n");
    // The server has read the command before the flood begins.
    #[expect(clippy::disallowed_methods, reason = "a real server is given real time")]
    std::thread::sleep(Duration::from_millis(200));
    eager.stream.set_nonblocking(true).expect("a socket");
    let flood = vec![b'\n'; MIB];
    let mut taken = 0;
    let full = loop {
        match eager.stream.write(&flood) {
            Ok(length) => taken += length,
            Err(error) if error.kind() == ErrorKind::WouldBlock => break true,
            Err(error) => panic!("{error}"),
        }
        if taken > 256 * MIB {
            break false;
        }
    };
    assert!(full, "a node that does nothing has read {taken} bytes");
    eager.stream.set_nonblocking(false).expect("a socket");
    sleeper.gets("+OK\r\n");
    eager.asks("\r\nPING", "+PONG\r\n");
}
