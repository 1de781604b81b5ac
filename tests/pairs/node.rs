//! A node of a pair, simulated or real, and commands to it.

use std::{net::SocketAddr, time::Duration};

use lockstorm_lab::support::redis::RedisServer;
use lockstorm_sim::{TestServer, config::Config, generation::Generation};
use redis::{Connection, ConnectionLike as _, Value};

/// Interval and limit of polls: real servers react in their own time.
const POLL: Duration = Duration::from_millis(20);
const POLLS_MAX: usize = 500;

/// The server of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Simulated,
    Real,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Simulated => "sim",
            Kind::Real => "real",
        }
    }
}

#[expect(dead_code, reason = "a server lives as long as its node")]
enum Server {
    Simulated(TestServer),
    Real(RedisServer),
}

/// A node on a loopback port, without data.
pub(crate) struct Node {
    _server: Server,
    address: SocketAddr,
    connection: Connection,
}

impl Node {
    pub(crate) fn start(kind: Kind) -> Node {
        let (server, address) = match kind {
            Kind::Simulated => {
                let of = Config::of(Generation::Redis70);
                let config = of.with(|config| {
                    config.replication.diskless_sync_delay = 0;
                    config.persistence.save = Vec::new();
                });
                let server = TestServer::builder().config(config).start_blocking().expect("a free port");
                let address = server.address();
                (Server::Simulated(server), address)
            }
            Kind::Real => {
                let server = RedisServer::start(&["--repl-diskless-sync-delay", "0"]);
                let address = server.address;
                (Server::Real(server), address)
            }
        };
        Node { _server: server, address, connection: connect(address) }
    }

    pub(crate) fn host(&self) -> String {
        self.address.ip().to_string()
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// Opens another connection.
    pub(crate) fn connect(&self) -> Connection {
        connect(self.address)
    }

    /// The reply to a command line whose words are separated by blanks; an error is its text.
    pub(crate) fn ask(&mut self, line: &str) -> String {
        ask(&mut self.connection, line)
    }

    /// The reply to a command of these words.
    pub(crate) fn ask_words(&mut self, words: &[&str]) -> String {
        ask_words(&mut self.connection, words)
    }

    /// Returns true if the node accepts connections on a port.
    pub(crate) fn accepts(&self, port: u16) -> bool {
        let client = redis::Client::open(format!("redis://{}:{port}", self.host())).expect("a URL");
        client.get_connection().is_ok_and(|mut connection| ask(&mut connection, "PING") == "PONG")
    }

    /// The value of a line of INFO.
    pub(crate) fn info(&mut self, name: &str) -> String {
        let text: String = redis::cmd("INFO").query(&mut self.connection).expect("INFO is answered");
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.unwrap_or_else(|| panic!("INFO has {name}")).to_owned()
    }

    /// Makes the node a replica of another, and waits until it is linked.
    pub(crate) fn follow(&mut self, master: &Node) {
        assert_eq!(self.ask(&format!("REPLICAOF {} {}", master.host(), master.port())), "OK");
        self.until_linked();
    }

    /// Waits until the link to the master is up.
    pub(crate) fn until_linked(&mut self) {
        until("the link stands", || self.ask("ROLE").contains("connected"));
    }

    /// Blocks the node for `seconds`; returns once that has begun.
    pub(crate) fn sleep(&self, seconds: f64) {
        let mut command = redis::cmd("DEBUG");
        command.arg("SLEEP").arg(seconds);
        self.connect().send_packed_command(&command.get_packed_command()).expect("it is sent");
        pause(Duration::from_millis(100));
    }
}

fn connect(address: SocketAddr) -> Connection {
    let client = redis::Client::open(format!("redis://{address}")).expect("a URL");
    client.get_connection().expect("the server accepts connections")
}

/// The reply to a command line on a connection.
pub(crate) fn ask(connection: &mut Connection, line: &str) -> String {
    ask_words(connection, &line.split(' ').collect::<Vec<_>>())
}

fn ask_words(connection: &mut Connection, words: &[&str]) -> String {
    let mut command = redis::Cmd::new();
    command.arg(words);
    match connection.req_command(&command) {
        Ok(Value::Okay) => "OK".into(),
        Ok(Value::Int(number)) => number.to_string(),
        Ok(Value::BulkString(bytes)) => String::from_utf8_lossy(&bytes).into_owned(),
        Ok(Value::SimpleString(text)) => text,
        Ok(Value::Nil) => "nil".into(),
        Ok(other) => format!("{other:?}"),
        Err(error) => error.to_string(),
    }
}

pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..POLLS_MAX {
        if holds() {
            return;
        }
        pause(POLL);
    }
    panic!("in vain: {what}");
}

#[expect(clippy::disallowed_methods, reason = "a real process is waited for in real time")]
pub(crate) fn pause(time: Duration) {
    std::thread::sleep(time);
}
