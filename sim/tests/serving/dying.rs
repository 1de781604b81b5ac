//! Clients that die at the worst moment, and servers that end in an orderly way.

use std::{io::Read, time::Instant};

use lockstorm_sim::TestServer;

use crate::peer::Peer;

#[test]
fn a_client_that_dies_mid_command_harms_no_other() {
    let server = TestServer::start_blocking().expect("a free port");
    let mut other = Peer::connect(&server);
    other.asks("SET watched 1", "+OK\r\n");
    let big = "x".repeat(1 << 20);
    other.send(format!("*3\r\n$3\r\nSET\r\n$3\r\nbig\r\n${}\r\n{big}\r\n", big.len()));
    other.gets("+OK\r\n");
    for last_words in [
        "",
        "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1000000\r\nxxx",
        "*1000000\r\n$3\r\nSET\r\n",
        "MULTI\r\nSET k v\r\n",
        "WATCH watched\r\nMULTI\r\nSET k v\r\n*1\r\n$4\r\nEX",
        "BLPOP q 0\r\n",
        "BLMOVE q r LEFT LEFT 0\r\nSET k v\r\n",
        "SUBSCRIBE c\r\nPSUBSCRIBE *\r\nSSUBSCRIBE c\r\n",
        "MONITOR\r\n",
        "SYNC\r\n",
        "WAIT 1 0\r\n",
        "CLIENT REPLY OFF\r\nGET big\r\n",
        // Replies that no client reads, more than sockets can hold.
        &"GET big\r\n".repeat(30),
        "\"unbalanced\r\n",
        "*1\r\n$-5\r\n",
    ] {
        let mut dying = Peer::connect(&server);
        dying.send(last_words);
        drop(dying);
        other.asks("SET watched 1", "+OK\r\n");
    }
    other.awaits("clients", "connected_clients", "1");
    assert_eq!(other.info("clients", "blocked_clients"), "0");
    assert_eq!(other.info("stats", "pubsub_channels"), "0");
    other.asks("RPUSH q a", ":1\r\n");
    other.asks("LLEN q", ":1\r\n");
    other.asks("EXISTS k", ":0\r\n");
    other.asks("PUBLISH c m", ":0\r\n");
}

#[test]
fn a_shutdown_answers_earlier_commands_and_closes_all_connections() {
    let server = TestServer::start_blocking().expect("a free port");
    let mut peers: Vec<Peer> = (0..20).map(|_| Peer::connect(&server)).collect();
    for peer in &mut peers {
        peer.asks("PING", "+PONG\r\n");
    }
    let mut last = Peer::connect(&server);
    let big = "x".repeat(8 << 20);
    last.send(format!("*3\r\n$3\r\nSET\r\n$3\r\nbig\r\n${}\r\n{big}\r\n", big.len()));
    last.gets("+OK\r\n");
    last.send("GET big\r\nSHUTDOWN NOSAVE\r\nPING\r\n");
    let answer = format!("${}\r\n{big}\r\n", big.len());
    assert_eq!(last.rest().len(), answer.len(), "the answer is whole, and nothing follows it");
    for mut peer in peers {
        assert_eq!(peer.rest(), b"");
    }
}

/// A client that gets the reply to CLIENT KILL finds the killed connection closed already.
#[test]
fn who_is_killed_learns_of_it_before_who_asked_for_that_is_answered() {
    let server = TestServer::start_blocking().expect("a free port");
    let mut killer = Peer::connect(&server);
    for (command, answer) in [
        ("CLIENT KILL TYPE normal", ":1\r\n"),
        (
            "MULTI\r\nCLIENT KILL TYPE normal\r\nPING\r\nEXEC",
            "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:1\r\n+PONG\r\n",
        ),
    ] {
        for _ in 0..100 {
            let mut killed = Peer::connect(&server);
            killed.asks("PING", "+PONG\r\n");
            killer.asks(command, answer);
            killed.stream.set_nonblocking(true).expect("it can be");
            let mut byte = [0];
            assert_eq!(killed.stream.read(&mut byte).expect("the end has come already"), 0);
        }
    }
}

const REPLIES: usize = 200;

/// Unread replies of one client do not delay another.
#[test]
fn a_client_that_reads_nothing_holds_up_no_other() {
    let server = TestServer::start_blocking().expect("a free port");
    let mut other = Peer::connect(&server);
    other.asks("SETRANGE k 1048575 v", ":1048576\r\n");
    let readers: Vec<Peer> = (0..20)
        .map(|_| {
            let mut slow = Peer::connect(&server);
            slow.send("GET k\r\n".repeat(10));
            slow
        })
        .collect();
    let mut longest = std::time::Duration::ZERO;
    // Ask until the server has made all 200 replies, for which the network has no room.
    while longest.is_zero() || other.calls("get") < 200 {
        #[expect(clippy::disallowed_methods, reason = "a limit in real time")]
        let begun = std::time::Instant::now();
        other.asks("PING", "+PONG\r\n");
        longest = longest.max(begun.elapsed());
        assert!(longest < std::time::Duration::from_secs(2), "{longest:?}");
    }
    drop(readers);
}

/// A client that got a megabyte in each of its replies and reads nothing, and another client.
fn slow_reader(server: &TestServer) -> (Peer, Peer) {
    let mut other = Peer::connect(server);
    other.asks("SETRANGE k 1048575 v", ":1048576\r\n");
    let mut slow = Peer::connect(server);
    slow.asks("CLIENT SETNAME slow", "+OK\r\n");
    slow.send("GET k\r\n".repeat(REPLIES));
    // Wait until the server has made the last replies, for which the network has no room.
    while other.calls("get") < REPLIES as u64 {}
    (slow, other)
}

/// As on a real server: the memory is freed immediately, even if the client still reads, and no old
/// replies arrive after its end.
#[test]
fn who_is_killed_is_not_waited_for() {
    let server = TestServer::start_blocking().expect("a free port");
    let (mut slow, mut killer) = slow_reader(&server);
    killer.asks("CLIENT KILL TYPE normal", ":1\r\n");
    let read = slow.rest().len();
    assert!(read < REPLIES << 19, "{read}");
}

/// Regression: the client was forgotten immediately, with replies that could never be freed. As in
/// Redis, it can be killed until it has read them.
#[test]
fn who_goes_without_reading_can_be_killed() {
    for goes in ["QUIT\r\n", "*1\r\n:no bulk\r\n"] {
        let server = TestServer::start_blocking().expect("a free port");
        let (mut slow, mut killer) = slow_reader(&server);
        slow.send(goes);
        while !killer.text("CLIENT LIST").contains("flags=c") {}
        killer.asks("CLIENT KILL TYPE normal", ":1\r\n");
        let read = slow.rest().len();
        assert!(read < REPLIES << 19, "{read}");
    }
}

#[test]
fn who_goes_and_reads_has_every_reply_and_is_gone() {
    let server = TestServer::start_blocking().expect("a free port");
    let (mut slow, mut other) = slow_reader(&server);
    slow.send("QUIT\r\n");
    let replies = slow.rest();
    assert!(replies.len() > REPLIES << 20 && replies.ends_with(b"+OK\r\n"), "{}", replies.len());
    other.awaits("clients", "connected_clients", "1");
}

/// Regression: commands sent behind the end stayed unread, and the network dropped the replies with
/// them.
#[test]
fn what_comes_behind_the_end_costs_no_replies() {
    let server = TestServer::start_blocking().expect("a free port");
    let (mut slow, mut other) = slow_reader(&server);
    slow.send("QUIT\r\n");
    slow.send("SET tail 1\r\n".repeat(20_000));
    while !other.text("CLIENT LIST").contains("flags=c") {}
    let replies = slow.rest();
    assert!(replies.len() > REPLIES << 20 && replies.ends_with(b"+OK\r\n"), "{}", replies.len());
}

/// Regression: a client with CLIENT REPLY OFF was kept forever after it got the earlier replies.
#[test]
fn who_goes_in_silence_has_the_replies_from_before_and_is_gone() {
    let server = TestServer::start_blocking().expect("a free port");
    let (mut slow, mut other) = slow_reader(&server);
    slow.send("CLIENT REPLY OFF\r\n");
    slow.send("QUIT\r\n");
    while !other.text("CLIENT LIST").contains("flags=c") {}
    assert!(slow.rest().len() > REPLIES << 20);
    other.awaits("clients", "connected_clients", "1");
}

#[test]
fn a_server_of_ones_own_is_there_within_milliseconds() {
    // Other tests run beside this one: the fastest of several starts is the measure.
    let quickest = (0..20).map(|_| {
        #[expect(clippy::disallowed_methods, reason = "it measures a real start")]
        let began = Instant::now();
        let server = TestServer::start_blocking().expect("a free port");
        Peer::connect(&server).asks("PING", "+PONG\r\n");
        began.elapsed()
    });
    let quickest = quickest.min().expect("some");
    assert!(quickest.as_millis() < 10, "{quickest:?}");
}

#[test]
fn a_server_of_ones_own_is_gone_when_it_is_dropped() {
    let server = TestServer::builder().password("se cret").start_blocking().expect("a free port");
    let address = server.address();
    assert_eq!(server.url(), format!("redis://:se%20cret@{address}"));
    let mut peer = Peer::connect(&server);
    peer.asks("PING", "-NOAUTH Authentication required.\r\n");
    peer.asks("AUTH \"se cret\"", "+OK\r\n");
    drop(server);
    assert_eq!(peer.rest(), b"");
    #[expect(clippy::disallowed_methods, reason = "a client on the real network")]
    let refused = std::net::TcpStream::connect(address);
    assert!(refused.is_err());
    let wrong = TestServer::builder().option("maxmemmory", "1mb").start_blocking();
    assert_eq!(
        wrong.expect_err("there is no such option").to_string(),
        "there is no option `maxmemmory`; did you mean `maxmemory`?"
    );
}
