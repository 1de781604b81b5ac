//! `drop_connection = { command, .. }`: a connection breaks at a command, before or after it is
//! executed.

use lockstorm_world::{Break, MessageFault};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Effect, FaultAction, Matching, Targets};
use crate::file::selector::Hosts;

pub(super) const ABOUT: &str =
    "Breaks the connection at the k-th command that matches, before or after it is executed.";

/// Breaks the connection at the matching command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DropConnection {
    /// The command at which the connection breaks, by its name, its arguments, its client, its node
    /// and its number.
    pub of: Matching,
    /// Break it before the command is executed. Default: after.
    #[serde(default)]
    pub before: bool,
}

impl Effect for DropConnection {
    fn hosts(&self) -> Vec<&Hosts> {
        self.of.hosts()
    }

    fn actions(&self, targets: Targets<'_>) -> Vec<FaultAction> {
        let at = if self.before { Break::BeforeRequest } else { Break::BeforeReply };
        self.of.rules(targets, MessageFault::Break(at))
    }

    fn words(&self, targets: Targets<'_>) -> String {
        let when = if self.before { "before" } else { "after" };
        format!("the connection breaks {when} {} is executed", self.of.words(targets))
    }
}
