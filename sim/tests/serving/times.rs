//! The duration of commands: real time in general, and zero with a clock that only clients advance.

use lockstorm_sim::TestServer;

use crate::peer::Peer;

/// The microseconds of a command's calls, as INFO reports them.
fn took_us(peer: &mut Peer, command: &str) -> u64 {
    let line = peer.info("commandstats", &format!("cmdstat_{command}"));
    let us = line.split(',').find_map(|field| field.strip_prefix("usec="));
    us.and_then(|us| us.parse().ok()).unwrap_or_else(|| panic!("no time in {line}"))
}

const LONG: &str = "EVAL \"local x = 0 for i = 1, 3000000 do x = x + i end return x\" 0";

#[test]
fn commands_are_timed_by_real_time() {
    let server = TestServer::builder().start_blocking().expect("a free port");
    let mut peer = Peer::connect(&server);
    peer.asks("CONFIG SET latency-monitor-threshold 1 slowlog-log-slower-than 1000", "+OK\r\n");
    peer.asks(LONG, ":4500001500000\r\n");
    // No machine adds three million numbers in Lua within a millisecond.
    assert!(took_us(&mut peer, "eval") > 1000);
    peer.asks("LATENCY RESET command", ":1\r\n");
    peer.asks("SLOWLOG LEN", ":1\r\n");
}

#[test]
fn commands_take_no_time_by_a_manual_clock_but_what_they_sleep() {
    let server = TestServer::builder().manual_clock().start_blocking().expect("a free port");
    let mut peer = Peer::connect(&server);
    peer.asks("CONFIG SET latency-monitor-threshold 1 slowlog-log-slower-than 1000", "+OK\r\n");
    peer.asks(LONG, ":4500001500000\r\n");
    assert_eq!(took_us(&mut peer, "eval"), 0);
    peer.asks("DEBUG SLEEP 0.25", "+OK\r\n");
    assert_eq!(took_us(&mut peer, "debug"), 250_000);
    peer.asks("SLOWLOG LEN", ":1\r\n");
    peer.asks(
        "LATENCY HISTOGRAM debug",
        "*2\r\n$5\r\ndebug\r\n*4\r\n$5\r\ncalls\r\n:1\r\n$14\r\nhistogram_usec\r\n*2\r\n:270532\r\n:1\r\n",
    );
}

/// redis-server takes some fifty times as long to free such a value. The simulator reports its own
/// time all the same.
#[test]
fn a_large_value_that_expires_is_noted_as_taking_its_time() {
    let server = TestServer::start_blocking().expect("a free port");
    let mut peer = Peer::connect(&server);
    peer.asks("CONFIG SET latency-monitor-threshold 1", "+OK\r\n");
    // Members that are too long for their slots are freed one by one.
    let member = "('a member that is kept apart '):rep(2) .. i";
    let fill = format!("EVAL \"for i = 1, 300000 do redis.call('sadd', 'large', {member}) end\" 0");
    peer.asks("DEBUG SET-ACTIVE-EXPIRE 0", "+OK\r\n");
    peer.asks(&fill, "$-1\r\n");
    peer.asks("PEXPIRE large 1", ":1\r\n");
    while peer.line("EXISTS large") == ":1\r\n" {}
    peer.asks("LATENCY RESET expire-cycle", ":0\r\n");
    peer.asks("LATENCY RESET expire-del", ":1\r\n");
    peer.asks("DEBUG SET-ACTIVE-EXPIRE 1", "+OK\r\n");
    peer.asks(&fill, "$-1\r\n");
    peer.asks("PEXPIRE large 1", ":1\r\n");
    peer.awaits("stats", "expired_keys", "2");
    peer.asks("LATENCY RESET expire-cycle", ":1\r\n");
    peer.asks("LATENCY RESET expire-del", ":1\r\n");
}
