//! `lockstorm serve` as whoever operates it meets it: where it listens, what it logs, how it ends, how many it bears.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    os::unix::{fs::PermissionsExt, net::UnixStream},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit};

/// How long anything may take before it counts as missing.
const PATIENCE: Duration = Duration::from_secs(20);

/// A folder of one test's own.
fn folder(test: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("serve_{test}"));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).expect("a folder for the test");
    path
}

/// A server that is killed when the test ends without ending it.
struct Served {
    child: Child,
    out: BufReader<ChildStdout>,
    address: SocketAddr,
}

impl Served {
    fn start(folder: &Path, arguments: &[&str]) -> Served {
        let mut child = Command::new(env!("CARGO_BIN_EXE_lockstorm"))
            .args(["serve", "--port", "0"])
            .args(arguments)
            .current_dir(folder)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        out.read_line(&mut line).expect("it says where it listens");
        let address =
            line.strip_prefix("listening on ").and_then(|rest| rest.split(';').next()?.parse().ok());
        let Some(address) = address else {
            let mut err = String::new();
            let _ = child.stderr.take().expect("a pipe").read_to_string(&mut err);
            panic!("{line:?} is no address: {err}");
        };
        Served { child, out, address }
    }

    fn connect(&self) -> TcpStream {
        #[expect(clippy::disallowed_methods, reason = "a client on the real network")]
        let stream = TcpStream::connect(self.address).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time-out can be set");
        stream
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).expect("a process id")).expect("not 0");
        kill_process(pid, signal).expect("it runs");
    }

    /// Waits until it has ended; its exit status, and all that it logged.
    fn ended(mut self) -> (i32, String) {
        let mut log = String::new();
        self.child.stderr.take().expect("a pipe").read_to_string(&mut log).expect("a text");
        let status = self.child.wait().expect("it ends");
        (status.code().unwrap_or(-1), log)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[track_caller]
fn asks(stream: &mut (impl Read + Write), command: &str, expected: &str) {
    stream.write_all(format!("{command}\r\n").as_bytes()).expect("open");
    gets(stream, expected);
}

#[track_caller]
fn gets(stream: &mut impl Read, expected: &str) {
    let mut answer = vec![0; expected.len()];
    stream.read_exact(&mut answer).expect("answered");
    assert_eq!(String::from_utf8_lossy(&answer), expected);
}

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
}

#[test]
fn it_listens_at_a_file_as_well() {
    let folder = folder("unix");
    let socket = folder.join("redis.sock");
    // A socket that a killed process has left is no hindrance.
    drop(std::os::unix::net::UnixListener::bind(&socket).expect("a socket"));
    let mut served = Served::start(&folder, &["--unixsocket", "redis.sock", "--unixsocketperm", "700"]);
    let mut line = String::new();
    served.out.read_line(&mut line).expect("it says where it listens");
    assert_eq!(line, "listening on redis.sock; try: redis-cli -s redis.sock\n");
    let mut stream = UnixStream::connect(&socket).expect("it listens");
    asks(&mut stream, "SET k v", "+OK\r\n");
    asks(&mut served.connect(), "GET k", "$1\r\nv\r\n");
    assert_eq!(fs::metadata(&socket).expect("it is there").permissions().mode() & 0o777, 0o700);
    served.signal(Signal::TERM);
    assert_eq!(stream.read(&mut [0; 16]).expect("an end"), 0);
    assert_eq!(served.ended().0, 0);
    assert!(!socket.exists(), "it is removed");
}

/// What SHA-256 makes of `secret`: users are written as they are known.
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
        "# mine\nrequirepass \"secret\"\nmaxmemory 10mb\nhz 50\n# Generated by CONFIG REWRITE\nbind 127.0.0.1\ndatabases 2\n\
         maxmemory-policy allkeys-lru\nport {port}\nuser default on #{SECRET} ~* &* +@all\n"
    );
    assert_eq!(fs::read_to_string(folder.join("redis.conf")).expect("a file"), expected);
    let entries = fs::read_dir(&folder).expect("a folder").count();
    assert_eq!(entries, 1, "nothing is left beside it");

    // A folder that is gone cannot be written to, and whoever asked is told.
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
        // Reports are wrapped where the line is full.
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
    // As many as the system lets this process have: each of the two has one end of every connection.
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
    // Half of them go; the rest does not notice.
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
    // Other tests run beside this one: the quickest of some starts is what it takes.
    let quickest = (0..20).map(|_| {
        #[expect(clippy::disallowed_methods, reason = "it measures a real start")]
        let began = Instant::now();
        let served = Served::start(&folder, &[]);
        asks(&mut served.connect(), "PING", "+PONG\r\n");
        began.elapsed()
    });
    let quickest = quickest.min().expect("some");
    // A build for tests is slower than one for use, which needs less than half of it.
    assert!(quickest.as_millis() < 25, "{quickest:?}");
}

/// Data of every type, in one database and another.
const WRITES: &[(&str, &str)] = &[
    ("SET text hello", "+OK\r\n"),
    ("SET number 12345 PX 100000000", "+OK\r\n"),
    ("RPUSH list a b 3", ":3\r\n"),
    ("SADD set x y z", ":3\r\n"),
    ("SADD integers 1 2 -70000", ":3\r\n"),
    ("HSET hash f 1 g two", ":2\r\n"),
    ("ZADD ranks 1.5 a -inf b", ":2\r\n"),
    ("XADD stream 1-1 f v", "$3\r\n1-1\r\n"),
    ("XGROUP CREATE stream g 0", "+OK\r\n"),
    ("SELECT 3", "+OK\r\n"),
    ("SET other 1", "+OK\r\n"),
    ("SELECT 0", "+OK\r\n"),
];

/// What DEBUG DIGEST answers: a hash of all that is there.
fn digest(stream: &mut (impl Read + Write)) -> String {
    stream.write_all(b"DEBUG DIGEST\r\n").expect("open");
    let mut answer = [0; 43];
    stream.read_exact(&mut answer).expect("answered");
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn data_is_kept_where_it_is_told_to() {
    let folder = folder("data");
    let start = || Served::start(&folder, &["--data", "."]);
    let served = start();
    let mut stream = served.connect();
    for (command, answer) in WRITES {
        asks(&mut stream, command, answer);
    }
    asks(&mut stream, "SAVE", "+OK\r\n");
    let saved = digest(&mut stream);
    drop(served);
    let served = start();
    let mut stream = served.connect();
    assert_eq!(digest(&mut stream), saved, "what was saved is there again");
    asks(&mut stream, "SET more 1", "+OK\r\n");
    let at_the_end = digest(&mut stream);
    served.signal(Signal::TERM);
    assert_eq!(served.ended().0, 0);
    let served = start();
    assert_eq!(digest(&mut served.connect()), at_the_end, "an orderly end saves");
    drop(served);

    // A folder that takes no file, and a file that is none.
    fs::remove_file(folder.join("dump.rdb")).expect("it was saved");
    fs::create_dir_all(folder.join("dump.rdb.dir")).expect("a folder");
    let served = Served::start(&folder, &["--data", ".", "--option", "dbfilename=dump.rdb.dir/none/x"]);
    asks(&mut served.connect(), "SAVE", "-ERR\r\n");
    drop(served);
    fs::write(folder.join("dump.rdb"), "nonsense").expect("a file");
    for arguments in
        [&["--data", "."][..], &["--data", "nowhere"], &["--data", ".", "--option", "appendonly=yes"]]
    {
        let refused = Command::new(env!("CARGO_BIN_EXE_lockstorm"))
            .args(["serve", "--port", "0"])
            .args(arguments)
            .current_dir(&folder)
            .output()
            .expect("the binary runs");
        assert!(!refused.status.success(), "{arguments:?}");
    }
    assert_eq!(fs::read(folder.join("dump.rdb")).expect("it is there"), b"nonsense");
}

/// A private `redis-server` on a folder, if there is one of the version whose format this is.
fn redis(folder: &Path) -> Option<Served> {
    let version = Command::new("redis-server").arg("--version").output().ok()?;
    if !String::from_utf8_lossy(&version.stdout).contains("v=7.0.") {
        return None;
    }
    for _ in 0..5 {
        let free = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let address = free.local_addr().expect("it is bound");
        drop(free);
        let mut child = Command::new("redis-server")
            .args(["--port", &address.port().to_string(), "--enable-debug-command", "yes", "--dir"])
            .arg(folder)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("redis-server runs");
        let out = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut served = Served { child, out, address };
        let mut line = String::new();
        while !line.contains("Ready to accept connections") {
            line.clear();
            // Somebody else may have taken the port.
            if served.out.read_line(&mut line).expect("a log") == 0 {
                break;
            }
        }
        if !line.is_empty() {
            return Some(served);
        }
    }
    panic!("redis-server does not start");
}

#[test]
fn a_real_server_reads_what_is_kept_and_the_other_way_round() {
    let folder = folder("data_of_both");
    let served = Served::start(&folder, &["--data", "."]);
    let mut stream = served.connect();
    for (command, answer) in WRITES {
        asks(&mut stream, command, answer);
    }
    for n in 0..500 {
        let long = "x".repeat(n);
        asks(&mut stream, &format!("SET long:{n} v{long}"), "+OK\r\n");
        asks(&mut stream, &format!("HSET large f{n} v{long}"), ":1\r\n");
        asks(&mut stream, &format!("ZADD larger {n}.5 m{n}"), ":1\r\n");
    }
    asks(&mut stream, "BGSAVE", "+Background saving started\r\n");
    let kept = digest(&mut stream);
    drop(served);
    let Some(real) = redis(&folder) else {
        eprintln!("no redis-server 7.0 on the PATH: nothing is compared with it");
        assert!(std::env::var_os("LOCKSTORM_REQUIRE_REDIS").is_none_or(|value| value != "1"));
        return;
    };
    let checked = Command::new("redis-check-rdb").arg(folder.join("dump.rdb")).output();
    if let Ok(checked) = checked {
        assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
    }
    let mut stream = real.connect();
    assert_eq!(digest(&mut stream), kept);
    asks(&mut stream, "LPUSH list more", ":4\r\n");
    asks(&mut stream, "SAVE", "+OK\r\n");
    let kept = digest(&mut stream);
    drop(real);
    let served = Served::start(&folder, &["--data", "."]);
    assert_eq!(digest(&mut served.connect()), kept);
}
