//! `lockstorm serve --as`: each generation of servers as a client sees it, beside the real server
//! where `trials/setup servers` has installed it.

use std::{
    io::{Read, Write},
    net::TcpStream,
    path::Path,
    time::{Duration, Instant},
};

use lockstorm_sim::generation::{Feature, Generation};

use crate::served::{self, Served, asks, folder};

/// The simulated server of a generation, and the real one if there is one.
fn servers(generation: Generation, folder: &Path) -> Vec<(String, Served)> {
    // A script is busy after a tenth of a second, and gives others their turns.
    const THRESHOLD: &str = "busy-reply-threshold";
    let option = format!("{THRESHOLD}=100");
    let arguments = ["--as", generation.name(), "--option", &option];
    let simulated = Served::start(folder, &arguments);
    let mut all = vec![(format!("{generation}, simulated"), simulated)];
    if let Some(program) = served::program(generation) {
        // Redis 6.2 has an older name for it.
        let threshold =
            if generation == Generation::Redis62 { "--lua-time-limit" } else { "--busy-reply-threshold" };
        let arguments = ["--save", "", threshold, "100"];
        all.push((format!("{generation}, real"), served::start(&program, folder, &arguments)));
    }
    all
}

/// Sends a command, and returns the first line of its reply, and of a bulk string its text.
fn ask(server: &Served, words: &[&str]) -> String {
    let reply = served::call(&mut server.connect(), words);
    match reply.strip_prefix('$') {
        Some(bulk) => bulk.split_once("\r\n").map_or(String::new(), |(_, text)| text.trim_end().to_owned()),
        None => reply.trim_end().to_owned(),
    }
}

#[test]
fn a_server_says_what_it_is() {
    let folder = folder("what_it_is");
    for generation in Generation::ALL {
        for (name, server) in servers(generation, &folder) {
            let info = served::call(&mut server.connect(), &["INFO", "server"]);
            let version = format!("redis_version:{}\r\n", generation.redis_version());
            assert!(info.contains(&version), "{name}: {info}");
            let valkey = format!("valkey_version:{}\r\n", generation.version());
            assert_eq!(info.contains(&valkey), generation.is_valkey(), "{name}: {info}");
            let hello = served::call(&mut server.connect(), &["HELLO"]);
            assert!(hello.contains(&format!("\r\n{}\r\n", generation.server())), "{name}: {hello}");
            assert!(hello.contains(&format!("\r\n{}\r\n", generation.version())), "{name}: {hello}");
        }
    }
}

/// TIME gives the same answer in all of a script that is not busy yet, in newer generations.
#[test]
fn time_stands_still_in_a_script_of_newer_generations() {
    let script = "local a = redis.call('TIME')
         for i = 1, 300000 do end
         local b = redis.call('TIME')
         return (a[1] == b[1] and a[2] == b[2]) and 'stands still' or 'moves'";
    let folder = folder("time");
    for generation in Generation::ALL {
        let expected = if generation.has(Feature::FrozenScripts) { "stands still" } else { "moves" };
        for (name, server) in servers(generation, &folder) {
            assert_eq!(ask(&server, &["EVAL", script, "0"]), expected, "{name}");
        }
    }
}

/// A lease that a script sets begins when the script began, in generations whose clock stands still
/// meanwhile, also if the script was busy. In older ones it begins at the call.
#[test]
fn a_lease_taken_at_the_end_of_a_long_script_is_shorter_where_time_stands_still() {
    const LEASE_MS: i64 = 100_000;
    let script =
        format!("for i = 1, 30000000 do end return redis.call('SET', 'lock', 'owner', 'PX', {LEASE_MS})");
    let folder = folder("frozen");
    for generation in Generation::ALL {
        let is_frozen = generation.has(Feature::FrozenScripts);
        for (name, server) in servers(generation, &folder) {
            #[expect(clippy::disallowed_methods, reason = "the server has the machine's clock")]
            let begun = Instant::now();
            assert_eq!(ask(&server, &["EVAL", &script, "0"]), "+OK", "{name}");
            let took_ms = i64::try_from(begun.elapsed().as_millis()).expect("a short time");
            let left_ms: i64 =
                ask(&server, &["PTTL", "lock"]).trim_start_matches(':').parse().expect("a number");
            let gone_ms = LEASE_MS - left_ms;
            // Most of the time of the call is the script's.
            assert_eq!(
                gone_ms > took_ms / 2,
                is_frozen,
                "{name}: {gone_ms} ms of the lease are over after {took_ms} ms"
            );
        }
    }
}

/// Asks a server until the first line of its reply, or the text of a bulk string, satisfies `is`.
fn until(server: &Served, words: &[&str], is: impl Fn(&str) -> bool) {
    for _ in 0..1_500 {
        if is(&ask(server, words)) {
            return;
        }
        #[expect(clippy::disallowed_methods, reason = "real servers have their own clock")]
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("{words:?} never answers so: {}", ask(server, words));
}

/// Reads one line of a reply.
fn line(stream: &mut TcpStream) -> String {
    let (mut line, mut byte) = (Vec::new(), [0]);
    while !line.ends_with(b"\r\n") {
        stream.read_exact(&mut byte).expect("a line");
        line.push(byte[0]);
    }
    String::from_utf8_lossy(&line).into_owned()
}

/// Clients that have announced `redirect` learn the new master from the old one.
#[test]
fn a_failover_redirects_clients_that_can_follow() {
    for generation in [Generation::Valkey81, Generation::Valkey91] {
        let masters = servers(generation, &folder("redirect_from"));
        let replicas = servers(generation, &folder("redirect_to"));
        for ((name, master), (_, replica)) in masters.iter().zip(&replicas) {
            let (from, to) = (master.address.port().to_string(), replica.address.port());
            assert_eq!(ask(master, &["CONFIG", "SET", "repl-diskless-sync-delay", "0"]), "+OK", "{name}");
            assert_eq!(ask(replica, &["REPLICAOF", "127.0.0.1", &from]), "+OK", "{name}");
            let is_up = |info: &str| info.contains("master_link_status:up");
            until(replica, &["INFO", "replication"], is_up);

            let [mut follows, mut waits, mut plain] = [(); 3].map(|()| master.connect());
            for stream in [&mut follows, &mut waits] {
                asks(stream, "CLIENT CAPA redirect", "+OK\r\n");
            }
            asks(&mut follows, "SET k v", "+OK\r\n");
            waits.write_all(b"BLPOP l 0\r\n").expect("open");
            asks(&mut plain, "FAILOVER", "+OK\r\n");
            let redirected = format!("-REDIRECT 127.0.0.1:{to}\r\n");
            loop {
                follows.write_all(b"SET k w\r\n").expect("open");
                let reply = line(&mut follows);
                if reply == redirected {
                    break;
                }
                assert_eq!(reply, "+OK\r\n", "{name}");
            }
            asks(&mut follows, "GET k", &redirected);
            until(master, &["INFO", "replication"], is_up);
            asks(&mut follows, "READONLY", "+OK\r\n");
            asks(&mut follows, "EXISTS k", ":1\r\n");
            asks(&mut follows, "SET k x", &redirected);
            asks(&mut plain, "SET k x", "-READONLY You can't write against a read only replica.\r\n");
            if generation.has(Feature::RedirectBlocked) {
                asks(&mut waits, "PING", &format!("{redirected}+PONG\r\n"));
            } else {
                assert!(line(&mut waits).starts_with("-UNBLOCKED "), "{name}");
                assert_eq!(waits.read(&mut [0]).expect("an end"), 0, "{name}");
            }
            asks(&mut replica.connect(), "SET k x", "+OK\r\n");
        }
    }
}
