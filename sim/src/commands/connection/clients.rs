//! Shared parts of the CLIENT subcommands: names and kinds of connections.

use bytes::Bytes;

use crate::{
    commands::{Error, printable},
    generation::Generation,
    node::clients::{Role, Session},
};

/// Kinds of connections for TYPE filters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Normal,
    Master,
    Replica,
    Pubsub,
}

impl Kind {
    /// Parses the kind of a filter. Valkey also calls a master a primary.
    pub(super) fn parse(name: &[u8], generation: Generation) -> Result<Kind, Error> {
        Ok(match &name.to_ascii_lowercase()[..] {
            b"normal" => Kind::Normal,
            b"master" => Kind::Master,
            b"primary" if generation.is_valkey() => Kind::Master,
            b"replica" | b"slave" => Kind::Replica,
            b"pubsub" => Kind::Pubsub,
            _ => {
                let name = printable(name, usize::MAX);
                return Err(Error(format!("ERR Unknown client type '{name}'").into()));
            }
        })
    }

    /// Returns the kind of a connection. A monitor counts as a normal client.
    pub(super) fn of(session: &Session) -> Kind {
        match session.role {
            Role::Master => Kind::Master,
            Role::Replica => Kind::Replica,
            Role::Client if session.is_subscriber() => Kind::Pubsub,
            Role::Client | Role::Source => Kind::Normal,
        }
    }
}

/// Checks the name of a connection: printable, without spaces, or empty for none.
pub(super) fn check_name(name: &Bytes) -> Result<(), Error> {
    if name.iter().all(|byte| (b'!'..=b'~').contains(byte)) {
        Ok(())
    } else {
        Err(Error::of("ERR Client names cannot contain spaces, newlines or special characters."))
    }
}
