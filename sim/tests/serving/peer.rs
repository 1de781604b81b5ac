//! A client without a library, so that a test sees the bytes.

use std::{
    io::{ErrorKind, Read, Write},
    net::TcpStream,
    time::Duration,
};

use lockstorm_sim::TestServer;

/// Time after which a reply counts as missing.
const PATIENCE: Duration = Duration::from_secs(20);

/// One connection.
pub(crate) struct Peer {
    pub(crate) stream: TcpStream,
}

impl Peer {
    #[expect(clippy::disallowed_methods, reason = "a client on the real network")]
    pub(crate) fn connect(server: &TestServer) -> Peer {
        let stream = TcpStream::connect(server.address()).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time-out can be set");
        Peer { stream }
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).expect("open");
    }

    /// Sends an inline command, and asserts that the reply begins with `expected`.
    #[track_caller]
    pub(crate) fn asks(&mut self, command: &str, expected: &str) {
        self.send(format!("{command}\r\n"));
        self.gets(expected);
    }

    /// Asserts that the next bytes are these.
    #[track_caller]
    pub(crate) fn gets(&mut self, expected: &str) {
        let mut answer = vec![0; expected.len()];
        self.stream.read_exact(&mut answer).expect("answered");
        assert_eq!(String::from_utf8_lossy(&answer), expected);
    }

    /// Sends an inline command and reads one line.
    pub(crate) fn line(&mut self, command: &str) -> String {
        self.send(format!("{command}\r\n"));
        let (mut line, mut byte) = (String::new(), [0]);
        while !line.ends_with("\r\n") {
            self.stream.read_exact(&mut byte).expect("answered");
            line.push(char::from(byte[0]));
        }
        line
    }

    /// Sends an inline command and reads a bulk string.
    pub(crate) fn text(&mut self, command: &str) -> String {
        let head = self.line(command);
        let length = head.trim_end().strip_prefix('$').and_then(|digits| digits.parse::<usize>().ok());
        let mut text = vec![0; length.expect("a bulk string") + 2];
        self.stream.read_exact(&mut text).expect("answered");
        String::from_utf8_lossy(&text).into_owned()
    }

    /// The value of a field of INFO.
    pub(crate) fn info(&mut self, section: &str, field: &str) -> String {
        let text = self.text(&format!("INFO {section}"));
        let line = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        line.unwrap_or_else(|| panic!("no {field} in {text}")).to_owned()
    }

    /// The number of calls of a command.
    pub(crate) fn calls(&mut self, command: &str) -> u64 {
        let text = self.text("INFO commandstats");
        // A command without calls has no line.
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{command}:calls=")));
        line.map_or(0, |line| line.split(',').next().expect("a first").parse().expect("a number"))
    }

    /// Polls a field of INFO until it has this value.
    #[track_caller]
    pub(crate) fn awaits(&mut self, section: &str, field: &str, expected: &str) {
        for _ in 0..1000 {
            if self.info(section, field) == expected {
                return;
            }
            #[expect(clippy::disallowed_methods, reason = "a real server comes round in its own time")]
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(self.info(section, field), expected, "{field}");
    }

    /// Reads everything until the server closes the connection; fails if it does not.
    #[track_caller]
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        let (mut all, mut chunk) = (Vec::new(), vec![0; 1 << 16]);
        loop {
            match self.stream.read(&mut chunk) {
                Ok(0) => return all,
                Ok(length) => all.extend_from_slice(&chunk[..length]),
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return all,
                Err(error) => panic!("the server does not hang up: {error}"),
            }
        }
    }
}
