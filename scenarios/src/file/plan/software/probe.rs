//! lockstorm's own client, which asks in the calm for each lock that no owner was granted since the
//! storm. It shows if a lock can still be acquired, even if all clients have finished their work by
//! then.

use std::rc::Rc;

use lockstorm_world::Entropy;

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

/// The name of the host in the history. No host of a file can have this name.
const NAME: &str = "(probe)";

/// lockstorm's own client.
#[derive(Debug)]
pub(crate) struct PlannedProbe {
    /// The client as a file would write it. It knows all nodes, and finds the master in the same
    /// way as the file's clients.
    pub(crate) client: Client,
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
