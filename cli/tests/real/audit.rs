//! `lockstorm audit` of a real server.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    process::{Child, Command, Stdio},
};

use super::server::{Folder, SERVERS, redis};

/// The highest port of a node of a cluster: its bus has a port that is 10000 higher.
const PORT_MAX: u16 = 55_535;

/// A real server, which ends with the test.
pub(super) struct Live {
    process: Child,
    pub(super) port: u16,
}

impl Drop for Live {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Live {
    /// Starts a server with these arguments after its port.
    pub(super) fn new(arguments: &[&str]) -> Live {
        let program = &SERVERS.as_ref().expect("a server").default().program;
        let free =
            || TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").port();
        let port = std::iter::repeat_with(free).find(|port| *port <= PORT_MAX).expect("there is one");
        let mut command = Command::new(program);
        command.args(arguments).args(["--port", &port.to_string()]);
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it runs");
        let live = Live { process, port };
        while live.dial().is_err() {
            live.wait(20);
        }
        live
    }

    #[expect(clippy::disallowed_methods, reason = "a client on the real network")]
    fn dial(&self) -> std::io::Result<TcpStream> {
        TcpStream::connect(("127.0.0.1", self.port))
    }

    #[expect(clippy::disallowed_methods, clippy::unused_self, reason = "a real server needs real time")]
    pub(super) fn wait(&self, ms: u64) {
        std::thread::sleep(std::time::Duration::from_millis(ms));
    }

    /// Runs a command, and returns its reply: a line, or the text of a bulk string.
    pub(super) fn run(&self, command: &str) -> String {
        let mut stream = self.dial().expect("it answers");
        stream.write_all(format!("{command}\r\n").as_bytes()).expect("it reads");
        let (mut reader, mut line) = (BufReader::new(stream), String::new());
        reader.read_line(&mut line).expect("a reply");
        let len = line.trim().strip_prefix('$').and_then(|len| len.parse::<u64>().ok());
        if let Some(len) = len {
            line.clear();
            reader.take(len).read_to_string(&mut line).expect("text");
        }
        line.trim().to_owned()
    }

    /// Returns once a gentle audit is subscribed to the events of this server.
    pub(super) fn is_subscribed_to(&self) {
        let is_its = |line: &str| line.contains("lockstorm-audit") && line.contains("psub=1");
        while !self.run("CLIENT LIST").lines().any(is_its) {
            self.wait(20);
        }
    }

    fn audit(&self, login: &str, arguments: &[&str]) -> Child {
        let url = format!("redis://{login}127.0.0.1:{}", self.port);
        audit(&[&[url.as_str(), "--gentle"], arguments].concat())
    }
}

pub(super) fn audit(arguments: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lockstorm"));
    command.arg("audit").args(arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary runs")
}

/// The rights of the book's chapter are those that a gentle audit needs.
#[test]
fn a_gentle_audit_finds_what_events_and_reads_prove_with_the_rights_of_the_book() {
    if !redis() {
        return;
    }
    let live = Live::new(&["--save", "", "--notify-keyspace-events", "Kg$hxe"]);
    let rights = "on >secret resetkeys ~orders:* resetchannels &__keyspace@*__:orders:* -@all +client|setname \
                  +config|get +psubscribe +info +scan +type +pttl +getrange +hrandfield +select";
    assert_eq!(live.run(&format!("ACL SETUSER auditor {rights}")), "+OK");
    live.run("SET orders:old before");
    let arguments = ["--lock", "orders:*", "--poll", "100ms", "--for", "8s", "--json"];
    let audit = live.audit("auditor:secret@", &arguments);
    live.is_subscribed_to();
    live.run("SET orders:a one NX PX 30000");
    live.run("SET orders:short brief PX 400");
    live.run("SET other value PX 400");
    live.wait(600);
    live.run("PEXPIRE orders:a 30000");
    live.wait(300);
    live.run("SET orders:a two PX 30000");
    live.wait(300);
    live.run("SET orders:e evil");
    live.run("DEL orders:e");
    live.wait(1500);
    live.run("FLUSHALL");
    live.run("SET orders:a three PX 30000");
    let output = audit.wait_with_output().expect("it ends");
    let (text, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{text}{error}");
    let json: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    let kinds = |list: &str| -> Vec<String> {
        let list = json[list].as_array().expect("a list").iter();
        let word = |one: &serde_json::Value, name: &str| one[name].as_str().unwrap_or("").to_owned();
        let mut kinds: Vec<String> =
            list.map(|one| format!("{} {}", word(one, "kind"), word(one, "lock"))).collect();
        kinds.sort();
        kinds
    };
    let findings = ["flushed orders:a", "flushed orders:old", "no-expiry orders:old", "overwritten orders:a"];
    assert_eq!(kinds("findings"), findings, "{text}");
    assert_eq!(kinds("notices"), ["lease-ended orders:short"], "{text}");
    assert!(!text.contains("\"other\"") && !text.contains("\"two\""), "{text}");
    let locks = json["locks"].as_array().expect("a list");
    let a = locks.iter().find(|row| row["lock"] == "orders:a").expect("it is followed");
    assert_eq!((a["grants"].as_u64(), a["renewals"].as_u64()), (Some(3), Some(1)), "{a}");
    assert!(a["left_ms"].as_i64().is_some_and(|left| left > 20_000), "{a}");
    assert_eq!(live.run("ACL LOG"), "*0", "it was refused nothing");
    assert!(!live.run("CLIENT LIST").contains("lockstorm-audit"));
}

#[test]
fn a_gentle_audit_says_which_events_a_server_lacks_and_sets_nothing() {
    if !redis() {
        return;
    }
    let live = Live::new(&["--save", "", "--notify-keyspace-events", "Kx"]);
    let output = live.audit("", &["--for", "5s"]).wait_with_output().expect("it ends");
    let error = String::from_utf8_lossy(&output.stderr).replace(['\n', '│'], " ");
    assert_eq!(output.status.code(), Some(64), "{error}");
    // A long message is broken, also within a word.
    let error = error.split_whitespace().collect::<String>();
    assert!(error.contains("CONFIGSETnotify-keyspace-eventsKg$hxe"), "{error}");
    assert!(live.run("INFO commandstats").lines().all(|line| !line.starts_with("cmdstat_config|set")));
}

/// Sentinels make a former master a replica some seconds after its successor. Until then it grants
/// locks to the clients that are connected to it.
#[test]
fn a_former_master_is_followed_while_clients_use_it() {
    if !redis() {
        return;
    }
    let folder = Folder::new("former-master");
    let dir = folder.path();
    let old = Live::new(&["--save", "", "--dir", &dir]);
    let new = Live::new(&["--save", "", "--dir", &dir, "--replicaof", "127.0.0.1", &old.port.to_string()]);
    let file = format!("{dir}/sentinel.conf");
    std::fs::write(&file, format!("sentinel monitor m 127.0.0.1 {} 1\n", old.port)).expect("written");
    let sentinel = Live::new(&[&file, "--sentinel"]);
    let url = format!("redis+sentinel://127.0.0.1:{}/m", sentinel.port);
    let audit = audit(&[&url, "--for", "25s"]);
    while !old.run("CLIENT LIST").contains("lockstorm-audit") {
        old.wait(20);
    }
    while sentinel.run("SENTINEL FAILOVER m") != "+OK" {
        sentinel.wait(200);
    }
    while !new.run("CLIENT LIST").contains("lockstorm-audit") {
        new.wait(20);
    }
    for _ in 0..20 {
        old.run("SET lock:a token NX PX 5000");
        old.run("DEL lock:a");
        old.wait(50);
    }
    let output = audit.wait_with_output().expect("it ends");
    let text = String::from_utf8_lossy(&output.stdout);
    let (old, new) = (format!("127.0.0.1:{}", old.port), format!("127.0.0.1:{}", new.port));
    for part in [
        format!("{old} is followed"),
        format!("{old} is no master any more"),
        format!("{new} took the place of {old}"),
        format!("{old} still runs commands of clients on locks"),
    ] {
        assert!(text.contains(&part), "{part} is not in\n{text}");
    }
}
