//! A lock library of any language on trial: a process that answers requests for its lock, one JSON
//! object a line.
//!
//! `lockstorm trial` starts such a process for each client of a scenario. This folder has what
//! passes between the two (`protocol`), the process (`process`), and what is written to it and read
//! from it (`link`); the book has the protocol for those who write a peer.

mod host;
mod link;
mod process;
mod protocol;

pub(super) use self::host::process;
pub(crate) use self::{
    link::{Answer, Link, Refusal, Unasked},
    process::{PeerProcess, Pipes, Reader},
    protocol::{InitLock, Request},
};

pub use crate::file::peer::{Can, Hello, Peer};

impl Peer {
    /// Starts the process once, to hear what it says of itself.
    ///
    /// # Errors
    /// That it does not start, or does not say what a peer says first, in words.
    pub fn of(command: &str) -> Result<Peer, String> {
        let (process, mut pipes) =
            PeerProcess::start(command).map_err(|error| format!("{command}: {error}"))?;
        let hello = pipes.hello(&process);
        drop(process);
        Ok(Peer { command: command.to_owned(), hello: hello? })
    }
}
