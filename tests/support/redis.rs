//! Private `redis-server` processes on free loopback ports, for suites that compare with a real
//! server.

use std::{
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::LazyLock,
    time::Duration,
};

/// The version whose behaviour is the reference.
const VERSION: &str = "v=7.0.";

/// The result of the search for a real Redis on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Availability {
    /// `redis-server` of the right version is on the PATH.
    Present,
    /// It is absent, and comparing is optional. Contains one line that says so.
    Absent(String),
    /// It is absent, and `LOCKSTORM_REQUIRE_REDIS=1` requires it: the suite must fail with this
    /// line.
    Missing(String),
}

/// Looks for `redis-server`, once per process.
pub fn availability() -> Availability {
    static FOUND: LazyLock<Result<(), String>> =
        LazyLock::new(|| match Command::new("redis-server").arg("--version").output() {
            Err(_) => Err("no redis-server on the PATH".into()),
            Ok(output) => {
                let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
                if version.contains(VERSION) {
                    Ok(())
                } else {
                    Err(format!("redis-server is not 7.0: {version}"))
                }
            }
        });
    match &*FOUND {
        Ok(()) => Availability::Present,
        Err(why) if std::env::var_os("LOCKSTORM_REQUIRE_REDIS").is_some_and(|value| value == "1") => {
            Availability::Missing(format!("{why}, and LOCKSTORM_REQUIRE_REDIS=1"))
        }
        Err(why) => Availability::Absent(format!("{why}: nothing is compared with a real Redis")),
    }
}

/// The highest port of a cluster node, whose bus port is 10,000 higher.
const PORT_MAX: u16 = u16::MAX - 10_000;

/// Puts files into a server's directory before its start.
type Prepare<'a> = dyn Fn(&Path) -> std::io::Result<()> + 'a;

/// A private server in an empty directory, without persistence. Dropping it kills the
/// server.
#[derive(Debug)]
pub struct RedisServer {
    child: Child,
    /// The loopback address at which it listens.
    pub address: SocketAddr,
    directory: PathBuf,
}

impl RedisServer {
    /// Starts a server with further options, such as `["--appendonly", "yes"]`, and waits until it
    /// answers.
    ///
    /// # Panics
    /// If the server cannot be started: the caller must ask [`availability`] before.
    pub fn start(options: &[&str]) -> RedisServer {
        RedisServer::start_in(options, |_| Ok(()))
    }

    /// Starts another server program than the reference.
    ///
    /// # Panics
    /// If the server cannot be started.
    pub fn start_program(program: &Path, options: &[&str]) -> RedisServer {
        RedisServer::start_as(program, options, &|_| Ok(()))
    }

    /// Starts a server in a directory into which `prepare` has put files.
    ///
    /// # Panics
    /// If the server cannot be started.
    pub fn start_in(options: &[&str], prepare: impl Fn(&Path) -> std::io::Result<()>) -> RedisServer {
        let options = [&["--enable-debug-command", "yes"], options].concat();
        RedisServer::start_as(Path::new("redis-server"), &options, &prepare)
    }

    fn start_as(program: &Path, options: &[&str], prepare: &Prepare<'_>) -> RedisServer {
        // Another process may take the free port before redis-server listens on it: then
        // redis-server exits.
        let mut problem = String::new();
        for _ in 0..20 {
            match RedisServer::try_start(program, options, prepare) {
                Ok(server) => return server,
                Err(why) => problem = why,
            }
        }
        panic!("redis-server does not start: {problem}");
    }

    fn try_start(program: &Path, options: &[&str], prepare: &Prepare<'_>) -> Result<RedisServer, String> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|error| error.to_string())?;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        drop(listener);
        if address.port() > PORT_MAX {
            return Err(format!("port {address} is too high for a cluster"));
        }
        let name = format!("lockstorm-redis-{}-{}", std::process::id(), address.port());
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
        prepare(&directory).map_err(|error| error.to_string())?;
        let child = Command::new(program)
            .args(["--port", &address.port().to_string(), "--bind", "127.0.0.1"])
            .args(["--save", "", "--appendonly", "no"])
            .args(options)
            .current_dir(&directory)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| error.to_string())?;
        let mut server = RedisServer { child, address, directory };
        for _ in 0..500 {
            if let Ok(Some(status)) = server.child.try_wait() {
                return Err(format!("it exited with {status}"));
            }
            if server.answers() {
                return Ok(server);
            }
            #[expect(clippy::disallowed_methods, reason = "a real process is waited for in real time")]
            std::thread::sleep(Duration::from_millis(10));
        }
        Err("it does not answer".into())
    }

    fn answers(&self) -> bool {
        let Ok(mut stream) = self.connect() else { return false };
        let mut first = [0u8; 1];
        // Any reply counts: with `requirepass` it is an error.
        stream.write_all(b"PING\r\n").is_ok() && stream.read_exact(&mut first).is_ok()
    }

    /// Opens a connection to the server.
    ///
    /// # Errors
    /// The server does not accept it.
    pub fn connect(&self) -> std::io::Result<TcpStream> {
        #[expect(clippy::disallowed_methods, reason = "the bridge of the suites to a real server")]
        let stream = TcpStream::connect(self.address)?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    /// Keeps the server from saving snapshots, like a full disk, or permits them again.
    ///
    /// # Panics
    /// If the server's directory cannot be changed.
    pub fn block_snapshots(&self, block: bool) {
        // A file cannot replace a directory that is not empty.
        let file = self.directory.join("dump.rdb");
        let kept = self.directory.join("kept.rdb");
        // Without a snapshot the rename fails, and nothing needs to be kept.
        if block {
            drop(std::fs::rename(&file, &kept));
            std::fs::create_dir_all(file.join("full")).expect("the directory of the server can be changed");
        } else {
            std::fs::remove_dir_all(&file).expect("what was made is there");
            drop(std::fs::rename(&kept, &file));
        }
    }

    /// The process ID, for tests that pause or kill the server.
    pub fn process_id(&self) -> u32 {
        self.child.id()
    }

    /// The URL for Redis clients.
    pub fn url(&self) -> String {
        format!("redis://{}", self.address)
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        // A failure here has no remedy and no consequence.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}
