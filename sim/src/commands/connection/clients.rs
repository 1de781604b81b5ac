//! What the CLIENT subcommands share: names and kinds of connections.

use bytes::Bytes;

use crate::{
    commands::{Error, printable},
    node::clients::{Role, Session},
};

/// The kinds of connections that TYPE filters tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Normal,
    Master,
    Replica,
    Pubsub,
}

impl Kind {
    /// The kind that a filter names.
    pub(super) fn parse(name: &[u8]) -> Result<Kind, Error> {
        Ok(match &name.to_ascii_lowercase()[..] {
            b"normal" => Kind::Normal,
            b"master" => Kind::Master,
            b"replica" | b"slave" => Kind::Replica,
            b"pubsub" => Kind::Pubsub,
            _ => {
                let name = printable(name, usize::MAX);
                return Err(Error(format!("ERR Unknown client type '{name}'").into()));
            }
        })
    }

    /// The kind of a connection. One that monitors counts as a client.
    pub(super) fn of(session: &Session) -> Kind {
        match session.role {
            Role::Master => Kind::Master,
            Role::Replica => Kind::Replica,
            Role::Client if session.is_subscriber() => Kind::Pubsub,
            Role::Client => Kind::Normal,
        }
    }
}

/// Whether a connection may have this name: printable, without spaces, or empty for none.
pub(super) fn check_name(name: &Bytes) -> Result<(), Error> {
    if name.iter().all(|byte| (b'!'..=b'~').contains(byte)) {
        Ok(())
    } else {
        Err(Error::of("ERR Client names cannot contain spaces, newlines or special characters."))
    }
}
