//! `delay = { of, request | reply }`: one command, or its reply, comes late.

use lockstorm_world::MessageFault;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Effect, FaultAction, Matching, Targets};
use crate::{
    file::selector::Hosts,
    units::{Draw, Span},
};

pub(super) const ABOUT: &str = "Delays the k-th command that matches, or its reply.";

/// Delays the matching command, or its reply, and everything that follows on the connection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Delay {
    /// The command to delay, by its name, its arguments, its client, its node and its number.
    pub of: Matching,
    /// The delay of the command on its way to the node. Default: none.
    #[serde(default)]
    pub request: Option<Draw<Span>>,
    /// The delay of the reply, from its execution until it leaves the node. Default: none.
    #[serde(default)]
    pub reply: Option<Draw<Span>>,
}

impl Effect for Delay {
    fn hosts(&self) -> Vec<&Hosts> {
        self.of.hosts()
    }

    fn draw(&mut self, fraction: &mut dyn FnMut() -> f64) {
        for by in [&mut self.request, &mut self.reply].into_iter().flatten() {
            by.draw(fraction());
        }
    }

    fn actions(&self, targets: Targets<'_>) -> Vec<FaultAction> {
        let request = self.request.map(|by| MessageFault::DelayRequest(by.drawn().0));
        let reply = self.reply.map(|by| MessageFault::DelayReply(by.drawn().0));
        request.into_iter().chain(reply).flat_map(|fault| self.of.rules(targets, fault)).collect()
    }

    fn words(&self, targets: Targets<'_>) -> String {
        let of = self.of.words(targets);
        match (self.request, self.reply) {
            (Some(by), Some(reply)) => format!("{of} comes {by} late, and its reply {reply} later"),
            (Some(by), None) => format!("{of} comes {by} late"),
            (None, by) => format!("the reply to {of} comes {} late", by.unwrap_or_default()),
        }
    }
}
