//! The commands to which a fault on messages applies.

use lockstorm_world::{Condition, MessageFault, Rule};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{FaultAction, Targets, list};
use crate::file::selector::Hosts;

/// The commands to which the fault applies: all given conditions must hold.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Matching {
    /// The name of the command, such as `EVALSHA`. Default: any.
    pub command: Option<String>,
    /// A text in one of its arguments, such as the lock's name or a part of a channel. Default:
    /// any.
    pub contains: Option<String>,
    /// The client that sends it. Default: any.
    pub client: Option<Hosts>,
    /// The node that receives it. Default: any.
    pub node: Option<Hosts>,
    /// The first match that counts, from 1. Default: the first. If several clients or nodes are
    /// named, each pair has its own count.
    pub nth: Option<u64>,
    /// The number of matches that count, from `nth` on. Default: one.
    pub times: Option<u64>,
}

impl Matching {
    pub(super) fn hosts(&self) -> Vec<&Hosts> {
        self.client.iter().chain(&self.node).collect()
    }

    /// Returns the named clients and nodes among the targets; a single `None` for a side that may
    /// be any host.
    fn sides(&self, targets: Targets<'_>) -> (Vec<Option<String>>, Vec<Option<String>>) {
        let mut targets = targets.iter();
        let mut side = |given: bool| match given.then(|| targets.next()).flatten() {
            Some(hosts) => hosts.iter().cloned().map(Some).collect(),
            None => vec![None],
        };
        (side(self.client.is_some()), side(self.node.is_some()))
    }

    pub(super) fn rules(&self, targets: Targets<'_>, fault: MessageFault) -> Vec<FaultAction> {
        let (clients, nodes) = self.sides(targets);
        let mut actions = Vec::new();
        for client in &clients {
            for node in &nodes {
                let rule = Rule {
                    node: node.clone(),
                    client: client.clone(),
                    command: self.command.clone(),
                    contains: self.contains.as_ref().map(|text| text.as_bytes().to_vec()),
                    nth: self.nth.unwrap_or(1),
                    times: self.times.unwrap_or(1),
                    fault,
                };
                actions.push(FaultAction::For(Condition::Rule(rule)));
            }
        }
        actions
    }

    pub(super) fn words(&self, targets: Targets<'_>) -> String {
        let mut words = self.command.clone().unwrap_or_else(|| "a command".to_owned());
        if let Some(text) = &self.contains {
            words.push_str(&format!(" about {text}"));
        }
        let (clients, nodes) = self.sides(targets);
        for (preposition, side) in [("from", clients), ("to", nodes)] {
            let named: Vec<String> = side.into_iter().flatten().collect();
            if !named.is_empty() {
                words.push_str(&format!(" {preposition} {}", list(&named)));
            }
        }
        words
    }
}
