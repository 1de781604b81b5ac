//! A lock library of any language on trial: the command that starts its process, and the properties
//! that the process reports of itself.

use serde::{Deserialize, Serialize};

/// A library on trial: its command, and its description of itself.
#[derive(Debug, Clone)]
pub struct Peer {
    /// The command, as a shell reads it.
    pub command: String,
    /// The first message of the process.
    pub hello: Hello,
}

impl Peer {
    /// Returns the key that the library forms for a lock with this name.
    pub(crate) fn key(&self, name: &str) -> String {
        self.hello.key.replace("{}", name)
    }

    /// Returns true if the library has this ability.
    pub(crate) fn can(&self, what: Can) -> bool {
        self.hello.can.contains(&what)
    }
}

/// A peer's first message. It describes the library before any request.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    /// The version of the protocol that it speaks.
    pub protocol: u32,
    /// The common name of the library.
    pub library: String,
    /// The version of the library, such as `6.4`; empty if the peer reports none.
    #[serde(default)]
    pub version: String,
    /// The driver below the library with its version, such as `ioredis 6.0.0`; empty if the peer
    /// reports none.
    #[serde(default)]
    pub driver: String,
    /// The library's key for a lock with the name `{}`.
    #[serde(default = "name_alone")]
    pub key: String,
    /// The library's abilities besides granting and releasing.
    #[serde(default)]
    pub can: Vec<Can>,
}

fn name_alone() -> String {
    "{}".to_owned()
}

impl Hello {
    /// Returns the name and the version of the library.
    pub fn name(&self) -> String {
        format!("{} {}", self.library, self.version).trim().to_owned()
    }
}

/// An optional ability of a library.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Can {
    /// It waits for a lock that another owner has. Without this, lockstorm repeats the request
    /// every 50 ms.
    Wait,
    /// It sets a new lease on a lock that it has.
    Extend,
    /// It renews a lease by itself.
    Watchdog,
    /// It asks several independent nodes, and needs a majority.
    Quorum,
    /// It issues fencing tokens.
    Token,
}
