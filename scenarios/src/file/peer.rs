//! A lock library of any language on trial: the command that starts its process, and the properties
//! that the process reports of itself.

use serde::{Deserialize, Serialize};

/// A library on trial: how to start its process, and what that has said of itself.
#[derive(Debug, Clone)]
pub struct Peer {
    /// The command, as a shell reads it.
    pub command: String,
    /// What the process says first.
    pub hello: Hello,
}

impl Peer {
    /// The key of a lock with this name, as the library forms it.
    pub(crate) fn key(&self, name: &str) -> String {
        self.hello.key.replace("{}", name)
    }

    /// Whether it can do this.
    pub(crate) fn can(&self, what: Can) -> bool {
        self.hello.can.contains(&what)
    }
}

/// What a peer says of itself before it is asked anything.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    /// The version of the protocol that it speaks.
    pub protocol: u32,
    /// What people call the library.
    pub library: String,
    /// The version of the library.
    #[serde(default)]
    pub version: String,
    /// The key that the library uses for a lock of the name `{}`.
    #[serde(default = "name_alone")]
    pub key: String,
    /// What the library can do besides granting and releasing.
    #[serde(default)]
    pub can: Vec<Can>,
}

fn name_alone() -> String {
    "{}".to_owned()
}

impl Hello {
    /// Library and version.
    pub fn name(&self) -> String {
        format!("{} {}", self.library, self.version).trim().to_owned()
    }
}

/// What a library may or may not be able to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Can {
    /// It waits for a lock that another owner has; otherwise it is asked again every 50 ms.
    Wait,
    /// It sets a new lease on a lock that it has.
    Extend,
    /// It renews a lease by itself.
    Watchdog,
    /// It asks several independent nodes, and needs a majority.
    Quorum,
    /// It hands out fencing tokens.
    Token,
}
