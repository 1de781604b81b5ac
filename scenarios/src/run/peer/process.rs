//! A peer's process. It forms a process group with all its children, which is stopped, continued
//! and killed as one. Dropping it kills the group.

use std::{
    fs::{self, File},
    io::{self, Read},
    os::{fd::OwnedFd, unix::process::CommandExt},
    path::PathBuf,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    io::AsyncReadExt,
    net::unix::pipe::{Receiver, Sender},
};

use super::{Hello, protocol::LINE_MAX};

/// The longest time until a process's first line. It allows for a Java virtual machine on a busy
/// machine.
const HELLO_MAX: Duration = Duration::from_secs(60);

/// The pause between two looks for the first line.
const AGAIN: Duration = Duration::from_millis(2);

/// The number of first and of last lines shown of a process that has ended. Some languages print
/// the error before the trace, others after it.
const WORDS: usize = 6;

/// A running peer.
#[derive(Debug)]
pub(crate) struct PeerProcess {
    child: Child,
    command: String,
    log: PathBuf,
}

/// Both ends of the conversation, until a host of the world takes them over.
#[derive(Debug)]
pub(crate) struct Pipes {
    input: ChildStdin,
    output: ChildStdout,
    lines: Lines,
}

/// Numbers the log files of one lockstorm process.
static STARTED: AtomicU64 = AtomicU64::new(0);

impl PeerProcess {
    /// Starts a process by a command, as a shell reads it.
    ///
    /// # Errors
    /// Fails if there is no shell, or no room for a log.
    pub(crate) fn start(command: &str) -> io::Result<(PeerProcess, Pipes)> {
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let log = std::env::temp_dir().join(format!("lockstorm-{}-peer-{number}.log", std::process::id()));
        let complains = File::create(&log)?;
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(command).process_group(0);
        let spawned = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(complains).spawn();
        let mut child = spawned.inspect_err(|_| drop(fs::remove_file(&log)))?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let process = PeerProcess { child, command: command.to_owned(), log };
        let (Some(input), Some(output)) = (input, output) else {
            return Err(io::Error::other("a process without pipes"));
        };
        rustix::io::ioctl_fionbio(&input, true)?;
        rustix::io::ioctl_fionbio(&output, true)?;
        Ok((process, Pipes { input, output, lines: Lines::default() }))
    }

    /// Stops the group (SIGSTOP), or continues it (SIGCONT).
    pub(crate) fn hold(&self, stopped: bool) {
        self.signal(if stopped { Signal::STOP } else { Signal::CONT });
    }

    /// Returns the first and last lines of its standard error.
    pub(crate) fn last_words(&self) -> String {
        let log = fs::read(&self.log).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let words = match lines.len().checked_sub(2 * WORDS) {
            Some(1..) => [&lines[..WORDS], &["..."], &lines[lines.len() - WORDS..]].concat().join("; "),
            _ => lines.join("; "),
        };
        format!("`{}` has ended: {}", self.command, if words.is_empty() { "it said nothing" } else { &words })
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            // A group that has just ended needs no signal.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for PeerProcess {
    fn drop(&mut self) {
        // SIGKILL also ends stopped processes.
        self.signal(Signal::KILL);
        let _ = self.child.wait();
        let _ = fs::remove_file(&self.log);
    }
}

impl Pipes {
    /// Waits for the first line, and parses it.
    ///
    /// # Errors
    /// A message about the invalid line, the end of the process or the timeout.
    #[expect(clippy::disallowed_methods, reason = "a process that starts, before any time of a run passes")]
    pub(crate) fn hello(&mut self, process: &PeerProcess) -> Result<Hello, String> {
        let (begun, mut buffer) = (Instant::now(), [0; 4096]);
        let line = loop {
            if let Some(line) = self.lines.next().map_err(|error| error.to_string())? {
                break line;
            }
            match self.output.read(&mut buffer) {
                Ok(0) => return Err(process.last_words()),
                Ok(count) => self.lines.feed(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if begun.elapsed() > HELLO_MAX {
                        return Err(format!("`{}` said no hello within {HELLO_MAX:?}", process.command));
                    }
                    std::thread::sleep(AGAIN);
                }
                Err(error) => return Err(format!("`{}`: {error}", process.command)),
            }
        };
        Hello::parse(&line).map_err(|problem| format!("`{}`: {problem}: {line}", process.command))
    }

    /// Converts the pipes for code in a world of real time.
    ///
    /// # Errors
    /// Fails if the pipes cannot be polled.
    pub(crate) fn open(self) -> io::Result<(Sender, Reader)> {
        let Pipes { input, output, lines } = self;
        let input = Sender::from_owned_fd_unchecked(OwnedFd::from(input))?;
        let output = Receiver::from_owned_fd_unchecked(OwnedFd::from(output))?;
        Ok((input, Reader { output, lines }))
    }
}

/// Reads a peer's messages, line by line.
#[derive(Debug)]
pub(crate) struct Reader {
    output: Receiver,
    lines: Lines,
}

impl Reader {
    /// Returns the next line, or `None` at the end of the output.
    ///
    /// # Errors
    /// Fails if a line is too long, or the output cannot be read.
    pub(crate) async fn next(&mut self) -> io::Result<Option<String>> {
        let mut buffer = [0; 4096];
        loop {
            if let Some(line) = self.lines.next()? {
                return Ok(Some(line));
            }
            match self.output.read(&mut buffer).await? {
                0 => return Ok(None),
                count => self.lines.feed(&buffer[..count]),
            }
        }
    }
}

/// Splits bytes into lines.
#[derive(Debug, Default)]
struct Lines(Vec<u8>);

impl Lines {
    fn feed(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// Returns the next complete line that is not empty.
    fn next(&mut self) -> io::Result<Option<String>> {
        while let Some(end) = self.0.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.0.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line).trim().to_owned();
            if !line.is_empty() {
                return Ok(Some(line));
            }
        }
        if self.0.len() > LINE_MAX {
            let why = format!("a line is longer than {LINE_MAX} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELLO: &str = r#"{"type":"hello","protocol":1,"library":"none"}"#;

    #[test]
    fn what_is_no_peer_is_told() {
        let rows = [
            ("exit 3", "it said nothing"),
            ("echo no such module >&2; exit 1", "no such module"),
            ("echo ready; cat", "its first line is no hello"),
            (r#"echo '{"type":"lost","hold":1}'; cat"#, "its first line is no hello"),
            (r#"echo '{"type":"hello","protocol":2,"library":"x"}'; cat"#, "version 2"),
            (r#"echo '{"type":"hello","protocol":1,"library":"x","key":"k"}'; cat"#, "no {}"),
            ("yes | tr -d '\\n' | head -c 100000; cat", "longer than"),
        ];
        for (command, part) in rows {
            let (process, mut pipes) = PeerProcess::start(command).expect("there is a shell");
            let said = pipes.hello(&process).expect_err(command);
            assert!(said.contains(part), "{command}: {said}");
        }
    }

    /// A peer's child process ends with its shell.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "processes end in real time")]
    fn no_process_is_left() {
        let command = format!("sleep 1000 & echo $! >&2; echo '{HELLO}'; wait");
        let (process, mut pipes) = PeerProcess::start(&command).expect("there is a shell");
        let hello = pipes.hello(&process).expect("it says so");
        assert_eq!((hello.library.as_str(), hello.key.as_str()), ("none", "{}"));
        process.hold(true);
        let told = fs::read_to_string(&process.log).expect("it has a log");
        let sleeper = told.trim().parse().ok().and_then(Pid::from_raw).expect("it told its id");
        drop(process);
        // A zombie counts as ended: it exists only until its parent has collected it.
        let stat = format!("/proc/{}/stat", sleeper.as_raw_nonzero());
        let state = || fs::read_to_string(&stat).unwrap_or_default();
        let (begun, limit) = (Instant::now(), Duration::from_secs(30));
        // A signal takes effect when the process gets a processor.
        while !state().is_empty() && !state().contains(") Z ") {
            assert!(begun.elapsed() < limit, "{}", state());
            std::thread::sleep(AGAIN);
        }
    }
}
