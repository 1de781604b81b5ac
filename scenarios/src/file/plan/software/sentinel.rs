//! A Sentinel.

use std::rc::Rc;

use lockstorm_sim::generation::Generation;
use lockstorm_world::Entropy;

use crate::{
    file::{
        plan::host::{PlannedHost, Software},
        scenario::{Scenario, group},
        server::{Generation as Wanted, Server},
    },
    judge::history::HostKind,
};

/// A Sentinel of the run, not yet started.
#[derive(Debug, Clone)]
pub(crate) struct PlannedSentinel {
    /// Its initial configuration file.
    pub(crate) file: String,
    /// The options in it that every server has.
    pub(crate) options: Vec<(String, String)>,
    /// The generation that it imitates.
    pub(crate) generation: Generation,
    /// The generation that the file asks for, if it asks for one.
    pub(crate) wanted: Option<Wanted>,
    /// The real server, in a run with real servers. An error is the end of a sentence about the
    /// Sentinel, if no server fits.
    pub(crate) server: Option<Result<Server, String>>,
}

impl Software for PlannedSentinel {
    fn kind(&self) -> HostKind {
        HostKind::Sentinel
    }

    fn unreal(&self) -> Vec<String> {
        match &self.server {
            Some(Err(why)) => vec![why.clone()],
            _ => Vec::new(),
        }
    }

    fn is_process(&self) -> bool {
        true
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
            let (options, generation, wanted) = (options.collect(), sentinel.generation(), sentinel.server);
            let software = Rc::new(PlannedSentinel { file, options, generation, wanted, server: None });
            hosts.push(PlannedHost::draw(entropy, name, &sentinel.clock, software));
        }
    }
    hosts
}
