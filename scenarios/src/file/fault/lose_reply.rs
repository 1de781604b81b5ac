//! `lose_reply = { command, .. }`: a command is executed, and its reply never arrives.

use lockstorm_world::{Break, MessageFault};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Effect, FaultAction, Matching, Targets};
use crate::file::selector::Hosts;

pub(super) const ABOUT: &str = "Loses the reply of the k-th command that matches.";

/// Loses the reply to the matching command. The node executes the command, and its connection is
/// silent from then on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct LoseReply(pub Matching);

impl Effect for LoseReply {
    fn hosts(&self) -> Vec<&Hosts> {
        self.0.hosts()
    }

    fn actions(&self, targets: Targets<'_>) -> Vec<FaultAction> {
        self.0.rules(targets, MessageFault::Break(Break::LoseReply))
    }

    fn words(&self, targets: Targets<'_>) -> String {
        format!("the reply to {} is lost", self.0.words(targets))
    }
}
