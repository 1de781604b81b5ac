//! Replication between a simulated node and a real `redis-server`, both ways, over loopback.

use std::{net::SocketAddr, time::Duration};

use libtest_mimic::{Failed, Trial};
use lockstorm_lab::support::{
    arguments,
    redis::{Availability, RedisServer, availability},
};
use lockstorm_sim::{TestServer, config::Config, generation::Generation};
use redis::{Connection, Value};

/// Interval and limit of polls: real servers react in their own time.
const POLL: Duration = Duration::from_millis(20);
const POLLS_MAX: usize = 500;

fn main() {
    let trials = match availability() {
        Availability::Present => {
            let tests: [(&str, fn()); 4] = [
                ("a_simulated_node_follows_a_real_master", a_simulated_node_follows_a_real_master),
                ("a_real_replica_follows_a_simulated_master", a_real_replica_follows_a_simulated_master),
                ("roles_change_hands_without_beginning_anew", roles_change_hands_without_beginning_anew),
                (
                    "a_real_replica_follows_through_a_simulated_one",
                    a_real_replica_follows_through_a_simulated_one,
                ),
            ];
            let trial = |(name, test): (&str, fn())| {
                Trial::test(name, move || {
                    test();
                    Ok(())
                })
            };
            tests.into_iter().map(trial).collect()
        }
        Availability::Absent(why) => {
            eprintln!("{why}");
            Vec::new()
        }
        Availability::Missing(why) => {
            vec![Trial::test("redis_server_is_there", move || Err(Failed::from(why)))]
        }
    };
    libtest_mimic::run(&arguments(), trials).exit();
}

/// A simulated node of the real server's generation, on a real port.
fn simulated() -> TestServer {
    let config = Config::of(Generation::Redis70).with(|config| config.replication.diskless_sync_delay = 0);
    TestServer::builder().config(config).start_blocking().expect("a free loopback port")
}

fn real() -> RedisServer {
    RedisServer::start(&["--repl-diskless-sync-delay", "0", "--replica-read-only", "no"])
}

fn connect(address: SocketAddr) -> Connection {
    let client = redis::Client::open(format!("redis://{address}")).expect("a URL");
    client.get_connection().expect("the server accepts connections")
}

/// Runs a command line; blanks separate its words.
fn call(connection: &mut Connection, line: &str) -> Value {
    let mut words = line.split(' ');
    let mut command = redis::cmd(words.next().expect("a command"));
    words.for_each(|word| {
        command.arg(word);
    });
    command.query(connection).unwrap_or_else(|error| panic!("{line}: {error}"))
}

fn follow(replica: &mut Connection, master: SocketAddr) {
    call(replica, &format!("REPLICAOF {} {}", master.ip(), master.port()));
    until("the link stands", || format!("{:?}", call(replica, "ROLE")).contains("connected"));
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..POLLS_MAX {
        if holds() {
            return;
        }
        #[expect(clippy::disallowed_methods, reason = "a real process is waited for in real time")]
        std::thread::sleep(POLL);
    }
    panic!("in vain: {what}");
}

/// The value of a line of INFO.
fn info(connection: &mut Connection, name: &str) -> String {
    let text: String = redis::cmd("INFO").query(connection).expect("INFO is answered");
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("INFO has {name}")).to_owned()
}

/// Writes data of every kind, for the snapshot and for the stream.
fn write(master: &mut Connection, prefix: &str) {
    // Strings that a server saves as integers of each width, compressed, and plain.
    for (n, value) in ["7", "-300", "70000", "12345678901", "plain", &"long ".repeat(100).replace(' ', "_")]
        .iter()
        .enumerate()
    {
        call(master, &format!("SET {prefix}:{n} {value}"));
    }
    call(master, &format!("HSET {prefix}:h f 1 g two h -3 i {}", "x".repeat(70)));
    call(master, &format!("PEXPIRE {prefix}:h 1000000"));
    call(master, &format!("SET {prefix}:gone x"));
    call(master, &format!("DEL {prefix}:gone"));
    call(
        master,
        &format!(
            "FUNCTION LOAD #!lua\tname={prefix}\nredis.register_function{{function_name='{prefix}',\
             flags={{'no-writes'}},callback=function()return'{prefix}'end}}"
        ),
    );
    write_streams(master, prefix);
    call(master, "SELECT 3");
    call(master, "MULTI");
    call(master, &format!("SET {prefix}:a 1"));
    call(master, &format!("SET {prefix}:b 2"));
    call(master, "EXEC");
    call(master, "SELECT 0");
}

/// Writes streams with several nodes and deleted entries, groups with pending entries, and results
/// that the server chooses: IDs, the extent of approximate trimming, the consumer of each entry.
fn write_streams(master: &mut Connection, prefix: &str) {
    let key = &format!("{prefix}:x");
    for n in 0..250 {
        call(master, &format!("XADD {key} {n}-1 f{} {n} text {}", n % 3 / 2, "x".repeat(n)));
    }
    for line in [
        "XDEL {key} 3-1 100-1 249-1",
        "XADD {key} MAXLEN ~ 200 300-* a b",
        "XADD {key} * a b",
        "XGROUP CREATE {key} g 150",
        "XGROUP CREATE {key} empty $ ENTRIESREAD 7",
        "XGROUP CREATECONSUMER {key} empty idle",
        "XREADGROUP GROUP g ann COUNT 20 STREAMS {key} >",
        "XREADGROUP GROUP g bob COUNT 5 NOACK STREAMS {key} >",
        "XREADGROUP GROUP g bob COUNT 5 STREAMS {key} >",
        "XACK {key} g 151-1 152-1 999-9",
        "XDEL {key} 155-1 156-1 157-1",
        "XCLAIM {key} g bob 0 153-1 155-1",
        "XCLAIM {key} g cid 0 154-1 RETRYCOUNT 9 TIME 1000 JUSTID",
        "XAUTOCLAIM {key} g dan 0 156 COUNT 4",
        "XTRIM {key} MINID ~ 160",
        "XSETID {key} 99999999999999-7 ENTRIESADDED 1000 MAXDELETEDID 158-0",
        "XADD {key}:none NOMKSTREAM * a b",
        "XADD {key}:bare 1-1 a b",
        "XDEL {key}:bare 1-1",
        "XGROUP CREATE {key}:bare g $",
        "XGROUP DESTROY {key}:bare g",
    ] {
        call(master, &line.replace("{key}", key));
    }
}

/// A list of pending entries without their idle times, which keep growing.
fn without_idle_times(pending: Value) -> Vec<Vec<Value>> {
    let Value::Array(lines) = pending else { panic!("XPENDING answers {pending:?}") };
    let line = |line| match line {
        Value::Array(mut words) => {
            words.remove(2);
            words
        }
        other => panic!("XPENDING lists {other:?}"),
    };
    lines.into_iter().map(line).collect()
}

fn assert_same_streams(one: &mut Connection, other: &mut Connection, prefix: &str) {
    let key = &format!("{prefix}:x");
    for line in [
        "XINFO STREAM {key}",
        "XRANGE {key} - +",
        "XPENDING {key} g",
        "XINFO STREAM {key}:bare",
        "XINFO GROUPS {key}:bare",
        "EXISTS {key}:none",
    ] {
        let line = line.replace("{key}", key);
        assert_eq!(call(one, &line), call(other, &line), "{line}");
    }
    let pending =
        [one, other].map(|node| without_idle_times(call(node, &format!("XPENDING {key} g - + 100"))));
    assert_eq!(pending[0], pending[1]);
    assert!(pending[0].len() > 10, "{pending:?}");
}

fn assert_same(one: &mut Connection, other: &mut Connection, prefix: &str) {
    let mut ask = |line: &str| assert_eq!(call(one, line), call(other, line), "{line}");
    (0..6).for_each(|n| ask(&format!("GET {prefix}:{n}")));
    "fghi".chars().for_each(|field| ask(&format!("HGET {prefix}:h {field}")));
    ask(&format!("FCALL_RO {prefix} 0"));
    ask(&format!("FUNCTION LIST LIBRARYNAME {prefix} WITHCODE"));
    for line in ["DBSIZE", "SELECT 3", "DBSIZE"] {
        ask(line);
    }
    ["a", "b"].iter().for_each(|key| ask(&format!("GET {prefix}:{key}")));
    ask("SELECT 0");
    assert_same_streams(one, other, prefix);
    let left = [one, other].map(|connection| match call(connection, &format!("PTTL {prefix}:h")) {
        Value::Int(ms) => ms,
        other => panic!("PTTL answers {other:?}"),
    });
    // Both have the same instant of expiry. They are asked a moment apart, and have one clock on
    // one machine.
    assert!(left[0] > 900_000 && left[0].abs_diff(left[1]) < 5_000, "{left:?}");
}

fn a_simulated_node_follows_a_real_master() {
    let (real, simulated) = (real(), simulated());
    let (mut master, mut replica) = (connect(real.address), connect(simulated.address()));
    write(&mut master, "snapshot");
    follow(&mut replica, real.address);
    assert_same(&mut master, &mut replica, "snapshot");
    write(&mut master, "stream");
    // The real master asks, and counts the acknowledgement.
    assert_eq!(call(&mut master, "WAIT 1 5000"), Value::Int(1));
    assert_same(&mut master, &mut replica, "stream");
    call(&mut master, "CLIENT KILL TYPE replica");
    call(&mut master, "SET after 1");
    until("the link stands again", || call(&mut replica, "EXISTS after") == Value::Int(1));
    assert_eq!(
        (info(&mut master, "sync_full"), info(&mut master, "sync_partial_ok")),
        ("1".into(), "1".into())
    );
}

fn a_real_replica_follows_a_simulated_master() {
    let (real, simulated) = (real(), simulated());
    let (mut master, mut replica) = (connect(simulated.address()), connect(real.address));
    write(&mut master, "snapshot");
    follow(&mut replica, simulated.address());
    assert_same(&mut master, &mut replica, "snapshot");
    write(&mut master, "stream");
    assert_eq!(call(&mut master, "WAIT 1 5000"), Value::Int(1));
    assert_same(&mut master, &mut replica, "stream");
    // A snapshot would remove this key.
    call(&mut replica, "SET local 1");
    call(&mut replica, "CLIENT KILL TYPE master");
    call(&mut master, "SET after 1");
    until("the link stands again", || call(&mut replica, "EXISTS after") == Value::Int(1));
    assert_eq!(call(&mut replica, "EXISTS local"), Value::Int(1));
}

fn roles_change_hands_without_beginning_anew() {
    let (real, simulated) = (real(), simulated());
    let (mut first, mut second) = (connect(simulated.address()), connect(real.address));
    call(&mut first, "SET k 1");
    follow(&mut second, simulated.address());
    assert_eq!(call(&mut first, "WAIT 1 5000"), Value::Int(1));
    call(&mut second, "REPLICAOF NO ONE");
    follow(&mut first, real.address);
    call(&mut second, "SET k 2");
    assert_eq!(call(&mut second, "WAIT 1 5000"), Value::Int(1));
    assert_eq!(call(&mut first, "GET k"), call(&mut second, "GET k"));
    assert_eq!(
        (info(&mut second, "sync_full"), info(&mut second, "sync_partial_ok")),
        ("0".into(), "1".into())
    );
    // The same in the other direction.
    call(&mut first, "REPLICAOF NO ONE");
    follow(&mut second, simulated.address());
    call(&mut first, "SET k 3");
    assert_eq!(call(&mut first, "WAIT 1 5000"), Value::Int(1));
    assert_eq!(call(&mut first, "GET k"), call(&mut second, "GET k"));
}

fn a_real_replica_follows_through_a_simulated_one() {
    let (top, middle, end) = (real(), simulated(), real());
    let (mut top_connection, mut middle_connection, mut end_connection) =
        (connect(top.address), connect(middle.address()), connect(end.address));
    write(&mut top_connection, "snapshot");
    // Small collections in compact encodings, large ones in general encodings.
    for line in [
        "RPUSH list a -5 5000 100000",
        "SADD integers 1 -70000 3",
        "SADD words a b",
        "ZADD ranks 1.5 a -inf b inf c",
    ] {
        call(&mut top_connection, line);
    }
    for n in 0..300 {
        for line in [
            format!("RPUSH large:list {n}{}", "x".repeat(n)),
            format!("SADD large:set member{n}"),
            format!("ZADD large:ranks {n}.25 member{n}"),
            format!("HSET large:hash field{n} {n}"),
        ] {
            call(&mut top_connection, &line);
        }
    }
    follow(&mut middle_connection, top.address);
    follow(&mut end_connection, middle.address());
    write(&mut top_connection, "stream");
    until("the stream has passed through", || {
        info(&mut end_connection, "master_repl_offset") == info(&mut top_connection, "master_repl_offset")
    });
    assert_same(&mut top_connection, &mut end_connection, "snapshot");
    assert_same(&mut top_connection, &mut end_connection, "stream");
    // A digest over all keys and values: the data passed through the simulator unchanged.
    assert_eq!(call(&mut end_connection, "DEBUG DIGEST"), call(&mut top_connection, "DEBUG DIGEST"));
    assert_eq!(info(&mut end_connection, "master_replid"), info(&mut top_connection, "master_replid"));
}
