//! `drop_connection = { command, .. }`: a connection breaks at a command, before or after it is executed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Deed, Kind, Matching, Targets};
use crate::selector::Hosts;

pub(super) const ABOUT: &str =
    "Breaks the connection at the k-th command that matches, before or after it is executed.";

/// Breaks the connection at the command that matches.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DropConnection {
    /// Which command.
    pub of: Matching,
    /// Break it before the command is executed; otherwise after.
    #[serde(default)]
    pub before: bool,
}

impl Kind for DropConnection {
    fn hosts(&self) -> Vec<&Hosts> {
        self.of.hosts()
    }

    fn begin(&self, name: &str, targets: Targets<'_>, _: &mut dyn FnMut() -> f64) -> Vec<Deed> {
        let act = if self.before {
            lockstorm_sim::world::Act::DropRequest
        } else {
            lockstorm_sim::world::Act::DropConnection
        };
        self.of.rules(name, targets, act)
    }

    fn end(&self, name: &str, targets: Targets<'_>) -> Vec<Deed> {
        self.of.remove(name, targets)
    }

    fn words(&self, targets: Targets<'_>) -> String {
        let when = if self.before { "before" } else { "after" };
        format!("the connection breaks {when} {} is executed", self.of.words(targets))
    }
}
