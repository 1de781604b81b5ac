//! A lock library of any language on trial: a process that answers requests for its lock, with one
//! JSON object per line.
//!
//! `lockstorm trial` starts such a process for each client of a scenario. This folder contains the
//! messages between the two (`protocol`), the process (`process`), and the exchange of requests and
//! answers (`link`). The book describes the protocol for authors of a peer.

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

use crate::file::peer::{Can, Hello, Peer};

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
}
