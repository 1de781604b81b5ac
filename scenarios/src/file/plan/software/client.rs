//! A client with its lines of work, or with a user's code.

use std::rc::Rc;

use lockstorm_world::Entropy;

use crate::{
    file::{
        plan::{
            host::{PlannedHost, Software},
            script::{self, PlannedLine},
        },
        scenario::{Client, Scenario, group},
    },
    judge::history::HostKind,
};

/// A client with its script or its workload.
#[derive(Debug)]
pub(crate) struct PlannedClient {
    /// The table of the file that defines it; the clients of a group share the table.
    pub(crate) client: Client,
    /// Its lines of work, drawn; at least one.
    pub(crate) lines: Vec<PlannedLine>,
}

impl Software for PlannedClient {
    fn kind(&self) -> HostKind {
        HostKind::Client
    }

    fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        for line in &self.lines {
            if !line.name.is_empty() {
                words.push(format!("line {}", line.name));
            }
            words.extend(line.script.iter().map(ToString::to_string));
        }
        words
    }
}

pub(super) fn hosts(scenario: &Scenario, entropy: &Entropy) -> Vec<PlannedHost> {
    let mut hosts = Vec::new();
    for (name, client) in &scenario.client {
        for name in group(name, client.count) {
            let lines = script::lines(scenario, client, &name, entropy);
            let software = Rc::new(PlannedClient { client: client.clone(), lines });
            hosts.push(PlannedHost::draw(entropy, name, &client.clock, software));
        }
    }
    hosts
}
