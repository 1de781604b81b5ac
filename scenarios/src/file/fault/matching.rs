//! Which commands a fault on messages is about.

use lockstorm_sim::world::{Condition, MessageFault, Rule};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{FaultAction, Targets, list};
use crate::file::selector::Hosts;

/// Which commands: every condition that is given must hold.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Matching {
    /// The command's name, such as `EVALSHA`; any if left out.
    pub command: Option<String>,
    /// Text that one of its arguments contains, such as the lock's name or a part of a channel; any
    /// if left out.
    pub contains: Option<String>,
    /// Who sends it; any client if left out.
    pub client: Option<Hosts>,
    /// Who receives it; any node if left out.
    pub node: Option<Hosts>,
    /// The first match that counts, from 1; the very first if left out.
    pub nth: Option<u64>,
    /// How many matches count from there; one if left out.
    pub times: Option<u64>,
}

impl Matching {
    pub(super) fn hosts(&self) -> Vec<&Hosts> {
        self.client.iter().chain(&self.node).collect()
    }

    /// The clients and the nodes among the targets, `None` for all.
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
