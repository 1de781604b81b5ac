//! A server under test, and the commands to it.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
    time::Duration,
};

use lockstorm_sim::generation::Generation;
use rustix::process::{Pid, Signal, kill_process};

#[path = "../../../tests/support/programs.rs"]
mod programs;

/// The generation of the `redis-server` on the PATH.
pub(crate) const INSTALLED: Generation = Generation::Redis70;

/// The time after which any reply or event counts as missing.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A separate folder for one test.
pub(crate) fn folder(test: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("serve_{test}"));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).expect("a folder for the test");
    path
}

/// A server; it is killed if the test ends without ending it.
pub(crate) struct Served {
    pub(crate) child: Child,
    pub(crate) out: BufReader<ChildStdout>,
    pub(crate) address: SocketAddr,
}

impl Served {
    pub(crate) fn start(folder: &Path, arguments: &[&str]) -> Served {
        let mut child = Command::new(env!("CARGO_BIN_EXE_lockstorm"))
            .args(["serve", "--port", "0", "--end-with-stdin"])
            .args(arguments)
            .current_dir(folder)
            .stdin(Stdio::piped())
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

    /// Starts a server of the generation of the `redis-server` beside which it is tried.
    pub(crate) fn beside(folder: &Path, arguments: &[&str]) -> Served {
        Served::start(folder, &[&["--as", INSTALLED.name()], arguments].concat())
    }

    pub(crate) fn connect(&self) -> TcpStream {
        #[expect(clippy::disallowed_methods, reason = "a client on the real network")]
        let stream = TcpStream::connect(self.address).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time-out can be set");
        stream
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).expect("a process id")).expect("not 0");
        kill_process(pid, signal).expect("it runs");
    }

    /// Waits until it has ended; returns its exit status and its log.
    pub(crate) fn ended(mut self) -> (i32, String) {
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

/// A private `redis-server` on a folder; `None` without one of [`INSTALLED`].
pub(crate) fn redis(folder: &Path, arguments: &[&str]) -> Option<Served> {
    let version = Command::new("redis-server").arg("--version").output().ok()?;
    if !String::from_utf8_lossy(&version.stdout).contains("v=7.0.") {
        return None;
    }
    let arguments = [&["--enable-debug-command", "yes"], arguments].concat();
    Some(start(Path::new("redis-server"), folder, &arguments))
}

/// The program of a generation's real server.
///
/// # Panics
/// If it is absent and `LOCKSTORM_REQUIRE_SERVERS=1` requires it.
pub(crate) fn program(generation: Generation) -> Option<PathBuf> {
    programs::program_of(generation.name())
}

/// Starts a real server program on a folder.
pub(crate) fn start(program: &Path, folder: &Path, arguments: &[&str]) -> Served {
    for _ in 0..5 {
        let free = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let address = free.local_addr().expect("it is bound");
        drop(free);
        let mut child = Command::new(program)
            .args(["--port", &address.port().to_string(), "--dir"])
            .arg(folder)
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the server runs");
        let out = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut served = Served { child, out, address };
        let mut line = String::new();
        while !line.contains("Ready to accept connections") {
            line.clear();
            // Another process may have taken the port.
            if served.out.read_line(&mut line).expect("a log") == 0 {
                break;
            }
        }
        if !line.is_empty() {
            return served;
        }
    }
    panic!("{} does not start", program.display());
}

pub(crate) fn nothing_to_compare_with() {
    eprintln!("no redis-server 7.0 on the PATH: nothing is compared with it");
    assert!(std::env::var_os("LOCKSTORM_REQUIRE_REDIS").is_none_or(|value| value != "1"));
}

/// Sends a command on a connection that then ends, and returns its reply as it comes.
pub(crate) fn call(stream: &mut TcpStream, words: &[&str]) -> String {
    let mut bytes = format!("*{}\r\n", words.len());
    words.iter().for_each(|word| bytes.push_str(&format!("${}\r\n{word}\r\n", word.len())));
    stream.write_all(format!("{bytes}QUIT\r\n").as_bytes()).expect("open");
    let mut reply = String::new();
    stream.read_to_string(&mut reply).expect("answered");
    reply.strip_suffix("+OK\r\n").expect("the reply to QUIT").to_owned()
}

#[track_caller]
pub(crate) fn asks(stream: &mut (impl Read + Write), command: &str, expected: &str) {
    stream.write_all(format!("{command}\r\n").as_bytes()).expect("open");
    gets(stream, expected);
}

#[track_caller]
pub(crate) fn gets(stream: &mut impl Read, expected: &str) {
    let mut answer = vec![0; expected.len()];
    stream.read_exact(&mut answer).expect("answered");
    assert_eq!(String::from_utf8_lossy(&answer), expected);
}
