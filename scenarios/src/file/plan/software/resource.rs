//! The resource that the locks guard.

use std::rc::Rc;

use lockstorm_world::Entropy;

use crate::{
    file::{
        plan::host::{PlannedHost, Software},
        scenario::{Clock, Scenario},
    },
    judge::history::HostKind,
};

/// The resource that the locks guard.
#[derive(Debug)]
pub(crate) struct PlannedResource;

impl Software for PlannedResource {
    fn kind(&self) -> HostKind {
        HostKind::Resource
    }
}

pub(super) fn hosts(scenario: &Scenario, entropy: &Entropy) -> Vec<PlannedHost> {
    let host = |_: &_| {
        PlannedHost::draw(entropy, "resource".to_owned(), &Clock::default(), Rc::new(PlannedResource))
    };
    scenario.resource.iter().map(host).collect()
}
