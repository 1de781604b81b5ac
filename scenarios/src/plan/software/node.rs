//! A Redis node.

use std::rc::Rc;

use lockstorm_sim::world::Entropy;

use crate::{
    history::HostKind,
    plan::host::{PlannedHost, Software},
    scenario::{Node, Scenario, group},
};

/// A Redis node.
#[derive(Debug)]
pub struct PlannedNode {
    /// As written.
    pub node: Node,
}

impl Software for PlannedNode {
    fn kind(&self) -> HostKind {
        HostKind::Node
    }

    fn replica_of(&self) -> Option<&str> {
        self.node.replica_of.as_ref().map(|of| of.as_str())
    }

    fn unreal(&self) -> Vec<String> {
        let unreal = self.node.is_no_redis().then(|| "is to do what no Redis 7 does".to_owned());
        unreal.into_iter().collect()
    }

    fn is_process(&self) -> bool {
        true
    }
}

pub(super) fn hosts(scenario: &Scenario, entropy: &Entropy) -> Vec<PlannedHost> {
    let mut hosts = Vec::new();
    for (name, node) in &scenario.node {
        for name in group(name, node.count) {
            let software = Rc::new(PlannedNode { node: node.clone() });
            hosts.push(PlannedHost::draw(entropy, name, &node.clock, software));
        }
    }
    hosts
}
