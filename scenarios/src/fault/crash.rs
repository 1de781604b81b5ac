//! `crash = "host"`: the host is gone at once; undoing it restarts it.

use lockstorm_sim::world::Verb;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Deed, Kind, Targets, each, list};
use crate::selector::Hosts;

pub(super) const ABOUT: &str = "Crashes a host: its memory is gone, and of its disk what was not synced.";

/// Crashes a host: its memory is gone, and of its disk what was not synced.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Crash(pub Hosts);

impl Kind for Crash {
    fn hosts(&self) -> Vec<&Hosts> {
        vec![&self.0]
    }

    fn begin(&self, _: &str, targets: Targets<'_>, _: &mut dyn FnMut() -> f64) -> Vec<Deed> {
        each(&targets[0], |host| Verb::Crash { host })
    }

    fn end(&self, _: &str, targets: Targets<'_>) -> Vec<Deed> {
        each(&targets[0], |host| Verb::Restart { host })
    }

    fn words(&self, targets: Targets<'_>) -> String {
        format!("{} crashes", list(&targets[0]))
    }
}
