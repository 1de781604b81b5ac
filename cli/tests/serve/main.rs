//! `lockstorm serve` as its operator sees it: addresses, logs, its end, the number of connections,
//! and its data.

mod cluster;
mod data;
mod generations;
mod mixed;
mod protection;
mod renames;
mod sentinel;
mod served;

use std::{
    fs,
    io::{BufRead, Read, Write},
    net::TcpStream,
    os::unix::{fs::PermissionsExt, net::UnixStream},
    path::Path,
    process::Command,
    time::Instant,
};

use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};

use served::{Served, asks, folder, gets};

#[test]
fn a_signal_ends_it_in_order() {
    for (signal, name) in [(Signal::TERM, "SIGTERM"), (Signal::INT, "SIGINT")] {
        let served = Served::start(&folder(name), &[]);
        let mut streams: Vec<TcpStream> = (0..5).map(|_| served.connect()).collect();
        for stream in &mut streams {
            asks(stream, "SET k v", "+OK\r\n");
        }
        streams[0].write_all(b"BLPOP q 0\r\n").expect("open");
        asks(&mut streams[1], "PING", "+PONG\r\n");
        served.signal(signal);
        for mut stream in streams {
            assert_eq!(stream.read(&mut [0; 16]).expect("an end, not a reset"), 0);
        }
        let (code, log) = served.ended();
        assert_eq!(code, 0, "{log}");
        for line in ["Ready to accept connections", name, "ready to exit", "All connections are closed"] {
            assert!(log.contains(line), "{line:?} is not in {log}");
        }
    }
}

#[test]
fn the_log_says_as_much_as_is_asked_for() {
    let folder = folder("log");
    let logged = |arguments: &[&str]| {
        let served = Served::start(&folder, arguments);
        let mut stream = served.connect();
        asks(&mut stream, "PING", "+PONG\r\n");
        let peer = stream.local_addr().expect("connected").to_string();
        served.signal(Signal::TERM);
        let (_, log) = served.ended();
        (log, peer)
    };
    let (log, peer) = logged(&["--loglevel", "debug"]);
    assert_eq!(log.lines().filter(|line| line.contains(&peer)).count(), 1, "{log}");
    assert!(log.lines().all(|line| line.split(' ').count() > 6), "process, date, time, sign, text: {log}");
    let (log, peer) = logged(&[]);
    assert!(log.contains("Ready to accept") && !log.contains(&peer), "{log}");
    let (log, _) = logged(&["--loglevel", "warning"]);
    assert!(log.contains("SIGTERM") && !log.contains("Ready to accept"), "{log}");
    let (log, _) = logged(&["--logfile", "node.log"]);
    assert_eq!(log, "", "it goes into the file");
    assert!(fs::read_to_string(folder.join("node.log")).expect("a log").contains("Ready to accept"));
    // A relative path starts in the folder of the data, as on Redis, whose process runs there.
    fs::create_dir(folder.join("data")).expect("a folder");
    let (log, _) = logged(&["--data", "data", "--option", "logfile=its.log"]);
    assert_eq!(log, "", "it goes into the file");
    assert!(fs::read_to_string(folder.join("data/its.log")).expect("a log").contains("Ready to accept"));
}

#[test]
fn it_listens_at_a_file_as_well() {
    let folder = folder("unix");
    let socket = folder.join("redis.sock");
    // The socket of a killed process does not matter.
    drop(std::os::unix::net::UnixListener::bind(&socket).expect("a socket"));
    let mut served = Served::start(
        &folder,
        &["--bind", "127.0.0.1", "--unixsocket", "redis.sock", "--unixsocketperm", "700"],
    );
    let mut line = String::new();
    served.out.read_line(&mut line).expect("it says where it listens");
    assert_eq!(line, "listening on redis.sock; try: redis-cli -s redis.sock\n");
    let mut stream = UnixStream::connect(&socket).expect("it listens");
    asks(&mut stream, "SET k v", "+OK\r\n");
    asks(&mut served.connect(), "GET k", "$1\r\nv\r\n");
    assert_eq!(fs::metadata(&socket).expect("it is there").permissions().mode() & 0o777, 0o700);
    stream.write_all(b"CLIENT INFO\r\n").expect("open");
    let mut told = [0; 512];
    let len = stream.read(&mut told).expect("answered");
    assert!(String::from_utf8_lossy(&told[..len]).contains(" flags=U "), "clients by the file are marked");
    served.signal(Signal::TERM);
    assert_eq!(stream.read(&mut [0; 16]).expect("an end"), 0);
    assert_eq!(served.ended().0, 0);
    assert!(!socket.exists(), "it is removed");
}

/// The SHA-256 of `secret`: the file has the hashes of passwords.
const SECRET: &str = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";

#[test]
fn options_come_from_a_file_and_go_back_into_it() {
    let folder = folder("config");
    let text = "# mine\nrequirepass \"of the file\"\nmaxmemory 10mb\nhz 10\n";
    fs::write(folder.join("redis.conf"), text).expect("written");
    let arguments = ["--config", "redis.conf", "--requirepass", "secret", "--option", "databases=2"];
    let served = Served::start(&folder, &arguments);
    let mut stream = served.connect();
    asks(&mut stream, "PING", "-NOAUTH Authentication required.\r\n");
    asks(&mut stream, "AUTH secret", "+OK\r\n");
    asks(&mut stream, "CONFIG GET maxmemory", "*2\r\n$9\r\nmaxmemory\r\n$8\r\n10485760\r\n");
    asks(&mut stream, "SELECT 2", "-ERR DB index is out of range\r\n");
    asks(&mut stream, "CONFIG SET hz 50 maxmemory-policy allkeys-lru", "+OK\r\n");
    asks(&mut stream, "CONFIG REWRITE", "+OK\r\n");
    let port = served.address.port();
    let expected = format!(
        "# mine\nrequirepass \"secret\"\nmaxmemory 10mb\nhz 50\n# Generated by CONFIG REWRITE\ndatabases 2\n\
         maxmemory-policy allkeys-lru\nport {port}\nuser default on sanitize-payload #{SECRET} ~* &* +@all\n"
    );
    assert_eq!(fs::read_to_string(folder.join("redis.conf")).expect("a file"), expected);
    let entries = fs::read_dir(&folder).expect("a folder").count();
    assert_eq!(entries, 1, "nothing is left beside it");

    // A deleted folder cannot be written to, and the client gets an error.
    fs::remove_dir_all(&folder).expect("removed");
    asks(&mut stream, "CONFIG REWRITE", "-ERR Rewriting config file: No such file or directory\r\n");
    asks(
        &mut Served::start(Path::new("."), &[]).connect(),
        "CONFIG REWRITE",
        "-ERR The server is running without a config file\r\n",
    );
}

#[test]
fn what_cannot_be_followed_is_told_with_its_place() {
    let folder = folder("mistakes");
    fs::write(folder.join("wrong.conf"), "port 0\n\nmaxmemmory 1mb\n").expect("written");
    let refused = |arguments: &[&str], says: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_lockstorm"))
            .arg("serve")
            .args(arguments)
            .current_dir(&folder)
            .output()
            .expect("the binary runs");
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(64), "{err}");
        // Reports are wrapped at the width of the terminal.
        let flat = err.split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ");
        assert!(flat.contains(says), "{says:?} is not in {flat}");
    };
    refused(
        &["--config", "wrong.conf"],
        "wrong.conf:3: there is no option `maxmemmory`; did you mean `maxmemory`?",
    );
    refused(&["--config", "absent.conf"], "No such file or directory");
    refused(&["--option", "hz"], "has no `=`");
    refused(&["--option", "hz=x"], "couldn't be parsed into an integer");
    refused(&["--option", "loglevl=debug"], "did you mean `loglevel`?");
    refused(&["--loglevel", "loud"], "debug, verbose, notice, warning");
    refused(&["--clock", "fast"], "invalid value 'fast'");
    // Systems limit the path of a Unix socket to some 100 bytes.
    let deep = "d".repeat(120);
    refused(&["--port", "0", "--unixsocket", &deep], "120 bytes are too many for the path of a Unix socket");
    refused(&["--bind", "192.0.2.1", "--port", "0"], "cannot listen on 192.0.2.1:0");
}

#[test]
fn a_manual_clock_is_moved_by_clients() {
    let served = Served::start(&folder("clock"), &["--clock", "manual"]);
    let mut stream = served.connect();
    asks(&mut stream, "SET k v PX 60000", "+OK\r\n");
    asks(&mut stream, "DEBUG CLOCK ADVANCE 59999", "+OK\r\n");
    asks(&mut stream, "PTTL k", ":1\r\n");
    asks(&mut stream, "DEBUG CLOCK ADVANCE 2", "+OK\r\n");
    asks(&mut stream, "PTTL k", ":-2\r\n");
}

#[test]
fn ten_thousand_clients_are_served_at_once() {
    // As many as the system permits this process: each of the two processes has one end of every
    // connection.
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    let most = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX).saturating_sub(200).min(10_000);
    let served = Served::start(&folder("many"), &["--loglevel", "warning"]);
    let mut streams: Vec<TcpStream> = (0..most).map(|_| served.connect()).collect();
    for (number, stream) in streams.iter_mut().enumerate() {
        stream.write_all(format!("ECHO {number:05}\r\n").as_bytes()).expect("open");
    }
    for (number, stream) in streams.iter_mut().enumerate() {
        gets(stream, &format!("$5\r\n{number:05}\r\n"));
    }
    // Half of them close; the rest does not notice.
    let rest = streams.split_off(streams.len() / 2);
    drop(streams);
    for mut stream in rest {
        asks(&mut stream, "PING", "+PONG\r\n");
    }
    served.signal(Signal::TERM);
    assert_eq!(served.ended().0, 0);
}

#[test]
fn it_is_there_within_milliseconds() {
    let folder = folder("quick");
    // Other tests run beside this one: the fastest of several starts is the measure.
    let quickest = (0..20).map(|_| {
        #[expect(clippy::disallowed_methods, reason = "it measures a real start")]
        let began = Instant::now();
        let served = Served::start(&folder, &[]);
        asks(&mut served.connect(), "PING", "+PONG\r\n");
        began.elapsed()
    });
    let quickest = quickest.min().expect("some");
    // A test build is slower than a release build, which needs less than half of this.
    assert!(quickest.as_millis() < 25, "{quickest:?}");
}

/// Its standard input is a pipe, which the operating system closes with the process at the other
/// end.
#[test]
fn it_ends_with_who_has_started_it() {
    let mut served = Served::start(&folder("parent"), &[]);
    let mut stream = served.connect();
    asks(&mut stream, "PING", "+PONG\r\n");
    let mut input = served.child.stdin.take().expect("a pipe");
    input.write_all(b"what comes in is read and dropped\n").expect("open");
    asks(&mut stream, "PING", "+PONG\r\n");
    drop(input);
    assert_eq!(stream.read(&mut [0; 16]).expect("an end, not a reset"), 0);
    assert_eq!(served.ended().0, 0);
}

/// Regression: the allocator kept freed memory while the server was quiet: for good after its last
/// clients.
#[test]
fn what_clients_have_left_unread_goes_back_to_the_operating_system() {
    let resident = |served: &Served| {
        let status = fs::read_to_string(format!("/proc/{}/status", served.child.id())).expect("Linux");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it is told");
        line.trim().trim_end_matches(" kB").parse::<usize>().expect("a number") << 10
    };
    let served = Served::start(&folder("memory"), &[]);
    let mut other = served.connect();
    // Short values, which are copied into each reply: a megabyte in total.
    let fill = "EVAL \"for i = 1, 10000 do redis.call('rpush', 'l', ('x'):rep(94)) end\" 0";
    asks(&mut other, fill, "$-1\r\n");
    let before = resident(&served);
    let mut readers: Vec<TcpStream> = (0..10).map(|_| served.connect()).collect();
    for reader in &mut readers {
        reader.write_all(&b"LRANGE l 0 -1\r\n".repeat(30)).expect("open");
    }
    let unread = 200 << 20;
    let until = |what: &str, reached: &dyn Fn(usize) -> bool| {
        for _ in 0..200 {
            if reached(resident(&served)) {
                return;
            }
            #[expect(clippy::disallowed_methods, reason = "a real server comes round in its own time")]
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        panic!("{what}: {} bytes, {before} before", resident(&served));
    };
    until("it keeps what is not read", &|bytes| bytes > before + unread);
    drop(readers);
    until("it keeps replies that are never read", &|bytes| bytes < before + unread / 4);
}
