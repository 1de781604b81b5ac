//! The programs of servers: the installed `redis-server`, real servers of other generations, and
//! simulated ones.
//!
//! `LOCKSTORM_SERVERS` names a folder with a program for each generation, such as `valkey-9.1`.
//! Simulated servers are processes of `lockstorm serve`, whose binary must have been built into the
//! same target folder.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use lockstorm_sim::generation::Generation;

#[path = "../../../tests/support/programs.rs"]
mod programs;

/// A program that runs servers, Sentinels and cluster nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Program {
    /// `redis-server` on the PATH, or the program in `LOCKSTORM_REDIS_SERVER`.
    Installed,
    /// A real server of this generation.
    Real(Generation, PathBuf),
    /// `lockstorm serve --as` this generation.
    Simulated(Generation, PathBuf),
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Installed => f.write_str(&super::program()),
            Self::Real(generation, _) => write!(f, "{generation}, real"),
            Self::Simulated(generation, _) => write!(f, "{generation}, simulated"),
        }
    }
}

/// Returns true if every generation of servers must run on every topology.
pub(crate) fn is_whole() -> bool {
    std::env::var("LOCKSTORM_EVERY_TOPOLOGY").is_ok_and(|value| value == "1")
}

/// Returns true if the environment requires every program of a test.
fn is_required() -> bool {
    std::env::var("LOCKSTORM_REQUIRE_SERVERS").is_ok_and(|value| value == "1")
}

fn if_present(path: PathBuf, hint: &str) -> Option<PathBuf> {
    if path.exists() {
        return Some(path);
    }
    assert!(!is_required(), "{} is absent: {hint}", path.display());
    eprintln!("skipped: {} is absent: {hint}", path.display());
    None
}

impl Program {
    /// Returns the real server of a generation, if `LOCKSTORM_SERVERS` names a folder that has it.
    /// Real servers that are slow to sync fail tests on a busy machine, so a person asks for them.
    pub(crate) fn real(generation: Generation) -> Option<Self> {
        std::env::var_os("LOCKSTORM_SERVERS")?;
        Some(Self::Real(generation, programs::program_of(generation.name())?))
    }

    /// Returns the simulated server of a generation, if the binary has been built.
    pub(crate) fn simulated(generation: Generation) -> Option<Self> {
        let test = std::env::current_exe().expect("a test has a file");
        // From `target/debug/deps/client-0123456789abcdef` to `target/debug/lockstorm`.
        let folder = test.parent().and_then(Path::parent).expect("a test is in a target folder");
        let path = if_present(folder.join("lockstorm"), "`cargo build -p lockstorm-cli`")?;
        Some(Self::Simulated(generation, path))
    }

    /// Returns the simulated and the real server of a generation, as far as they are present.
    pub(crate) fn of(generation: Generation) -> impl Iterator<Item = Self> {
        Self::simulated(generation).into_iter().chain(Self::real(generation))
    }

    /// Returns true for servers of Redis 6, which lack some options of later ones.
    pub(crate) fn is_before_7(&self) -> bool {
        match self {
            Self::Installed => super::version().is_some_and(|version| version < 7),
            Self::Real(generation, _) => *generation == Generation::Redis62,
            // It has the options of 7.0 whatever it imitates.
            Self::Simulated(..) => false,
        }
    }

    /// Returns true for servers whose messages can stay within a node of a cluster.
    pub(crate) fn has_shard_channels(&self) -> bool {
        match self {
            Self::Installed => !self.is_before_7(),
            Self::Real(generation, _) | Self::Simulated(generation, _) => *generation != Generation::Redis62,
        }
    }

    /// Returns the command that starts a server with `options`, pairs such as `--appendonly yes`.
    pub(crate) fn server(&self, port: u16, snapshot: &Path, options: &[String]) -> Command {
        let port = port.to_string();
        if let Self::Simulated(generation, path) = self {
            let mut command = Command::new(path);
            command.args(["serve", "--as", generation.name(), "--port", &port, "--bind", "127.0.0.1"]);
            command.args(["--loglevel", "warning", "--option", "repl-diskless-sync-delay=0"]);
            for pair in options.chunks(2) {
                let [name, value] = pair else { panic!("an option without a value: {pair:?}") };
                match name.strip_prefix("--").expect("an option") {
                    "dir" => command.args(["--data", value]),
                    name => command.arg("--option").arg(format!("{name}={value}")),
                };
            }
            return until_parent_ends(command);
        }
        // Older servers always have DEBUG, and do not know the option.
        let debug: &[&str] = if self.is_before_7() { &[] } else { &["--enable-debug-command", "yes"] };
        let mut command = Command::new(self.path());
        command
            .args(["--port", &port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
            .arg("--dir")
            .arg(snapshot.parent().expect("it is in a folder"))
            .arg("--dbfilename")
            .arg(snapshot.file_name().expect("it has a name"))
            .args(["--repl-diskless-sync-delay", "0"])
            .args(debug);
        if self.is_before_7() {
            // It takes each word of a value as an argument.
            command.args(options.iter().flat_map(|word| word.split(' ')));
        } else {
            command.args(options);
        }
        quiet(command)
    }

    /// Returns the command that starts a Sentinel with this file.
    pub(crate) fn sentinel(&self, port: u16, file: &Path) -> Command {
        let mut command = Command::new(self.path());
        if let Self::Simulated(generation, _) = self {
            command.args(["serve", "--as", generation.name(), "--sentinel", "--loglevel", "warning"]);
            command.arg("--config").arg(file).args(["--port", &port.to_string()]);
            return until_parent_ends(command);
        }
        command.arg(file).arg("--sentinel");
        quiet(command)
    }

    fn path(&self) -> PathBuf {
        match self {
            Self::Installed => PathBuf::from(super::program()),
            Self::Real(_, path) | Self::Simulated(_, path) => path.clone(),
        }
    }
}

fn quiet(mut command: Command) -> Command {
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// The server ends when this process does, which keeps the other end of its standard input.
fn until_parent_ends(mut command: Command) -> Command {
    command.arg("--end-with-stdin").stdin(Stdio::piped());
    quiet(command)
}
