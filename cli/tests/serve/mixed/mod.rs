//! Servers of several generations, real and simulated, that replicate from each other, vote
//! together and form clusters.

mod cluster;
mod replication;
mod sentinels;

use std::{
    fmt, fs,
    path::{Path, PathBuf},
    process::{Child, Command},
    time::Duration,
};

use lockstorm_sim::generation::Generation;

use crate::{
    cluster::rig::{Line, free_port, log, now, spawn, text, wait},
    served::{PATIENCE, program},
};

/// A real or a simulated server of a generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Kind {
    is_real: bool,
    generation: Generation,
}

const fn real(generation: Generation) -> Kind {
    Kind { is_real: true, generation }
}

const fn simulated(generation: Generation) -> Kind {
    Kind { is_real: false, generation }
}

impl Kind {
    /// Returns true if it can be started: a real server must be installed.
    fn is_there(self) -> bool {
        !self.is_real || program(self.generation).is_some()
    }

    /// The command that runs it, without options.
    fn command(self) -> Command {
        if self.is_real {
            return Command::new(program(self.generation).expect("it is installed"));
        }
        let mut command = Command::new(env!("CARGO_BIN_EXE_lockstorm"));
        command.args(["serve", "--as", self.generation.name(), "--end-with-stdin"]);
        command
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", if self.is_real { "real" } else { "simulated" }, self.generation)
    }
}

/// A process with its own folder, in which it can start again. Its output is in a file there: a
/// real replica that is refused writes more than a pipe holds.
struct Process {
    kind: Kind,
    port: u16,
    folder: PathBuf,
    /// The arguments after those for the port.
    arguments: Vec<String>,
    child: Child,
}

impl Process {
    /// Starts a node on a folder of its own.
    fn node(kind: Kind, folder: &Path, name: &str, options: &[(&str, &str)]) -> Process {
        let all = [("save", ""), ("repl-diskless-sync-delay", "0")];
        let mut arguments = Vec::new();
        if !kind.is_real {
            arguments.extend(["--data", "."].map(str::to_owned));
        }
        for (name, value) in all.iter().chain(options) {
            match kind.is_real {
                true => arguments.extend([format!("--{name}"), (*value).to_owned()]),
                false => arguments.extend(["--option".to_owned(), format!("{name}={value}")]),
            }
        }
        Process::start(kind, folder.join(name), |_| arguments.clone())
    }

    /// Starts a Sentinel whose file has these lines.
    fn sentinel(kind: Kind, folder: &Path, name: &str, lines: &str) -> Process {
        let folder = folder.join(name);
        Process::start(kind, folder.clone(), |port| {
            let file = format!("port {port}\nbind 127.0.0.1\n{lines}");
            fs::write(folder.join("sentinel.conf"), file).expect("written");
            let words = if kind.is_real {
                vec!["sentinel.conf", "--sentinel"]
            } else {
                vec!["--sentinel", "--config", "sentinel.conf"]
            };
            words.into_iter().map(str::to_owned).collect()
        })
    }

    fn start(kind: Kind, folder: PathBuf, arguments: impl Fn(u16) -> Vec<String>) -> Process {
        fs::create_dir_all(&folder).expect("a folder");
        // Another process may take the port.
        for _ in 0..5 {
            let port = free_port();
            let arguments = arguments(port);
            let child = run(kind, port, &folder, &arguments);
            let mut process = Process { kind, port, folder: folder.clone(), arguments, child };
            if process.answers() {
                return process;
            }
        }
        panic!("{kind} does not start: {}", log(&folder));
    }

    /// Waits until it answers; returns false if it ends before.
    fn answers(&mut self) -> bool {
        let began = now();
        while began.elapsed() < PATIENCE && self.child.try_wait().expect("a child").is_none() {
            if Line::to(self.port).is_ok() && self.ask("PING") == "+PONG" {
                return true;
            }
            wait();
        }
        false
    }

    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Starts it again in its folder, at its port.
    fn start_again(&mut self) {
        self.kill();
        self.child = run(self.kind, self.port, &self.folder, &self.arguments);
        assert!(self.answers(), "{} does not start again: {}", self.kind, self.log());
    }

    /// The reply to a command line, on a connection of its own.
    fn ask(&self, command: &str) -> String {
        let Ok(mut line) = Line::to(self.port) else { return "-closed".to_owned() };
        line.send(&command.split(' ').map(str::to_owned).collect::<Vec<_>>());
        text(&line.receive())
    }

    /// The value of a field of INFO; empty without it.
    fn info(&self, field: &str) -> String {
        let info = self.ask("INFO all");
        let value = info.split("\\r\\n").find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        value.unwrap_or_default().to_owned()
    }

    fn log(&self) -> String {
        log(&self.folder)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

fn run(kind: Kind, port: u16, folder: &Path, arguments: &[String]) -> Child {
    let mut command = kind.command();
    let is_file_first = kind.is_real && arguments.first().is_some_and(|first| !first.starts_with("--"));
    if !is_file_first {
        command.args(["--port", &port.to_string()]);
    }
    spawn(command.args(arguments), folder)
}

/// Waits until it holds; returns false if it does not within this time.
fn within(time: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let began = now();
    loop {
        if holds() {
            return true;
        }
        if began.elapsed() > time {
            return false;
        }
        wait();
    }
}
