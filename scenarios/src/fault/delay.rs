//! `delay = { of, request | reply }`: one command, or its reply, comes late.

use lockstorm_sim::world::Act;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Deed, Kind, Matching, Targets};
use crate::{
    selector::Hosts,
    units::{Draw, Span},
};

pub(super) const ABOUT: &str = "Delays the k-th command that matches, or its reply.";

/// Delays the command that matches, or its reply, and all that follows on the connection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Delay {
    /// Which command.
    pub of: Matching,
    /// How late it reaches the node.
    #[serde(default)]
    pub request: Option<Draw<Span>>,
    /// How late its reply leaves the node.
    #[serde(default)]
    pub reply: Option<Draw<Span>>,
}

impl Kind for Delay {
    fn hosts(&self) -> Vec<&Hosts> {
        self.of.hosts()
    }

    fn begin(&self, name: &str, targets: Targets<'_>, draw: &mut dyn FnMut() -> f64) -> Vec<Deed> {
        let mut deeds = Vec::new();
        if let Some(by) = self.request {
            deeds.extend(self.of.rules(
                &format!("{name}/request"),
                targets,
                Act::DelayRequest(by.at(draw()).0),
            ));
        }
        if let Some(by) = self.reply {
            deeds.extend(self.of.rules(&format!("{name}/reply"), targets, Act::DelayReply(by.at(draw()).0)));
        }
        deeds
    }

    fn end(&self, name: &str, targets: Targets<'_>) -> Vec<Deed> {
        let mut deeds = self.of.remove(&format!("{name}/request"), targets);
        deeds.extend(self.of.remove(&format!("{name}/reply"), targets));
        deeds
    }

    fn words(&self, targets: Targets<'_>) -> String {
        let (what, by) = match (self.request, self.reply) {
            (Some(by), _) => ("", by),
            (None, by) => ("the reply to ", by.unwrap_or_default()),
        };
        format!("{what}{} comes {by} late", self.of.words(targets))
    }
}
