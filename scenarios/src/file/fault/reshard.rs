//! `reshard = { slots | of, to, step }`: an operator moves slots of a cluster to another master.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Effect, FaultAction, Targets, list};
use crate::{
    file::{name::Name, selector::Hosts, slots::Slots},
    units::{Draw, Span},
};

pub(super) const ABOUT: &str =
    "Moves slots of a cluster with their keys to another master (CLUSTER SETSLOT, MIGRATE).";

/// Moves slots of a cluster with their keys to another master, as `redis-cli --cluster reshard`
/// does: marks the slots at both masters, moves the keys, hands the slots over. It stops at the
/// first error.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reshard {
    /// The slots, such as `"0-99"`; that of a lock if left out.
    #[serde(default)]
    pub slots: Option<Slots>,
    /// The lock whose slot is moved, instead of `slots`; the only one if left out.
    #[serde(default)]
    pub of: Option<Name>,
    /// The master that they are moved to.
    pub to: Hosts,
    /// How long after each of its three parts the next one begins; at once if left out.
    #[serde(default)]
    pub step: Draw<Span>,
}

/// Which slots are moved.
#[derive(Debug, Clone, PartialEq)]
pub enum Moved {
    /// These.
    Slots(Slots),
    /// That of a lock; where the scenario has one alone, it need not be named.
    OfLock(Option<String>),
}

impl Reshard {
    /// Which slots it is about.
    pub fn moved(&self) -> Moved {
        match (&self.slots, &self.of) {
            (Some(slots), _) => Moved::Slots(slots.clone()),
            (None, of) => Moved::OfLock(of.as_ref().map(|name| name.as_str().to_owned())),
        }
    }
}

impl Effect for Reshard {
    fn hosts(&self) -> Vec<&Hosts> {
        vec![&self.to]
    }

    fn draw(&mut self, fraction: &mut dyn FnMut() -> f64) {
        self.step.draw(fraction());
    }

    fn actions(&self, targets: Targets<'_>) -> Vec<FaultAction> {
        let to = targets[0].first().cloned();
        let step = self.step.drawn().0;
        to.into_iter().map(|to| FaultAction::Reshard { moved: self.moved(), to, step }).collect()
    }

    fn words(&self, targets: Targets<'_>) -> String {
        let what = match self.moved() {
            Moved::Slots(slots) => format!("slots {slots} are"),
            Moved::OfLock(None) => "the slot of the lock is".to_owned(),
            Moved::OfLock(Some(lock)) => format!("the slot of {lock} is"),
        };
        format!("{what} moved to {}", list(&targets[0]))
    }
}
