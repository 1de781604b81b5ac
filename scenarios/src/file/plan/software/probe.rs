//! The laboratory's own client, which asks in the calm for each lock that no owner was granted
//! since the storm: whether a lock can be had again is a question also where the work of all
//! clients is over by then.

use std::rc::Rc;

use lockstorm_sim::world::Entropy;

use crate::{
    file::{
        plan::{
            Phases,
            host::{PlannedHost, Software},
        },
        scenario::{Client, Clock, Scenario},
    },
    judge::history::{HostKind, Probe},
};

/// What the history calls the host: no host of a file can be called so.
const NAME: &str = "(probe)";

/// The laboratory's own client.
#[derive(Debug)]
pub struct PlannedProbe {
    /// A client as a file would write it, which knows all nodes and finds the master as the file's
    /// clients do.
    pub client: Client,
}

impl Software for PlannedProbe {
    fn kind(&self) -> HostKind {
        HostKind::Probe
    }

    fn words(&self) -> Vec<String> {
        vec!["asks for each lock that no owner was granted since the storm".to_owned()]
    }
}

pub(super) fn hosts(scenario: &Scenario, entropy: &Entropy) -> Vec<PlannedHost> {
    let Some(Probe::From { .. }) = Phases::of(scenario).probe else { return Vec::new() };
    let sentinels = scenario.client.values().find_map(|client| client.sentinels.clone());
    let client = Client { sentinels, ..Client::default() };
    vec![PlannedHost::draw(entropy, NAME.to_owned(), &Clock::default(), Rc::new(PlannedProbe { client }))]
}
