//! The logs of COMMANDLOG.

use crate::{
    commands::Error,
    node::{Node, slowlog::SlowLog},
};

/// Returns the log of a type.
pub(super) fn log_of<'a>(node: &'a mut Node, name: &[u8]) -> Result<&'a mut SlowLog, Error> {
    match &name.to_ascii_lowercase()[..] {
        b"slow" => Ok(&mut node.slowlog),
        b"large-request" => Ok(&mut node.large_requests),
        b"large-reply" => Ok(&mut node.large_replies),
        _ => Err(Error::of("ERR type should be one of the following: slow, large-request, large-reply")),
    }
}
