//! A lock library of any language on trial: a process that answers requests for its lock, with one
//! JSON object per line.
//!
//! `lockstorm trial` starts such a process for each client of a scenario. This folder contains the
//! messages between the two (`protocol`), the process (`process`), and the exchange of requests and
//! answers (`link`). The book describes the protocol for authors of a peer.

mod link;
mod process;
mod protocol;

pub use self::protocol::{Can, Hello};
pub(crate) use self::{
    link::{Answer, Link, Refusal, Unasked},
    process::{PeerProcess, Pipes, Reader},
    protocol::{InitLock, Request},
};

/// A library on trial: its command, and its description of itself.
#[derive(Debug, Clone)]
pub struct Peer {
    /// The command, as a shell reads it.
    pub command: String,
    /// The first message of the process.
    pub hello: Hello,
}

impl Peer {
    /// Starts the process once, and reads its hello.
    ///
    /// # Errors
    /// A message, if the process does not start, or does not begin with a valid hello.
    pub fn of(command: &str) -> Result<Peer, String> {
        let (process, mut pipes) =
            PeerProcess::start(command).map_err(|error| format!("{command}: {error}"))?;
        let hello = pipes.hello(&process);
        drop(process);
        Ok(Peer { command: command.to_owned(), hello: hello? })
    }

    /// Returns the key that the library forms for a lock with this name.
    pub(crate) fn key(&self, name: &str) -> String {
        self.hello.key.replace("{}", name)
    }

    /// Returns true if the library has this ability.
    pub(crate) fn can(&self, what: Can) -> bool {
        self.hello.can.contains(&what)
    }
}
