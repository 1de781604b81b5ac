//! COMMANDLOG subcommand ...: the slow commands, and those with large requests or replies.

use crate::{
    commands::{Error, Flags, Group, Keys, Spec, help},
    node::{Node, slowlog::SlowLog},
};

pub(super) const SPEC: Spec = Spec {
    name: "commandlog",
    group: Group::Server,
    since: "valkey 8.1.0",
    summary: "Looks into slow and large commands.",
    arity: -2,
    flags: Flags::empty(),
    keys: Keys::None,
    subcommands: &[
        &super::commandlog_get::SPEC,
        &super::commandlog_help::SPEC,
        &super::commandlog_len::SPEC,
        &super::commandlog_reset::SPEC,
    ],
    run: help::container,
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
