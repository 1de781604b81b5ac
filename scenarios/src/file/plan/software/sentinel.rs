//! A Sentinel.

use std::rc::Rc;

use lockstorm_sim::generation::Generation;
use lockstorm_world::Entropy;

use crate::{
    file::{
        plan::host::{PlannedHost, Software},
        scenario::{Scenario, group},
    },
    judge::history::HostKind,
};

/// A Sentinel of the run, not yet started.
#[derive(Debug)]
pub struct PlannedSentinel {
    /// Its initial configuration file.
    pub file: String,
    /// The options in it that every server has.
    pub options: Vec<(String, String)>,
    /// The generation that it imitates.
    pub generation: Generation,
}

impl Software for PlannedSentinel {
    fn kind(&self) -> HostKind {
        HostKind::Sentinel
    }

    fn unreal(&self) -> Vec<String> {
        let why = "is a Sentinel, and the addresses that Sentinels tell each other lead past the links between real processes";
        vec![why.to_owned()]
    }

    fn words(&self) -> Vec<String> {
        let other = Some(self.generation).filter(|generation| *generation != Generation::default());
        let server = other.map(|generation| format!("server {generation}"));
        server.into_iter().chain(self.file.lines().map(str::to_owned)).collect()
    }
}

pub(super) fn hosts(scenario: &Scenario, entropy: &Entropy) -> Vec<PlannedHost> {
    let mut hosts = Vec::new();
    for (name, sentinel) in &scenario.sentinel {
        for name in group(name, sentinel.count) {
            let options =
                sentinel.options_of_servers().map(|(name, value)| (name.to_owned(), value.to_owned()));
            let file = sentinel.file(scenario, &name);
            let (options, generation) = (options.collect(), sentinel.generation());
            let software = Rc::new(PlannedSentinel { file, options, generation });
            hosts.push(PlannedHost::draw(entropy, name, &sentinel.clock, software));
        }
    }
    hosts
}
