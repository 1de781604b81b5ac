//! A clock that only DEBUG CLOCK ADVANCE moves: everything that depends on time waits for it.

use std::time::Duration;

use lockstorm_sim::{TestServer, config::Config};

use crate::peer::Peer;

fn manual() -> TestServer {
    TestServer::builder().manual_clock().start_blocking().expect("a free port")
}

/// Lets real time pass, which must not matter.
fn linger() {
    #[expect(clippy::disallowed_methods, reason = "real time is what must not matter")]
    std::thread::sleep(Duration::from_millis(30));
}

#[test]
fn keys_expire_by_it_to_the_millisecond() {
    let server = manual();
    let mut peer = Peer::connect(&server);
    peer.asks("SET k v PX 1000", "+OK\r\n");
    linger();
    peer.asks("PTTL k", ":1000\r\n");
    peer.asks("DEBUG CLOCK ADVANCE 999", "+OK\r\n");
    peer.asks("PTTL k", ":1\r\n");
    // Commands behind it in the same write see the new time.
    peer.asks("DEBUG CLOCK ADVANCE 2\r\nGET k", "+OK\r\n$-1\r\n");
}

#[test]
fn the_time_that_clients_see_is_its_own() {
    let server = manual();
    let mut peer = Peer::connect(&server);
    let time = |peer: &mut Peer| peer.info("server", "server_time_usec").parse::<i64>().expect("a number");
    let began = time(&mut peer);
    assert_eq!(began % 1000, 0, "it begins at a whole millisecond");
    linger();
    assert_eq!(time(&mut peer), began);
    peer.asks("DEBUG CLOCK ADVANCE 1500", "+OK\r\n");
    assert_eq!(time(&mut peer), began + 1_500_000);
    // Sleeping takes time, and no other client advances the clock.
    peer.asks("DEBUG SLEEP 0.5", "+OK\r\n");
    assert_eq!(time(&mut peer), began + 2_000_000);
}

#[test]
fn waits_end_on_the_way_and_before_the_answer() {
    let server = manual();
    let mut peer = Peer::connect(&server);
    let mut waiting = [1, 2, 3].map(|_| Peer::connect(&server));
    for (seconds, waiting) in waiting.iter_mut().enumerate() {
        waiting.send(format!("BLPOP q {}\r\n", seconds + 1));
    }
    peer.awaits("clients", "blocked_clients", "3");
    linger();
    peer.asks("DEBUG CLOCK ADVANCE 2000\r\nRPUSH q a", "+OK\r\n:1\r\n");
    let [one, two, three] = &mut waiting;
    one.gets("*-1\r\n");
    two.gets("*-1\r\n");
    three.gets("*2\r\n$1\r\nq\r\n$1\r\na\r\n");
}

#[test]
fn periodic_work_is_done_by_it() {
    let server = manual();
    let mut peer = Peer::connect(&server);
    peer.asks("CONFIG SET notify-keyspace-events Ex", "+OK\r\n");
    let mut listening = Peer::connect(&server);
    let channel = "__keyevent@0__:expired";
    listening.asks(
        &format!("SUBSCRIBE {channel}"),
        &format!("*3\r\n$9\r\nsubscribe\r\n${}\r\n{channel}\r\n:1\r\n", channel.len()),
    );
    peer.asks("PSETEX a 100 v\r\nPSETEX b 60000 v", "+OK\r\n+OK\r\n");
    linger();
    peer.asks("DBSIZE", ":2\r\n");
    // No client accesses the keys: active expiry finds them, on its ticks.
    let message =
        |key: &str| format!("*3\r\n$7\r\nmessage\r\n${}\r\n{channel}\r\n$1\r\n{key}\r\n", channel.len());
    peer.asks("DEBUG CLOCK ADVANCE 300\r\nDBSIZE", "+OK\r\n:1\r\n");
    listening.gets(&message("a"));
    peer.asks("DEBUG CLOCK ADVANCE 86400000\r\nDBSIZE", "+OK\r\n:0\r\n");
    listening.gets(&message("b"));
}

#[test]
fn a_pause_of_all_commands_does_not_hold_who_ends_it() {
    let server = manual();
    let (mut peer, mut held) = (Peer::connect(&server), Peer::connect(&server));
    peer.asks("CLIENT PAUSE 1000", "+OK\r\n");
    held.send("SET k v\r\n");
    linger();
    peer.asks("DEBUG CLOCK ADVANCE 999\r\nDEBUG CLOCK ADVANCE 1", "+OK\r\n+OK\r\n");
    held.gets("+OK\r\n");
}

#[test]
fn a_script_without_an_end_is_found_out_while_the_clock_stands_still() {
    let config = Config::default().with(|config| config.scripts.busy_reply_threshold = 20);
    let server = TestServer::builder().config(config).manual_clock().start_blocking().expect("a free port");
    let (mut peer, mut endless) = (Peer::connect(&server), Peer::connect(&server));
    endless.send("EVAL \"while true do end\" 0\r\n");
    // The script comes on another connection, and may arrive later.
    let answers = std::iter::repeat_with(|| peer.line("PING"));
    let busy = answers.take(10_000).find(|answer| answer != "+PONG\r\n").expect("the script runs");
    assert_eq!(
        busy,
        "-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.\r\n"
    );
    peer.asks("SCRIPT KILL", "+OK\r\n");
}

#[test]
fn however_far_it_goes_the_node_answers() {
    let server = manual();
    let mut peer = Peer::connect(&server);
    // With a replica that never acknowledges, and a key, every second has work.
    Peer::connect(&server).send("SYNC\r\n");
    peer.asks("SET k v EX 100000000", "+OK\r\n");
    peer.asks("DEBUG CLOCK ADVANCE 9223372036854775807", "+OK\r\n");
    peer.asks("DEBUG CLOCK ADVANCE 1", "+OK\r\n");
    peer.asks("EXISTS k", ":0\r\n");
    peer.asks("DEBUG CLOCK ADVANCE -1", "-ERR value is out of range\r\n");
    peer.asks("DEBUG CLOCK ADVANCE x", "-ERR value is not an integer or out of range\r\n");
    peer.asks(
        "DEBUG CLOCK RETREAT 1",
        "-ERR unknown subcommand or wrong number of arguments for 'CLOCK'. Try DEBUG HELP.\r\n",
    );
    peer.asks(
        "MULTI\r\nDEBUG CLOCK ADVANCE 1\r\nEXEC",
        "+OK\r\n+QUEUED\r\n*1\r\n-ERR DEBUG CLOCK ADVANCE isn't allowed for DENY BLOCKING client\r\n",
    );
}

#[test]
fn a_clock_that_moves_by_itself_is_not_moved() {
    let server = TestServer::start_blocking().expect("a free port");
    Peer::connect(&server).asks("DEBUG CLOCK ADVANCE 1", "-ERR the clock of this server moves by itself\r\n");
}
