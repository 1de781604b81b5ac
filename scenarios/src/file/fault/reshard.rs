//! `reshard = { slots | of, to, step | atomic }`: an operator moves slots of a cluster to another
//! master.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Effect, FaultAction, Targets, list};
use crate::{
    file::{name::Name, selector::Hosts, slots::Slots},
    units::{Draw, Span},
};

pub(super) const ABOUT: &str = "Moves slots of a cluster with their keys to another master (CLUSTER SETSLOT and MIGRATE, or MIGRATESLOTS).";

/// Moves slots of a cluster with their keys to another master, as `redis-cli --cluster reshard`
/// does: marks the slots at both masters, moves the keys, hands the slots over. It stops at the
/// first error. With `atomic` the masters do it by themselves: the old one copies the slots to the
/// new one and streams its writes, and holds all its writes back while the new one takes the slots.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reshard {
    /// The slots, such as `"0-99"`. Default: the slot of a lock.
    #[serde(default)]
    pub slots: Option<Slots>,
    /// The lock whose slot is moved, instead of `slots`. Default: the only lock.
    #[serde(default)]
    pub of: Option<Name>,
    /// The master that gets the slots.
    pub to: Hosts,
    /// The delay from the start of each of its three parts to the start of the next. Default: none.
    #[serde(default)]
    pub step: Draw<Span>,
    /// True if the old master moves them by itself, by CLUSTER MIGRATESLOTS: for masters with
    /// `server = "valkey-9.1"`.
    #[serde(default)]
    pub atomic: bool,
}

/// The slots that a reshard moves: given by number, or the slot of a lock.
#[derive(Debug, Clone, PartialEq)]
pub enum Moved {
    /// Slots that the file gives by number.
    Slots(Slots),
    /// The slot of a lock. `None` if the scenario has one lock, which need not be named.
    OfLock(Option<String>),
}

impl Reshard {
    /// Returns the slots from `slots`, or else the slot of the lock in `of`.
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
        let atomic = self.atomic;
        to.into_iter().map(|to| FaultAction::Reshard { moved: self.moved(), to, step, atomic }).collect()
    }

    fn words(&self, targets: Targets<'_>) -> String {
        let what = match self.moved() {
            Moved::Slots(slots) => format!("slots {slots} are"),
            Moved::OfLock(None) => "the slot of the lock is".to_owned(),
            Moved::OfLock(Some(lock)) => format!("the slot of {lock} is"),
        };
        let how = if self.atomic { " by the masters themselves" } else { "" };
        format!("{what} moved to {}{how}", list(&targets[0]))
    }
}
