//! Real servers of this machine, each as it describes itself, and the names by which a scenario
//! asks for one.

use std::{
    collections::BTreeSet,
    fmt,
    path::{Path, PathBuf},
};

use lockstorm_sim::generation::{self, Feature};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The project that a server comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Redis, from 6.2.
    Redis,
    /// Valkey, of any version.
    Valkey,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Redis => "Redis",
            Kind::Valkey => "Valkey",
        })
    }
}

/// A server program, with the answers that one of its processes gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// The absolute path of the program.
    pub program: PathBuf,
    /// The project that it comes from.
    pub kind: Kind,
    /// The version, such as `8.2.3`.
    pub version: String,
    /// The names of its commands in upper case.
    pub(crate) commands: BTreeSet<String>,
    /// The names of its options in lower case.
    pub(crate) options: BTreeSet<String>,
}

impl Server {
    /// Returns true if the server has the command, of which only the first word counts.
    pub fn has_command(&self, name: &str) -> bool {
        self.commands.contains(&name.to_ascii_uppercase())
    }

    /// Returns true if the server has an option of this name, such as `maxmemory`.
    pub fn has_option(&self, name: &str) -> bool {
        self.options.contains(&name.to_ascii_lowercase())
    }

    /// Returns true if the server has a feature, by its version.
    pub(crate) fn has(&self, feature: Feature) -> bool {
        feature.since().includes_release(self.kind == Kind::Valkey, release(&self.version))
    }

    /// Returns the newest generation that the simulator imitates and that is not newer than the
    /// server, or else the oldest of its kind.
    pub fn nearest(&self) -> generation::Generation {
        let is_kind = |one: &generation::Generation| one.is_valkey() == (self.kind == Kind::Valkey);
        let mut of_kind = generation::Generation::ALL.into_iter().filter(is_kind);
        let oldest = of_kind.next().unwrap_or_default();
        let mut older = of_kind.filter(|one| release(one.version()) <= release(&self.version));
        older.next_back().unwrap_or(oldest)
    }

    /// Returns true if the server is of this generation. The patch level does not count.
    pub fn is_of(&self, generation: Generation) -> bool {
        let (kind, version) = generation.parts();
        self.kind == kind && self.version.strip_prefix(version).is_some_and(|rest| rest.starts_with('.'))
    }
}

/// Returns the first two numbers of a version.
fn release(version: &str) -> (u8, u8) {
    let mut numbers = version.split('.').map(|number| number.parse::<u8>().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.version)
    }
}

/// A generation of servers, as a node asks for it: `server = "valkey-9.1"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum Generation {
    /// Redis 6.2.
    #[serde(rename = "redis-6.2")]
    Redis62,
    /// Redis 7.0.
    #[serde(rename = "redis-7.0")]
    Redis70,
    /// Redis 8.2.
    #[serde(rename = "redis-8.2")]
    Redis82,
    /// Valkey 8.1.
    #[serde(rename = "valkey-8.1")]
    Valkey81,
    /// Valkey 9.1.
    #[serde(rename = "valkey-9.1")]
    Valkey91,
}

impl Generation {
    /// Returns the generation as the simulator knows it.
    pub fn simulated(self) -> generation::Generation {
        match self {
            Generation::Redis62 => generation::Generation::Redis62,
            Generation::Redis70 => generation::Generation::Redis70,
            Generation::Redis82 => generation::Generation::Redis82,
            Generation::Valkey81 => generation::Generation::Valkey81,
            Generation::Valkey91 => generation::Generation::Valkey91,
        }
    }

    /// Returns the project, and the version without its patch level.
    pub fn parts(self) -> (Kind, &'static str) {
        let of = self.simulated();
        let kind = if of.is_valkey() { Kind::Valkey } else { Kind::Redis };
        let version = of.version();
        (kind, version.rsplit_once('.').map_or(version, |(release, _)| release))
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, version) = self.parts();
        write!(f, "{kind} {version}")
    }
}

/// The servers of a run: one for the nodes that ask for none, and those that nodes may ask for.
#[derive(Debug, Clone)]
pub struct Servers {
    default: Server,
    others: Vec<Server>,
}

impl Servers {
    /// Runs nodes on `default`, unless they ask for a generation that one of `others` is of.
    pub fn new(default: Server, others: Vec<Server>) -> Servers {
        Servers { default, others }
    }

    /// Returns the server of the nodes that ask for none.
    pub fn default(&self) -> &Server {
        &self.default
    }

    /// Returns the server for a node.
    ///
    /// # Errors
    /// The end of a sentence about the node, if no server is of the generation that it asks for.
    pub fn of(&self, wanted: Option<Generation>) -> Result<&Server, String> {
        let Some(wanted) = wanted else { return Ok(&self.default) };
        let others = || self.others.iter().filter(|other| **other != self.default);
        let all = || std::iter::once(&self.default).chain(others());
        all().find(|server| server.is_of(wanted)).ok_or_else(|| {
            let given: Vec<String> = all().map(ToString::to_string).collect();
            format!("needs {wanted}, and the servers given are {}", given.join(", "))
        })
    }
}

/// Returns the absolute form of a path, so that a process with another working directory finds it.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(kind: Kind, version: &str) -> Server {
        let (program, version) = (PathBuf::from("/server"), version.to_owned());
        Server { program, kind, version, commands: BTreeSet::new(), options: BTreeSet::new() }
    }

    /// A server between two generations is read as the older one.
    #[test]
    fn a_server_has_a_nearest_generation() {
        for (kind, version, nearest) in [
            (Kind::Redis, "6.2.14", "redis-6.2"),
            (Kind::Redis, "7.0.0", "redis-7.0"),
            (Kind::Redis, "7.4.2", "redis-7.0"),
            (Kind::Redis, "8.4.0", "redis-8.2"),
            (Kind::Valkey, "7.2.5", "valkey-8.1"),
            (Kind::Valkey, "9.0.1", "valkey-8.1"),
            (Kind::Valkey, "10.0.0", "valkey-9.1"),
        ] {
            assert_eq!(server(kind, version).nearest().name(), nearest, "{kind} {version}");
        }
    }

    /// A generation is a project and the first two numbers of its version.
    #[test]
    fn a_node_gets_a_server_of_its_generation() {
        let (old, new) = (server(Kind::Redis, "7.0.15"), server(Kind::Valkey, "9.1.2"));
        let servers = Servers::new(old.clone(), vec![new.clone()]);
        assert_eq!(servers.of(None), Ok(&old));
        assert_eq!(servers.of(Some(Generation::Redis70)), Ok(&old));
        assert_eq!(servers.of(Some(Generation::Valkey91)), Ok(&new));
        let missing = "needs Redis 8.2, and the servers given are Redis 7.0.15, Valkey 9.1.2";
        assert_eq!(servers.of(Some(Generation::Redis82)), Err(missing.to_owned()));
        assert!(!server(Kind::Redis, "8.20.1").is_of(Generation::Redis82));
        assert!(!server(Kind::Redis, "9.1.2").is_of(Generation::Valkey91));
    }
}
