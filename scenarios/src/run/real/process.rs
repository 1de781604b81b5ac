//! A private server: a process on a free loopback port with its own directory. Dropping it
//! kills the process and removes the directory.

use std::{
    fs::{self, File},
    io::{self, Read, Write},
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

use super::interrupted;

/// The difference between a node's port for the bus of its cluster and its port for clients.
pub(super) const BUS_APART: u16 = 10_000;

/// The most ports of which the port of a bus above it may be taken.
const PORTS_MAX: usize = 100;

/// The parts of a node that outlive its process: its port and its directory.
#[derive(Debug)]
pub(super) struct Home {
    pub(super) address: SocketAddr,
    directory: PathBuf,
}

impl Home {
    /// Chooses a free port of the loopback address and makes an empty directory.
    pub(super) fn new(node: &str) -> io::Result<Home> {
        Home::at(node, Ipv4Addr::LOCALHOST.into(), false)
    }

    /// Chooses a free port of an address and makes an empty directory. A node of a cluster also
    /// needs the port of its bus, [`BUS_APART`] above.
    pub(super) fn at(node: &str, ip: IpAddr, has_bus: bool) -> io::Result<Home> {
        let mut tries = 0;
        // Another process may take the port before the server listens on it. Then the server logs
        // that and exits.
        let address = loop {
            let address = TcpListener::bind((ip, 0))?.local_addr()?;
            let bus = address.port().checked_add(BUS_APART);
            if !has_bus || bus.is_some_and(|bus| TcpListener::bind((ip, bus)).is_ok()) {
                break address;
            }
            tries += 1;
            if tries == PORTS_MAX {
                return Err(io::ErrorKind::AddrInUse.into());
            }
        };
        let name = format!("lockstorm-{}-{}-{node}", std::process::id(), address.port());
        let directory = std::env::temp_dir().join(name);
        fs::create_dir_all(&directory)?;
        Ok(Home { address, directory })
    }

    /// Returns the text of a file in the directory, if there is one.
    pub(super) fn text(&self, file: &str) -> Option<String> {
        fs::read_to_string(self.directory.join(file)).ok()
    }

    /// Writes a file in the directory, unless an earlier life of the process has it already.
    pub(super) fn begin_file(&self, file: &str, text: &str) -> io::Result<()> {
        let path = self.directory.join(file);
        if path.exists() { Ok(()) } else { fs::write(path, text) }
    }

    /// Waits until the server answers or has ended, at most for `limit`.
    #[expect(
        clippy::disallowed_methods,
        reason = "a server tells nobody that it is up, and no time of the run passes before"
    )]
    pub(super) fn answers_within(&self, limit: Duration, has_ended: impl Fn() -> bool) {
        let (begins, pause) = (Instant::now(), Duration::from_millis(5));
        while !self.answers() && !has_ended() && !interrupted() && begins.elapsed() < limit {
            std::thread::sleep(pause);
        }
    }

    /// Returns true if the server answers PING, and not with an error that it is loading its data.
    #[expect(clippy::disallowed_methods, reason = "the world that connections go through has not begun")]
    fn answers(&self) -> bool {
        let answered = || -> io::Result<bool> {
            let mut stream = TcpStream::connect(self.address)?;
            stream.set_read_timeout(Some(Duration::from_secs(1)))?;
            stream.write_all(b"PING\r\n")?;
            let mut answer = [0; 5];
            stream.read_exact(&mut answer)?;
            Ok(answer == *b"+PONG")
        };
        answered().unwrap_or(false)
    }

    /// Returns the last line of the server's log.
    pub(super) fn last_words(&self) -> String {
        let log = fs::read_to_string(self.directory.join("log")).unwrap_or_default();
        log.lines().last().unwrap_or("it said nothing").to_owned()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // Nothing depends on the removal, and no caller could receive an error.
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// A running server. Dropping it kills the process.
#[derive(Debug)]
pub(super) struct Process(Child);

impl Process {
    /// Starts a server with these arguments in its directory.
    pub(super) fn start(program: &Path, home: &Home, arguments: &[String]) -> io::Result<Process> {
        let log = File::create(home.directory.join("log"))?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(&home.directory)
            .stdin(Stdio::null())
            .stderr(log.try_clone()?)
            .stdout(log);
        Ok(Process(command.spawn()?))
    }

    /// Returns the process's number.
    pub(super) fn id(&self) -> u32 {
        self.0.id()
    }

    /// Returns true if the process has ended by itself.
    pub(super) fn has_ended(&mut self) -> bool {
        !matches!(self.0.try_wait(), Ok(None))
    }

    /// Stops the process (SIGSTOP), or continues it (SIGCONT).
    pub(super) fn hold(&self, stopped: bool) {
        let signal = if stopped { Signal::STOP } else { Signal::CONT };
        if let Some(pid) = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw) {
            // A process that has just ended needs no signal.
            let _ = kill_process(pid, signal);
        }
    }
}

/// Returns the arguments of a server on this address with these options and users, each split into
/// words as in a configuration file.
pub(super) fn arguments(
    address: SocketAddr,
    options: &[(String, String)],
    users: &[Vec<String>],
) -> Vec<String> {
    let own = ["--bind", &address.ip().to_string(), "--port", &address.port().to_string()];
    let mut arguments = own.map(str::to_owned).to_vec();
    for (name, value) in options {
        arguments.extend([format!("--{name}"), value.clone()]);
    }
    for words in users {
        arguments.push("--user".to_owned());
        arguments.extend(words.iter().cloned());
    }
    arguments
}

impl Drop for Process {
    fn drop(&mut self) {
        // SIGKILL also ends a stopped process. Wait for its end, so that its port is free again.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
